import { useQuery } from '@tanstack/react-query'
import { FileKey2, Plus } from 'lucide-react'
import { deleteSecret, type Secret, secretsKey, secretsQuery } from '../../api/secrets.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { AskingButton } from '../../shell/asking-button.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { MembersOnly } from '../../shell/members-only.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'

/** Secrets that views hash with. */
export function SecretsPage() {
  const account = useAccount()
  return (
    <Page
      title="Secrets"
      about="A view hashes with a secret: hmac_sha256('email_key', email). Inlet never shows the value of one that you gave it."
      actions={useMay('member') && <CreateLink account={account} />}
    >
      <MembersOnly>
        <SecretList account={account} />
      </MembersOnly>
    </Page>
  )
}

function SecretList({ account }: { readonly account: string }) {
  const secrets = useQuery(secretsQuery(account))
  if (secrets.isError) return <Failure error={secrets.error} onRetry={() => void secrets.refetch()} />
  if (secrets.isPending) return <Skeleton rows={3} height="figure" />
  return (
    <Table
      label="Secrets"
      columns={columnsOf(account)}
      rows={secrets.data.items}
      keyOf={({ id }) => id}
      empty={
        <EmptyState icon={<FileKey2 />} title="No secret yet" action={<CreateLink account={account} />}>
          <p>Without one, the hash of an address or a phone number can be found by hashing all of them.</p>
        </EmptyState>
      }
    />
  )
}

function CreateLink({ account }: { readonly account: string }) {
  return (
    <ButtonLink to="/in/$account/secrets/new" params={{ account }} look="primary" icon={<Plus aria-hidden="true" />}>
      Create secret
    </ButtonLink>
  )
}

function columnsOf(account: string): readonly TableColumn<Secret>[] {
  return [
    { title: 'Name', cell: ({ name }) => <code>{name}</code> },
    { title: 'Used by', cell: ({ used_by }) => (used_by.length === 0 ? 'no view' : used_by.join(', ')) },
    { title: 'Created', cell: ({ created_at }) => <Time at={created_at} />, minor: true },
    { title: 'Rotated', cell: ({ rotated_at }) => (rotated_at === null ? 'never' : <Time at={rotated_at} />), minor: true },
    {
      title: '',
      figure: true,
      cell: (secret) => (
        <>
          <ButtonLink to="/in/$account/secrets/new" params={{ account }} search={{ rotate: secret.id }} size="small">
            Rotate
          </ButtonLink>{' '}
          <DeleteSecret account={account} secret={secret} />
        </>
      ),
    },
  ]
}

function DeleteSecret({ account, secret: { id, name } }: { readonly account: string; readonly secret: Secret }) {
  return (
    <AskingButton
      size="small"
      label="Delete"
      aria-label={`Delete ${name}`}
      title={`Delete the secret “${name}”?`}
      action="Delete secret"
      change={{ call: () => deleteSecret(id), changes: [secretsKey(account)], said: `Secret “${name}” deleted` }}
    >
      <p>Without a copy of its value, nobody can make the same hashes again. A secret that a published view names stays.</p>
    </AskingButton>
  )
}
