import { useMutation } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { ApiError } from '../api/client.ts'
import type { CreatedInvitation } from '../api/people.ts'
import type { Role } from '../api/session.ts'
import { Button } from '../design/button.tsx'
import { Callout } from '../design/callout.tsx'
import { CodeBlock } from '../design/code-block.tsx'
import { Dialog } from '../design/dialog.tsx'
import { SelectField, TextField } from '../design/field.tsx'
import { Form } from '../design/form.tsx'
import { Failure } from './failure.tsx'
import style from './invite-dialog.module.css'
import { roleChoices } from './roles.ts'

type InviteDialogProps = {
  readonly title: string
  /** The role that is chosen at first. */
  readonly first: Role
  readonly invite: (role: Role, email: string) => Promise<CreatedInvitation>
  readonly onClose: () => void
}

/** Asks for whom the invitation is, then shows its link once. */
export function InviteDialog({ title, first, invite, onClose }: InviteDialogProps) {
  const form = useId()
  const [role, setRole] = useState(first)
  const [email, setEmail] = useState('')
  const create = useMutation({ mutationFn: () => invite(role, email.trim()) })
  if (create.data !== undefined) {
    return (
      <Dialog
        open
        onClose={onClose}
        title="Invitation created"
        about={`Send this link to ${create.data.email ?? 'the person'}. It works once, in the next seven days.`}
        actions={
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        }
      >
        <CodeBlock label="Link" code={create.data.url} wrap />
        <Callout kind="warn">
          <p>Inlet shows the link only now. Whoever has it can join, so send it where nobody else reads.</p>
        </Callout>
      </Dialog>
    )
  }
  const emailError = create.error instanceof ApiError ? create.error.fieldError('email') : undefined
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      about="You get a link to send. Inlet sends no mail."
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form={form} look="primary" busy={create.isPending}>
            Create invitation
          </Button>
        </>
      }
    >
      <Form id={form} className={style.form} onSubmit={() => create.mutate()} onChange={() => create.isError && create.reset()}>
        <SelectField label="Role" value={role} choices={roleChoices} onChange={setRole} />
        <TextField
          label="E-mail (optional)"
          type="email"
          value={email}
          onChange={setEmail}
          autoComplete="off"
          error={emailError}
          hint="So that you know whom the invitation is for. With single sign-on, they can join without the link."
        />
        {create.isError && emailError === undefined && <Failure error={create.error} />}
      </Form>
    </Dialog>
  )
}
