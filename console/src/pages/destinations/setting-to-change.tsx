import { useQueryClient } from '@tanstack/react-query'
import {
  changeDestination,
  type Destination,
  type DestinationChange,
  destinationsKey,
  type ValidationStep,
  validationQuery,
} from '../../api/destinations.ts'
import { Button } from '../../design/button.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import type { DestinationSearch } from './destination-search.ts'
import style from './destinations.module.css'

type Setting = NonNullable<ValidationStep['setting']>
type SettingToChangeProps = { readonly destination: Destination; readonly setting: Setting; readonly value: string | null }

/** The way to what must change: one click where the store told the value. */
export function SettingToChange({ destination, setting, value }: SettingToChangeProps) {
  const account = useAccount()
  const mayChange = useMay('member')
  if (setting === 'installation') {
    return <p className={style.soft}>The operator of this installation must act. No setting of the destination helps.</p>
  }
  if (!mayChange) return null
  const remedy = value === null ? undefined : remedyOf(setting, value)
  if (remedy !== undefined) return <Apply destination={destination} {...remedy} />
  const { label, search } = places[setting]
  return (
    <div>
      <ButtonLink
        size="small"
        to="/in/$account/destinations/$destination"
        params={{ account, destination: destination.id }}
        search={search}
      >
        {label}
      </ButtonLink>
    </div>
  )
}

const settings: DestinationSearch = { tab: 'settings' }
const policies: DestinationSearch = { tab: 'set-up', how: 'policies' }

const places = {
  bucket: { label: 'Change bucket', search: settings },
  region: { label: 'Change region', search: settings },
  role_arn: { label: 'Change role', search: settings },
  path_style: { label: 'Change address style', search: settings },
  encryption: { label: 'Change encryption', search: settings },
  kms_key_arn: { label: 'Change key', search: settings },
  checksums: { label: 'Change checksums', search: settings },
  allowlist: { label: 'Show what to allow', search: { tab: 'set-up' } },
  trust_policy: { label: 'Compare trust policy', search: policies },
  bucket_policy: { label: 'Compare policies', search: policies },
  key_policy: { label: 'Compare policy of the key', search: policies },
} as const satisfies Record<Exclude<Setting, 'installation'>, { readonly label: string; readonly search: DestinationSearch }>

type Remedy = { readonly label: string; readonly change: DestinationChange }

/** The change that the store told. */
function remedyOf(setting: Setting, value: string): Remedy | undefined {
  if (setting === 'region') return { label: `Set region to ${value}`, change: { region: value } }
  if (setting === 'path_style') return { label: 'Use path-style addresses', change: { path_style: true } }
  if (setting === 'encryption') return { label: 'Leave encryption to the bucket', change: { encryption: 'bucket-default' } }
  if (setting === 'checksums') return { label: 'Send no checksums', change: { checksums: 'none' } }
  return undefined
}

function Apply({ destination: { id }, label, change }: Remedy & { readonly destination: Destination }) {
  const account = useAccount()
  const queries = useQueryClient()
  const apply = useChange({
    call: () => changeDestination(id, change),
    leave: () => queries.removeQueries({ queryKey: validationQuery(account, id).queryKey }),
    changes: [destinationsKey(account)],
    said: 'Setting changed. Validate again.',
  })
  return (
    <>
      <div>
        <Button size="small" busy={apply.isPending} onClick={() => apply.mutate()}>
          {label}
        </Button>
      </div>
      {apply.isError && <Failure error={apply.error} />}
    </>
  )
}
