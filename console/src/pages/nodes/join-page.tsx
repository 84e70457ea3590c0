import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { type CreatedJoinToken, createJoinToken, joinTokensKey } from '../../api/join-tokens.ts'
import { Callout } from '../../design/callout.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { SelectField, TextField } from '../../design/field.tsx'
import { Card, Page, Sheet } from '../../design/layout.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { useChange } from '../../shell/use-change.ts'
import { useFields } from '../../shell/use-fields.ts'
import style from './nodes.module.css'

/** Makes a join token, shows it once, and says how to start a node with it. */
export function JoinPage() {
  const [created, setCreated] = useState<CreatedJoinToken>()
  return (
    <Page
      trail={<Link to="/operate/nodes">Nodes</Link>}
      title="Add a node"
      about="A token lets a machine join a region once. Later starts of the node do not need it."
    >
      <Sheet>
        {created === undefined ? (
          <Card>
            <TokenForm onCreated={setCreated} />
          </Card>
        ) : (
          <Created token={created} />
        )}
      </Sheet>
    </Page>
  )
}

const lifetimes = [
  { value: '1h', label: '1 hour' },
  { value: '24h', label: '1 day' },
  { value: '720h', label: '30 days' },
  { value: '8760h', label: '1 year' },
] as const

type TokenValues = {
  readonly name: string
  readonly region: string
  readonly uses_max: string
  readonly ttl: (typeof lifetimes)[number]['value']
}

function TokenForm({ onCreated }: { readonly onCreated: (token: CreatedJoinToken) => void }) {
  const { values, field } = useFields<TokenValues>({ name: '', region: '', uses_max: '1', ttl: '24h' })
  const { region, uses_max } = values
  const create = useChange({
    call: () =>
      createJoinToken({ ...values, region: region === '' ? null : region, uses_max: uses_max === '' ? null : Number(uses_max) }),
    leave: onCreated,
    changes: [joinTokensKey],
  })
  return (
    <CallForm call={create} action="Create join token">
      {(errorOf) => (
        <>
          <TextField
            label="Name"
            {...field('name', errorOf)}
            required
            autoFocus
            maxLength={128}
            autoComplete="off"
            placeholder="frankfurt, rack 4"
            hint="So that you recognise it in the list, and at the nodes that joined with it."
          />
          <TextField
            label="Region"
            {...field('region', errorOf)}
            maxLength={3}
            autoComplete="off"
            placeholder="fra"
            hint="Three letters. Empty: nodes of every region may join with it."
          />
          <TextField
            label="Machines"
            {...field('uses_max', errorOf)}
            type="number"
            min={1}
            hint="How many may join with it. Empty: any number."
          />
          <SelectField label="Valid for" {...field('ttl')} choices={lifetimes} />
        </>
      )}
    </CallForm>
  )
}

function Created({ token }: { readonly token: CreatedJoinToken }) {
  return (
    <>
      <Callout kind="warn" title="Copy the token now">
        <p>It is shown only here: Inlet keeps a hash.</p>
      </Callout>
      <CodeBlock label="Join token" code={token.join_token} wrap />
      <CodeBlock label="On the machine of the node" code={startCommand(token)} />
      <p className={style.soft}>
        Put the address of the API for nodes of your control in place of <code>control.example.com:8082</code>, and the addresses
        that clients reach in place of <code>203.0.113.7</code>. The node appears in the list as soon as it has joined.
      </p>
      <div>
        <ButtonLink to="/operate/nodes">I have copied the token</ButtonLink>
      </div>
    </>
  )
}

function startCommand({ join_token, region }: CreatedJoinToken): string {
  return [
    `export INLET_JOIN_TOKEN=${join_token}`,
    `export INLET_REGION=${region ?? 'fra'} INLET_CONTROL_URL=https://control.example.com:8082`,
    `export INLET_BASE_URL=${window.location.origin} INLET_NODE_ADDRESSES=203.0.113.7`,
    'node src/main.ts node',
  ].join('\n')
}
