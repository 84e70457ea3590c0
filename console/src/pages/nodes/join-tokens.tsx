import { useInfiniteQuery } from '@tanstack/react-query'
import { type JoinToken, joinTokensKey, joinTokensQuery, revokeJoinToken } from '../../api/join-tokens.ts'
import { Badge, type Tone } from '../../design/badge.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { Section } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { AskingButton } from '../../shell/asking-button.tsx'
import { Failure } from '../../shell/failure.tsx'

const tones = { active: 'good', used_up: 'none', expired: 'none', revoked: 'none' } as const satisfies Record<
  JoinToken['status'],
  Tone
>

/** Tokens with which a machine becomes a node. */
export function JoinTokens() {
  const tokens = useInfiniteQuery(joinTokensQuery)
  return (
    <Section title="Join tokens" about="A machine needs one for its first start only. Revoke those that you no longer need.">
      {tokens.isError && <Failure error={tokens.error} onRetry={() => void tokens.refetch()} />}
      {tokens.isPending && <Skeleton rows={2} height="figure" />}
      {tokens.isSuccess && (
        <Table
          label="Join tokens"
          columns={columns}
          rows={tokens.data.pages.flatMap(({ items }) => items)}
          keyOf={({ id }) => id}
          empty={<EmptyState title="No join token">To add a node, make one.</EmptyState>}
          more={tokens}
        />
      )}
    </Section>
  )
}

const columns: readonly TableColumn<JoinToken>[] = [
  { title: 'Name', cell: ({ name }) => <strong>{name}</strong> },
  {
    title: 'Status',
    cell: ({ status }) => (
      <Badge tone={tones[status]} dot>
        {status.replace('_', ' ')}
      </Badge>
    ),
  },
  { title: 'Region', cell: ({ region }) => region ?? 'any', minor: true },
  { title: 'Used', cell: ({ uses, uses_max }) => (uses_max === null ? uses : `${uses} of ${uses_max}`), figure: true },
  { title: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} />, minor: true },
  {
    title: '',
    figure: true,
    cell: (token) => token.status === 'active' && <RevokeToken token={token} />,
  },
]

function RevokeToken({ token }: { readonly token: JoinToken }) {
  return (
    <AskingButton
      size="small"
      label="Revoke"
      aria-label={`Revoke ${token.name}`}
      title={`Revoke the join token “${token.name}”?`}
      action="Revoke token"
      change={{ call: () => revokeJoinToken(token.id), changes: [joinTokensKey], said: 'Join token revoked' }}
    >
      <p>No machine can join with it any more. Nodes that joined with it stay, and do not notice.</p>
    </AskingButton>
  )
}
