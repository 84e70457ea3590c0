import { useQuery } from '@tanstack/react-query'
import { Mail } from 'lucide-react'
import { type Invitation, invitationsQuery, nameOfActor, peopleQuery, revokeInvitation } from '../../api/people.ts'
import { Badge } from '../../design/badge.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { AskingButton } from '../../shell/asking-button.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'

export function Invitations() {
  const account = useAccount()
  const invitations = useQuery(invitationsQuery(account))
  const people = useQuery(peopleQuery(account))
  const columns: readonly TableColumn<Invitation>[] = [
    { title: 'For', cell: ({ email }) => email ?? 'whoever has the link' },
    { title: 'Role', cell: ({ role }) => <Badge>{role}</Badge> },
    { title: 'Made by', cell: ({ created_by }) => nameOfActor(people.data, created_by), minor: true },
    { title: 'Ends', cell: ({ expires_at }) => <Time at={expires_at} />, minor: true },
    {
      title: '',
      figure: true,
      cell: ({ id, email }) => (
        <AskingButton
          size="small"
          label="Revoke"
          title={`Revoke the invitation${email ? ` for ${email}` : ''}?`}
          action="Revoke invitation"
          change={{
            call: () => revokeInvitation(id),
            changes: [invitationsQuery(account).queryKey],
            said: 'Invitation revoked',
          }}
        >
          <p>Its link stops working at once. You can invite the person again.</p>
        </AskingButton>
      ),
    },
  ]
  if (invitations.isError) return <Failure error={invitations.error} onRetry={() => void invitations.refetch()} />
  if (invitations.data === undefined) return <Skeleton rows={2} height="figure" />
  return (
    <Table
      label="Invitations"
      columns={columns}
      rows={invitations.data}
      keyOf={({ id }) => id}
      empty={
        <EmptyState icon={<Mail />} title="No open invitation">
          <p>Invite somebody, and send them the link. They choose themselves how to sign in later.</p>
        </EmptyState>
      }
    />
  )
}
