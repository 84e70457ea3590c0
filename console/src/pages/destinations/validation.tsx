import { useQuery, useQueryClient } from '@tanstack/react-query'
import { PlugZap } from 'lucide-react'
import {
  type Destination,
  destinationsKey,
  objectStoreQuery,
  validateDestination,
  validationIntervalMs,
  validationQuery,
} from '../../api/destinations.ts'
import { Button } from '../../design/button.tsx'
import { Callout } from '../../design/callout.tsx'
import { Inline } from '../../design/layout.tsx'
import { Time, useNow } from '../../design/time.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import style from './destinations.module.css'
import { RunningSteps, ValidationSteps } from './validation-steps.tsx'
import { expectedSteps, sentence } from './validation-words.ts'

/** Validates, and shows what came of each step. */
export function Validation({ destination }: { readonly destination: Destination }) {
  const account = useAccount()
  const queries = useQueryClient()
  const { id, last_error, status } = destination
  const { queryKey } = validationQuery(account, id)
  const validation = useQuery(validationQuery(account, id)).data
  const store = useQuery(objectStoreQuery(account)).data
  const validate = useChange({
    call: () => validateDestination(id),
    leave: ({ steps }) => queries.setQueryData(queryKey, { at: Date.now(), steps }),
    changes: [destinationsKey(account)],
  })
  return (
    <div className={style.stack}>
      <Inline>
        <ValidateButton
          // Each validation has a countdown of its own.
          key={validation?.at}
          at={validation?.at}
          busy={validate.isPending}
          onClick={() => validate.mutate()}
        />
        {validation !== undefined && (
          <span className={style.soft}>
            Tried <Time at={validation.at} />
          </span>
        )}
      </Inline>
      {validate.isError && <Failure error={validate.error} />}
      <div aria-live="polite" className={style.stack}>
        {validate.isPending && store !== undefined && <RunningSteps steps={expectedSteps(destination, store)} />}
        {!validate.isPending && validation !== undefined && (
          <ValidationSteps destination={destination} steps={validation.steps} />
        )}
        {!validate.isPending && validation === undefined && last_error !== null && (
          <Callout kind="bad" title="The last validation failed">
            <p className={style.message}>{sentence(last_error)}</p>
          </Callout>
        )}
        {!validate.isPending && validation?.steps.every(({ outcome }) => outcome === 'passed') && status === 'valid' && (
          <Callout kind="good">Everything works. Endpoints can deliver to this destination.</Callout>
        )}
      </div>
    </div>
  )
}

type ValidateButtonProps = { readonly at: number | undefined; readonly busy: boolean; readonly onClick: () => void }

/** Waits as long as control would refuse. */
function ValidateButton({ at, busy, onClick }: ValidateButtonProps) {
  const now = useNow()
  if (!useMay('member')) return null
  const seconds = at === undefined ? 0 : Math.ceil((at + validationIntervalMs - now) / 1000)
  return (
    <Button look="primary" icon={<PlugZap aria-hidden="true" />} busy={busy} disabled={seconds > 0} onClick={onClick}>
      {seconds > 0 ? `Validate again in ${seconds} s` : at === undefined ? 'Validate destination' : 'Validate again'}
    </Button>
  )
}
