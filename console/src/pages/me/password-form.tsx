import { useQuery } from '@tanstack/react-query'
import { setUp } from '../../api/session.ts'
import { sessionsQuery } from '../../api/sessions.ts'
import { changePassword, signInAccountsQuery } from '../../api/sign-in.ts'
import { TextField } from '../../design/field.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useHere } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import { useFields } from '../../shell/use-fields.ts'
import style from './me-page.module.css'

/** Sets a password; changes it only for who knows the old one. */
export function PasswordForm() {
  const { person } = useHere().session
  const accounts = useQuery(signInAccountsQuery)
  const { values, field, reset } = useFields({ current: '', password: '' })
  const { current, password } = values
  const hasPassword = accounts.data?.some(({ providerId }) => providerId === 'credential') === true
  const save = useChange({
    call: () => (hasPassword ? changePassword(current, password) : setUp({ password })),
    leave: reset,
    changes: [signInAccountsQuery.queryKey, sessionsQuery.queryKey],
    said: hasPassword ? 'Password changed. Your other sessions have ended.' : 'Password set',
  })
  if (accounts.isError) return <Failure error={accounts.error} onRetry={() => void accounts.refetch()} />
  if (accounts.data === undefined) return <Skeleton rows={3} height="figure" />
  if (!hasPassword && person.email === null)
    return <p className={style.note}>Save an e-mail address first: you sign in with both.</p>
  return (
    <CallForm call={save} action={hasPassword ? 'Change password' : 'Set password'}>
      {(_errorOf) => (
        <>
          {hasPassword && (
            <TextField label="Password now" type="password" {...field('current')} autoComplete="current-password" required />
          )}
          <TextField
            label="New password"
            type="password"
            {...field('password')}
            autoComplete="new-password"
            required
            minLength={10}
            maxLength={128}
            hint={hasPassword ? 'At least 10 characters. It ends your other sessions.' : 'At least 10 characters.'}
          />
        </>
      )}
    </CallForm>
  )
}
