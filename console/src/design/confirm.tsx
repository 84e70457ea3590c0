import { type ReactNode, useState } from 'react'
import { Button } from './button.tsx'
import { Callout } from './callout.tsx'
import { Dialog } from './dialog.tsx'
import { TextField } from './field.tsx'
import { Form } from './form.tsx'

type ConfirmProps = {
  readonly open: boolean
  readonly onClose: () => void
  /** As a question: `Revoke the key “laptop”?` */
  readonly title: string
  /** Consequences, and whether they can be undone. */
  readonly children: ReactNode
  /** The verb on the button: `Revoke key`. */
  readonly action: string
  readonly onConfirm: () => void
  /** The mutation that `onConfirm` begins. Closing forgets its error. */
  readonly call?: { readonly error: Error | null; readonly isPending: boolean; readonly reset: () => void }
  /** Danger unless the action loses nothing. */
  readonly tone?: 'danger' | 'primary'
  /** Text that must be typed first, where data would be lost. */
  readonly typed?: string
}

/** Asks before an action that cannot be undone. */
export function Confirm({ open, onClose, title, children, action, onConfirm, call, tone = 'danger', typed }: ConfirmProps) {
  const [text, setText] = useState('')
  const busy = call?.isPending === true
  const close = () => {
    setText('')
    call?.reset()
    onClose()
  }
  const isBlocked = typed !== undefined && text !== typed
  const submit = () => {
    if (!(isBlocked || busy)) onConfirm()
  }
  return (
    <Dialog
      open={open}
      onClose={close}
      title={title}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button look={tone} busy={busy} disabled={isBlocked} onClick={onConfirm}>
            {action}
          </Button>
        </>
      }
    >
      {children}
      {typed !== undefined && (
        <Form onSubmit={submit}>
          <TextField label={`Type ${typed} to go on`} value={text} onChange={setText} autoComplete="off" />
        </Form>
      )}
      {call?.error && <Callout kind="bad">{call.error.message}</Callout>}
    </Dialog>
  )
}
