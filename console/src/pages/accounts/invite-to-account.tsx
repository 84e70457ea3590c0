import { UserPlus } from 'lucide-react'
import { useState } from 'react'
import { inviteTo } from '../../api/accounts.ts'
import { Button } from '../../design/button.tsx'
import { InviteDialog } from '../../shell/invite-dialog.tsx'

type InviteToAccountProps = {
  readonly account: { readonly id: string; readonly name: string }
  readonly look?: 'primary' | 'plain'
  readonly children: string
}

/** For the first owner, whom nobody in the account can invite yet. */
export function InviteToAccount({ account: { id, name }, look = 'plain', children }: InviteToAccountProps) {
  const [isInviting, setInviting] = useState(false)
  return (
    <>
      <Button look={look} icon={<UserPlus aria-hidden="true" />} onClick={() => setInviting(true)}>
        {children}
      </Button>
      {isInviting && (
        <InviteDialog
          title={`Invite somebody to “${name}”`}
          first="owner"
          invite={(role, email) => inviteTo(id, role, email)}
          onClose={() => setInviting(false)}
        />
      )}
    </>
  )
}
