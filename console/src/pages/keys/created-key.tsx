import { useQuery } from '@tanstack/react-query'
import { type CreatedApiKey, firstUseQuery } from '../../api/keys.ts'
import { Callout } from '../../design/callout.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { Section } from '../../design/layout.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { useAccount } from '../../shell/session.tsx'
import { managementExample } from './examples.ts'
import { SendExamples } from './send-examples.tsx'

/** The key, for the only time, and how to use it. */
export function CreatedKey({ created }: { readonly created: CreatedApiKey }) {
  const account = useAccount()
  const { api_key, scopes, endpoint_ids, public: isPublic } = created
  const [first = 'ingest'] = scopes.filter((scope) => scope !== 'ingest')
  return (
    <>
      <Callout kind="warn" title="Copy the key now">
        <p>It is shown only now: Inlet stores a hash of it. If you lose the key, create another one.</p>
      </Callout>
      <CodeBlock label="API key" code={api_key} wrap />
      {scopes.includes('ingest') ? (
        <Section title="Send an event" about="The key and the address are filled in: paste one, and see below that it worked.">
          <SendExamples apiKey={api_key} endpointIds={endpoint_ids} isPublic={isPublic} />
        </Section>
      ) : (
        <Section title="Call the API" about="A program exchanges the key for a token, which is valid for 15 minutes.">
          <CodeBlock label="curl" code={managementExample(window.location.origin, api_key, first)} />
        </Section>
      )}
      <FirstUse account={account} id={created.id} />
      <div>
        <ButtonLink to="/in/$account/keys" params={{ account }}>
          I have copied the key
        </ButtonLink>
      </div>
    </>
  )
}

/** Follows the key until it is used, so that one sees that an example worked. */
function FirstUse({ account, id }: { readonly account: string; readonly id: string }) {
  const { data: usedAt } = useQuery(firstUseQuery(account, id))
  return usedAt == null ? (
    <Callout kind="note" title="Waiting for the first use">
      <p>Run an example. This message changes within seconds after Inlet accepts the key.</p>
    </Callout>
  ) : (
    <Callout kind="good" title="The key works">
      <p>Inlet accepted it. The commits of the endpoint show when the data is in your bucket.</p>
    </Callout>
  )
}
