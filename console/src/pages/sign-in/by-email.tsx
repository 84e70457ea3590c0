import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { signInByEmail } from '../../api/session.ts'
import { Button } from '../../design/button.tsx'
import { TextField } from '../../design/field.tsx'
import { Form } from '../../design/form.tsx'
import { Failure } from '../../shell/failure.tsx'
import style from './sign-in-page.module.css'

type ByEmailProps = { readonly onDone: () => Promise<void>; readonly children: ReactNode }

export function ByEmail({ onDone, children }: ByEmailProps) {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const enter = useMutation({
    mutationFn: async () => {
      await signInByEmail(email, password)
      await onDone()
    },
  })
  return (
    <Form className={style.form} onSubmit={() => enter.mutate()} onChange={() => enter.isError && enter.reset()}>
      <h1 className={style.title}>Sign in to Inlet</h1>
      <TextField label="E-mail" type="email" value={email} onChange={setEmail} autoComplete="username" required autoFocus />
      <TextField
        label="Password"
        type="password"
        value={password}
        onChange={setPassword}
        autoComplete="current-password"
        required
      />
      {enter.isError && <Failure error={enter.error} />}
      <Button type="submit" look="primary" wide busy={enter.isPending}>
        Sign in
      </Button>
      {children}
      <p className={style.help}>
        No password yet? Ask an owner of your account for an invitation, or run <code>npm run inlet -- sign-in-link</code> on the
        machine of control.
      </p>
    </Form>
  )
}
