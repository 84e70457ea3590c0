import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { createSecret, rotateSecret, type Secret, type SecretWithValue, secretsKey, secretsQuery } from '../../api/secrets.ts'
import { Callout } from '../../design/callout.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { SelectField, TextField } from '../../design/field.tsx'
import { Card, Page, Sheet } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { Failure } from '../../shell/failure.tsx'
import { MembersOnly } from '../../shell/members-only.tsx'
import { useAccount } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import { useFields } from '../../shell/use-fields.ts'

const route = getRouteApi('/signed-in/in/$account/secrets/new')

/** Creates a secret, or gives one a new value. Shows the value once if Inlet made it. */
export function NewSecretPage() {
  const account = useAccount()
  const { rotate } = route.useSearch()
  const [done, setDone] = useState<SecretWithValue>()
  return (
    <Page
      trail={
        <Link to="/in/$account/secrets" params={{ account }}>
          Secrets
        </Link>
      }
      title={done?.name ?? (rotate === undefined ? 'Create a secret' : 'Rotate a secret')}
    >
      <MembersOnly>
        {done !== undefined ? <Done account={account} secret={done} /> : <Form rotate={rotate} onDone={setDone} />}
      </MembersOnly>
    </Page>
  )
}

type FormProps = { readonly rotate: string | undefined; readonly onDone: (secret: SecretWithValue) => void }

function Form({ rotate, onDone }: FormProps) {
  const secrets = useQuery(secretsQuery(useAccount()))
  if (secrets.isError) return <Failure error={secrets.error} onRetry={() => void secrets.refetch()} />
  if (secrets.isPending) return <Skeleton rows={3} height="figure" />
  const secret = secrets.data.items.find(({ id }) => id === rotate)
  if (rotate !== undefined && secret === undefined) return <Callout kind="warn" title="This secret was deleted" />
  return (
    <Sheet>
      <Card>
        <SecretForm secret={secret} onDone={onDone} />
      </Card>
    </Sheet>
  )
}

const sources = [
  { value: 'made', label: 'Inlet makes a random value and shows it once' },
  { value: 'given', label: 'I have a value' },
] as const

const encodings = [
  { value: 'text', label: 'Text' },
  { value: 'base64', label: 'Base64 of the bytes' },
] as const

type Values = {
  readonly name: string
  readonly source: 'made' | 'given'
  readonly value: string
  readonly encoding: 'text' | 'base64'
}

const blank: Values = { name: '', source: 'made', value: '', encoding: 'text' }

function SecretForm({ secret, onDone }: { readonly secret: Secret | undefined; readonly onDone: FormProps['onDone'] }) {
  const account = useAccount()
  const { values, field } = useFields(blank)
  const set = useChange({
    call: () => {
      const { name, source, value, encoding } = values
      const given = source === 'made' ? { encoding } : { value, encoding }
      return secret === undefined ? createSecret(name, given) : rotateSecret(secret.id, given)
    },
    leave: onDone,
    changes: [secretsKey(account)],
  })
  return (
    <CallForm call={set} action={secret === undefined ? 'Create secret' : `Rotate ${secret.name}`}>
      {(errorOf) => (
        <>
          {secret === undefined ? (
            <TextField
              label="Name"
              {...field('name', errorOf)}
              required
              maxLength={64}
              autoComplete="off"
              placeholder="email_key"
              hint="Views call it by this name."
            />
          ) : (
            <Callout kind="warn" title="Hashes change">
              <p>From the next segment on, equal texts have other hashes than before. The old value is not kept.</p>
            </Callout>
          )}
          <SelectField label="Value" {...field('source')} choices={sources} />
          {values.source === 'given' && (
            <>
              <TextField
                label="Your value"
                type="password"
                {...field('value', errorOf)}
                required
                autoComplete="off"
                hint="16 to 1024 bytes. Inlet stores it encrypted and never shows it."
              />
              <SelectField label="Written as" {...field('encoding', errorOf)} choices={encodings} />
            </>
          )}
        </>
      )}
    </CallForm>
  )
}

function Done({ account, secret: { name, value } }: { readonly account: string; readonly secret: SecretWithValue }) {
  return (
    <>
      {value !== undefined && (
        <>
          <Callout kind="warn" title="Copy the value now">
            <p>It is shown only now. Without a copy, nobody can make the same hashes elsewhere.</p>
          </Callout>
          <CodeBlock label="Value, in base64" code={value} wrap />
        </>
      )}
      <CodeBlock label="In a view" code={`hmac_sha256('${name}', email)`} />
      <div>
        <ButtonLink to="/in/$account/secrets" params={{ account }}>
          {value === undefined ? 'All secrets' : 'I have copied the value'}
        </ButtonLink>
      </div>
    </>
  )
}
