import { type FormEvent, type ReactNode, useState } from 'react'
import { Button } from './button.tsx'
import { Callout } from './callout.tsx'
import { Dialog } from './dialog.tsx'
import { TextField } from './field.tsx'

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
  readonly busy?: boolean
  readonly error?: string | undefined
  /** Danger unless the action loses nothing. */
  readonly tone?: 'danger' | 'primary'
  /** Text that must be typed first, where data would be lost. */
  readonly typed?: string
}

/** Asks before an action that cannot be undone. */
export function Confirm({
  open,
  onClose,
  title,
  children,
  action,
  onConfirm,
  busy = false,
  error,
  tone = 'danger',
  typed,
}: ConfirmProps) {
  const [text, setText] = useState('')
  const close = () => {
    setText('')
    onClose()
  }
  const isBlocked = typed !== undefined && text !== typed
  const submit = (event: FormEvent) => {
    event.preventDefault()
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
        <form onSubmit={submit}>
          <TextField label={`Type ${typed} to go on`} value={text} onChange={setText} autoComplete="off" />
        </form>
      )}
      {error !== undefined && <Callout kind="bad">{error}</Callout>}
    </Dialog>
  )
}
