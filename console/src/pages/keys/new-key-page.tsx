import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { CreatedApiKey } from '../../api/keys.ts'
import { Card, Page, Sheet } from '../../design/layout.tsx'
import { MembersOnly } from '../../shell/members-only.tsx'
import { useAccount } from '../../shell/session.tsx'
import { CreatedKey } from './created-key.tsx'
import { KeyForm } from './key-form.tsx'

/** Creates a key, shows it once, and shows how to use it. */
export function NewKeyPage() {
  const account = useAccount()
  const [created, setCreated] = useState<CreatedApiKey>()
  return (
    <Page
      trail={
        <Link to="/in/$account/keys" params={{ account }}>
          API keys
        </Link>
      }
      title={created === undefined ? 'Create a key' : created.name}
      about={created === undefined ? 'Give it only what it needs: whoever finds the key can use it.' : undefined}
    >
      {created === undefined ? (
        <MembersOnly>
          <Sheet>
            <Card>
              <KeyForm onCreated={setCreated} />
            </Card>
          </Sheet>
        </MembersOnly>
      ) : (
        <CreatedKey created={created} />
      )}
    </Page>
  )
}
