import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { KeyRound } from 'lucide-react'
import { useState } from 'react'
import { endpointsQuery } from '../../api/endpoints.ts'
import { type ApiKey, keysQuery } from '../../api/keys.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { SwitchField } from '../../design/toggle-field.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { MembersOnly } from '../../shell/members-only.tsx'
import { Reason } from '../../shell/reason.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import style from './keys.module.css'
import { LastUse } from './last-use.tsx'
import { RevokeKey } from './revoke-key.tsx'

const route = getRouteApi('/signed-in/in/$account/keys')

/** Keys of the account, and whether they are used. */
export function KeysPage() {
  const account = useAccount()
  const mayCreate = useMay('member')
  return (
    <Page
      title="API keys"
      about="Programs and devices use a key to send data, to read, or to manage the account. Give each its own, so that you can revoke one without touching the others."
      actions={mayCreate && <NewKeyLink account={account} />}
    >
      <MembersOnly>
        <KeyList account={account} />
      </MembersOnly>
    </Page>
  )
}

function KeyList({ account }: { readonly account: string }) {
  const { revoked = false } = route.useSearch()
  const navigate = route.useNavigate()
  const keys = useInfiniteQuery(keysQuery(account))
  const endpoints = useQuery(endpointsQuery(account))
  const [leaving, setLeaving] = useState<ApiKey>()
  if (keys.isError) return <Failure error={keys.error} onRetry={() => void keys.refetch()} />
  if (keys.isPending) return <Skeleton rows={4} height="figure" />
  const all = keys.data.pages.flatMap(({ items }) => items)
  if (all.length === 0) return <NoKeys account={account} />
  const names = new Map(endpoints.data?.items.map(({ id, name }) => [id, name]))
  return (
    <>
      {all.some(({ revoked_at }) => revoked_at !== null) && (
        <SwitchField
          label="Show revoked keys"
          checked={revoked}
          onChange={(show) => void navigate({ search: show ? { revoked: true } : {}, replace: true })}
        />
      )}
      <Table
        label="API keys"
        columns={columnsOf(names, setLeaving)}
        rows={revoked ? all : all.filter(isShown)}
        keyOf={({ id }) => id}
        empty={<EmptyState title="All keys are revoked" action={<NewKeyLink account={account} />} />}
        more={keys}
      />
      <RevokeKey apiKey={leaving} onClose={() => setLeaving(undefined)} />
    </>
  )
}

function columnsOf(names: ReadonlyMap<string, string>, onRevoke: (key: ApiKey) => void): readonly TableColumn<ApiKey>[] {
  return [
    {
      title: 'Name',
      cell: (key) => (
        <>
          <strong className={style.name}>{key.name}</strong>
          <code className={style.prefix}>{key.prefix}…</code>
          <span className={style.narrow}>
            {key.scopes.join(', ')}
            {key.public && ', public'} · <EndpointNames apiKey={key} names={names} />
          </span>
        </>
      ),
    },
    {
      title: 'Scopes',
      cell: ({ scopes, public: isPublic }) => (
        <span className={style.badges}>
          {scopes.map((scope) => (
            <Badge key={scope}>{scope}</Badge>
          ))}
          {isPublic && <Badge>public</Badge>}
        </span>
      ),
      minor: true,
    },
    { title: 'Endpoints', cell: (key) => <EndpointNames apiKey={key} names={names} />, minor: true },
    { title: 'Last used', cell: ({ last_used_at }) => <LastUse at={last_used_at} /> },
    { title: 'Created', cell: ({ created_at }) => <Time at={created_at} />, minor: true },
    {
      title: '',
      figure: true,
      cell: (key) =>
        key.revoked_at === null ? (
          <Button size="small" aria-label={`Revoke ${key.name}`} onClick={() => onRevoke(key)}>
            Revoke
          </Button>
        ) : (
          <>
            <span className={style.soft}>
              revoked <Time at={key.revoked_at} />
              {key.revocation !== null && key.revocation.applied_at === null && (
                <>
                  : <Reason text={key.revocation.summary} />
                </>
              )}
            </span>{' '}
            {key.access_ended_at === null && (
              <Button size="small" aria-label={`It leaked: end what ${key.name} opened`} onClick={() => onRevoke(key)}>
                It leaked
              </Button>
            )}
          </>
        ),
    },
  ]
}

/** A revoked key that some node may still accept is not done with. */
function isShown({ revoked_at, revocation }: ApiKey): boolean {
  return revoked_at === null || revocation?.applied_at === null
}

const namesShown = 2

function EndpointNames({ apiKey, names }: { readonly apiKey: ApiKey; readonly names: ReadonlyMap<string, string> }) {
  const { endpoint_ids } = apiKey
  if (endpoint_ids === null) return <span className={style.soft}>all endpoints</span>
  const known = endpoint_ids.map((id) => names.get(id) ?? id.slice(0, 8))
  const more = known.length - namesShown
  return (
    <span title={known.join('\n')}>
      {known.slice(0, namesShown).join(', ')}
      {more > 0 && ` and ${more} more`}
    </span>
  )
}

function NewKeyLink({ account }: { readonly account: string }) {
  return (
    <ButtonLink look="primary" to="/in/$account/keys/new" params={{ account }}>
      Create key
    </ButtonLink>
  )
}

function NoKeys({ account }: { readonly account: string }) {
  return (
    <EmptyState icon={<KeyRound />} title="No key yet" action={<NewKeyLink account={account} />}>
      <p>A key lets a program or a device send data. You see it once, with examples that work as they are.</p>
    </EmptyState>
  )
}
