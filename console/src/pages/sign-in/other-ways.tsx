import { useMutation, useQuery } from '@tanstack/react-query'
import { Fingerprint, LogIn } from 'lucide-react'
import { canUsePasskeys, goToProvider, signInByPasskey, waysQuery } from '../../api/sign-in.ts'
import { Button } from '../../design/button.tsx'
import { Failure } from '../../shell/failure.tsx'
import style from './sign-in-page.module.css'

/** Ways to sign in without a password. */
export function OtherWays({ to, onDone }: { readonly to: string; readonly onDone: () => Promise<void> }) {
  const { data: ways } = useQuery(waysQuery)
  const passkey = useMutation({
    mutationFn: async () => {
      await signInByPasskey()
      await onDone()
    },
  })
  const leave = useMutation({ mutationFn: () => goToProvider(to) })
  const failed = [passkey, leave].find(({ isError }) => isError)
  if (!canUsePasskeys && !ways?.provider) return null
  return (
    <div className={style.ways}>
      <p className={style.or}>or</p>
      {canUsePasskeys && (
        <Button wide icon={<Fingerprint aria-hidden="true" />} busy={passkey.isPending} onClick={() => passkey.mutate()}>
          Sign in with a passkey
        </Button>
      )}
      {ways?.provider && (
        <Button wide icon={<LogIn aria-hidden="true" />} busy={leave.isPending} onClick={() => leave.mutate()}>
          Sign in with {ways.provider.name}
        </Button>
      )}
      {failed && <Failure error={failed.error} />}
    </div>
  )
}
