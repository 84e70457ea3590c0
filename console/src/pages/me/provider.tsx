import { useMutation, useQuery } from '@tanstack/react-query'
import { connectProvider, disconnectProvider, signInAccountsQuery, waysQuery } from '../../api/sign-in.ts'
import { Button } from '../../design/button.tsx'
import { Card, Section } from '../../design/layout.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useChange } from '../../shell/use-change.ts'
import style from './me-page.module.css'

/** The provider of the installation, if it has one. */
export function Provider() {
  const { data: ways } = useQuery(waysQuery)
  const { data: accounts } = useQuery(signInAccountsQuery)
  const connect = useMutation({ mutationFn: connectProvider })
  const disconnect = useChange({
    call: disconnectProvider,
    changes: [signInAccountsQuery.queryKey],
    said: 'Disconnected',
  })
  if (!ways?.provider || accounts === undefined) return null
  const { name } = ways.provider
  const connected = accounts.find(({ providerId }) => providerId === 'oidc')
  const failed = [connect, disconnect].find(({ isError }) => isError)
  return (
    <Section title={name.charAt(0).toUpperCase() + name.slice(1)}>
      <Card>
        <div className={style.form}>
          <p className={style.note}>
            {connected === undefined ? `Connect ${name} to sign in with it.` : `You can sign in with ${name}.`}
          </p>
          {failed && <Failure error={failed.error} />}
          <div>
            {connected === undefined ? (
              <Button busy={connect.isPending} onClick={() => connect.mutate()}>
                Connect {name}
              </Button>
            ) : (
              <Button busy={disconnect.isPending} onClick={() => disconnect.mutate(connected.id)}>
                Disconnect {name}
              </Button>
            )}
          </div>
        </div>
      </Card>
    </Section>
  )
}
