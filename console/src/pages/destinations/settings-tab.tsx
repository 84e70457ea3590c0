import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import {
  changeDestination,
  type Destination,
  destinationsKey,
  type ObjectStore,
  removeDestination,
  validationQuery,
} from '../../api/destinations.ts'
import { Callout } from '../../design/callout.tsx'
import { CopyButton } from '../../design/copy-button.tsx'
import { Card, Facts, Inline, Section } from '../../design/layout.tsx'
import { Time } from '../../design/time.tsx'
import { AskingButton } from '../../shell/asking-button.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import { draftOf, settingsOf } from './destination-draft.ts'
import { DestinationForm } from './destination-form.tsx'
import style from './destinations.module.css'

type SettingsProps = { readonly destination: Destination; readonly store: ObjectStore }

export function SettingsTab({ destination, store }: SettingsProps) {
  const { created_at, external_id, id, role_arn } = destination
  const mayChange = useMay('member')
  return (
    <>
      <Section title="Settings">
        <Card>
          <ChangeForm destination={destination} store={store} disabled={!mayChange} />
        </Card>
      </Section>
      <Section title="For programs">
        <Card>
          <Facts
            facts={[
              ['Id', <Copied key="id" text={id} />],
              ...(!store.has_roles || role_arn === null
                ? []
                : ([
                    ['Role', <Copied key="role" text={role_arn} />],
                    ['External id', <Copied key="external" text={external_id} />],
                  ] as const)),
              ['Created', <Time key="created" at={created_at} />],
            ]}
          />
        </Card>
      </Section>
      {mayChange && <Removal destination={destination} />}
    </>
  )
}

function Copied({ text }: { readonly text: string }) {
  return (
    <Inline>
      <code className={style.where}>{text}</code>
      <CopyButton text={text} wordless />
    </Inline>
  )
}

function ChangeForm({ destination, store, disabled }: SettingsProps & { readonly disabled: boolean }) {
  const account = useAccount()
  const queries = useQueryClient()
  const { id, ref_count, status } = destination
  const [draft, setDraft] = useState(() => draftOf(destination))
  const before = settingsOf(draftOf(destination), store)
  const after = settingsOf(draft, store)
  const isRetargeted = JSON.stringify({ ...after, name: '' }) !== JSON.stringify({ ...before, name: '' })
  const change = useChange({
    call: () => changeDestination(id, after),
    leave: (changed) => {
      setDraft(draftOf({ ...changed, ref_count }))
      if (isRetargeted) queries.removeQueries({ queryKey: validationQuery(account, id).queryKey })
    },
    changes: [destinationsKey(account)],
    said: 'Settings saved',
  })
  return (
    <DestinationForm draft={draft} onChange={setDraft} store={store} call={change} action="Save settings" disabled={disabled}>
      {isRetargeted && (status === 'valid' || ref_count > 0) && (
        <Callout kind={ref_count > 0 ? 'warn' : 'note'}>
          {status === 'valid' && 'The destination must be validated again. '}
          {ref_count > 0 && 'Endpoints deliver there from now on, also what they have not delivered yet. '}
          What was delivered stays where it is.
        </Callout>
      )}
    </DestinationForm>
  )
}

function Removal({ destination: { id, name, ref_count } }: { readonly destination: Destination }) {
  const account = useAccount()
  const queries = useQueryClient()
  const navigate = useNavigate()
  return (
    <Section
      title="Delete"
      about={
        ref_count > 0
          ? 'Endpoints deliver here. Give them another destination first.'
          : 'Inlet forgets the destination. The bucket and its objects stay.'
      }
    >
      <div>
        <AskingButton
          look="danger"
          disabled={ref_count > 0}
          title={`Delete the destination “${name}”?`}
          action="Delete destination"
          change={{
            call: () => removeDestination(id),
            leave: async () => {
              await navigate({ to: '/in/$account/destinations', params: { account } })
              queries.removeQueries({ queryKey: validationQuery(account, id).queryKey })
            },
            changes: [destinationsKey(account)],
            said: `Destination ${name} deleted`,
          }}
        >
          <p>
            Dead letters that were delivered there can no longer be downloaded or re-driven from here. Objects in the bucket stay.
          </p>
        </AskingButton>
      </div>
    </Section>
  )
}
