import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { accountsKey, type CreatedAccount, createAccount } from '../../api/accounts.ts'
import { Callout } from '../../design/callout.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { TextField } from '../../design/field.tsx'
import { Card, Inline, Page, Sheet } from '../../design/layout.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { useChange } from '../../shell/use-change.ts'
import { InviteToAccount } from './invite-to-account.tsx'

/** Creates an account, and shows its first key once. */
export function NewAccountPage() {
  const [created, setCreated] = useState<CreatedAccount>()
  return (
    <Page
      trail={<Link to="/operate/accounts">Accounts</Link>}
      title={created === undefined ? 'Create an account' : created.name}
      about={created === undefined ? 'A customer, a team or a stage: whatever must not see the data of the others.' : undefined}
    >
      <Sheet>
        {created === undefined ? (
          <Card>
            <AccountForm onCreated={setCreated} />
          </Card>
        ) : (
          <Created account={created} />
        )}
      </Sheet>
    </Page>
  )
}

function AccountForm({ onCreated }: { readonly onCreated: (account: CreatedAccount) => void }) {
  const [name, setName] = useState('')
  const create = useChange({ call: () => createAccount(name), leave: onCreated, changes: [accountsKey] })
  return (
    <CallForm call={create} action="Create account">
      {(errorOf) => (
        <TextField
          label="Name"
          value={name}
          onChange={setName}
          required
          autoFocus
          maxLength={128}
          autoComplete="off"
          placeholder="acme"
          hint="No other account of the installation has it."
          error={errorOf('name')}
        />
      )}
    </CallForm>
  )
}

function Created({ account }: { readonly account: CreatedAccount }) {
  return (
    <>
      <Callout kind="warn" title="Copy the first key now">
        <p>It may do everything in the account, and is shown only here.</p>
      </Callout>
      <CodeBlock label="API key" code={account.first_key.api_key} wrap />
      <p>Nobody belongs to the account yet. Its first owner invites the others.</p>
      <Inline>
        <InviteToAccount account={account} look="primary">
          Invite its first owner
        </InviteToAccount>
        <ButtonLink to="/operate/accounts/$id" params={{ id: account.id }}>
          I have copied the key
        </ButtonLink>
      </Inline>
    </>
  )
}
