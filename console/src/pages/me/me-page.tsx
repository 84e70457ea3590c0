import { useQueries } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { sessionsQuery } from '../../api/sessions.ts'
import { passkeysQuery, signInAccountsQuery, waysQuery } from '../../api/sign-in.ts'
import { Callout } from '../../design/callout.tsx'
import { Card, Page, Section, Sheet } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Passkeys } from './passkeys.tsx'
import { PasswordForm } from './password-form.tsx'
import { ProfileForm } from './profile-form.tsx'
import { Provider } from './provider.tsx'
import { Sessions } from './sessions.tsx'

export function MePage() {
  const { error } = useSearch({ from: '/signed-in/outside/me' })
  return (
    <Page title="Your profile" about="How you sign in, and where you are signed in.">
      {error !== undefined && (
        <Callout kind="bad" title="Not connected">
          <p>The provider connected nobody: it refused, or its account belongs to somebody else here. Try again.</p>
        </Callout>
      )}
      <Section title="Profile">
        <Card>
          <Sheet narrow>
            <ProfileForm />
          </Sheet>
        </Card>
      </Section>
      <WaysAndSessions />
    </Page>
  )
}

/** All at once: a part that arrives later would move those below it. */
function WaysAndSessions() {
  const parts = useQueries({ queries: [passkeysQuery, signInAccountsQuery, waysQuery, sessionsQuery] })
  if (parts.some(({ isPending }) => isPending)) return <Skeleton rows={8} height="figure" />
  return (
    <>
      <Section title="Passkeys" about="Sign in with the finger, face or PIN of your device. Nobody can guess or phish a passkey.">
        <Passkeys />
      </Section>
      <Section title="Password">
        <Card>
          <Sheet narrow>
            <PasswordForm />
          </Sheet>
        </Card>
      </Section>
      <Provider />
      <Section title="Sessions" about="Each browser in which you are signed in. End one that you do not know.">
        <Sessions />
      </Section>
    </>
  )
}
