import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { signInByLink } from '../../api/session.ts'
import { Button } from '../../design/button.tsx'
import { TextField } from '../../design/field.tsx'
import { Form } from '../../design/form.tsx'
import { Failure } from '../../shell/failure.tsx'
import style from './sign-in-page.module.css'

type ByLinkProps = { readonly link: string; readonly onDone: () => Promise<void>; readonly onGiveUp: () => void }

/** A button, not the visit, uses the link up: mail programs and chats open links to look at them. */
export function ByLink({ link, onDone, onGiveUp }: ByLinkProps) {
  const [name, setName] = useState('')
  const enter = useMutation({
    mutationFn: async () => {
      await signInByLink(link, name.trim() === '' ? undefined : name.trim())
      await onDone()
    },
  })
  return (
    <Form className={style.form} onSubmit={() => enter.mutate()}>
      <h1 className={style.title}>Welcome to Inlet</h1>
      <p className={style.about}>
        This link signs you in once. You can set an e-mail address and a password, or a passkey, afterwards.
      </p>
      <TextField
        label="Your name"
        hint="Others see it in the audit trail."
        value={name}
        onChange={setName}
        autoComplete="name"
        autoFocus
        maxLength={128}
      />
      {enter.isError && <Failure error={enter.error} />}
      <Button type="submit" look="primary" wide busy={enter.isPending}>
        Sign in
      </Button>
      {enter.isError && (
        <Button look="quiet" wide onClick={onGiveUp}>
          Sign in with e-mail and password
        </Button>
      )}
    </Form>
  )
}
