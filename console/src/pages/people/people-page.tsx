import { useQuery, useQueryClient } from '@tanstack/react-query'
import { UserPlus } from 'lucide-react'
import { useState } from 'react'
import { invitationsQuery, invite, peopleQuery } from '../../api/people.ts'
import { Button } from '../../design/button.tsx'
import { Page, Section } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Failure } from '../../shell/failure.tsx'
import { InviteDialog } from '../../shell/invite-dialog.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { Invitations } from './invitations.tsx'
import { Members } from './members.tsx'

/** Members of the account, and open invitations. */
export function PeoplePage() {
  const account = useAccount()
  const queries = useQueryClient()
  const isOwner = useMay('owner')
  const people = useQuery(peopleQuery(account))
  const invitations = useQuery({ ...invitationsQuery(account), enabled: isOwner })
  const [isInviting, setInviting] = useState(false)
  // Both at once: members that arrive later would move the invitations.
  const isLoading = people.isPending || invitations.isLoading
  const inviteButton = (
    <Button look="primary" icon={<UserPlus aria-hidden="true" />} onClick={() => setInviting(true)}>
      Invite somebody
    </Button>
  )
  return (
    <Page
      title="People"
      about="Who can open this account. Owners decide who belongs to it, members change everything else, viewers only look."
      actions={isOwner && inviteButton}
    >
      <Section title="Members">
        {people.isError && <Failure error={people.error} onRetry={() => void people.refetch()} />}
        {isLoading && <Skeleton rows={6} height="figure" />}
        {!isLoading && people.data !== undefined && <Members people={people.data} />}
      </Section>
      {isOwner && !isLoading && (
        <Section title="Invitations" about="Links that nobody has used yet. Each works once, for a week.">
          <Invitations />
        </Section>
      )}
      {isInviting && (
        <InviteDialog
          title="Invite somebody"
          first="member"
          invite={async (...to) => {
            const created = await invite(...to)
            await queries.invalidateQueries(invitationsQuery(account))
            return created
          }}
          onClose={() => setInviting(false)}
        />
      )}
    </Page>
  )
}
