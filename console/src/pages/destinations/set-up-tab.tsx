import { getRouteApi, Link } from '@tanstack/react-router'
import type { Destination, ObjectStore } from '../../api/destinations.ts'
import { Callout } from '../../design/callout.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { Card, Section } from '../../design/layout.tsx'
import { Step, Steps } from '../../design/steps.tsx'
import { TabBar, tabClass } from '../../design/tabs.tsx'
import type { DestinationSearch } from './destination-search.ts'
import style from './destinations.module.css'
import { LastSteps } from './last-steps.tsx'
import { OwnSetUp } from './own-set-up.tsx'
import { commandsOf, keyStatement, rolePolicy, toJson } from './policies.ts'

const route = getRouteApi('/signed-in/in/$account/destinations/$destination')

type SetUpProps = { readonly destination: Destination; readonly store: ObjectStore }

/** Steps of the owner of the bucket, as commands or as policies to paste. */
export function SetUpTab({ destination, store }: SetUpProps) {
  const { how } = route.useSearch()
  const { allowed_buckets } = store
  if (allowed_buckets !== null) return <OwnSetUp destination={destination} store={store} allowed={allowed_buckets} />
  return (
    <>
      {store.principal_arn === null && (
        <Callout kind="warn" title="The operator of this installation must act first">
          Nobody knows which AWS identity Inlet runs as, so the trust policy has a placeholder that AWS rejects. The operator sets{' '}
          <code>INLET_AWS_PRINCIPAL_ARN</code>.
        </Callout>
      )}
      <Section title={`Let Inlet write to ${destination.bucket}`} about="The owner of the bucket does this once.">
        <TabBar label="How">
          <How label="With commands" isCurrent={how === undefined} search={{ tab: 'set-up' }} />
          <How label="With policies to paste" isCurrent={how === 'policies'} search={{ tab: 'set-up', how: 'policies' }} />
        </TabBar>
        <Card>
          {how === 'policies' ? <ByPolicies {...{ destination, store }} /> : <ByCommands {...{ destination, store }} />}
        </Card>
      </Section>
    </>
  )
}

type HowProps = { readonly label: string; readonly isCurrent: boolean; readonly search: DestinationSearch }

function How({ label, isCurrent, search }: HowProps) {
  const params = route.useParams()
  return (
    <Link
      to="/in/$account/destinations/$destination"
      params={params}
      search={search}
      activeOptions={{ exact: true }}
      className={tabClass}
      aria-current={isCurrent ? 'page' : undefined}
    >
      {label}
    </Link>
  )
}

function ByCommands({ destination, store }: SetUpProps) {
  const { bucket, bucket_policy, kms_key_arn } = destination
  return (
    <Steps>
      <Step mark={1} title="Create the role, and let it use the bucket">
        <p className={style.message}>
          Run this where you are signed in as an administrator of the account of the role. It creates the role, and changes
          nothing that exists.
        </p>
        <CodeBlock label="Shell" code={commandsOf(destination, store)} />
      </Step>
      <Step mark={2} title="If the bucket belongs to another account">
        <p className={style.message}>
          Then the bucket must allow the role too: add these statements to its policy.
          {kms_key_arn !== null && ' The same holds for the key: its statement is among the policies to paste.'}
        </p>
        <CodeBlock label={`Policy of the bucket ${bucket}`} code={toJson(bucket_policy)} />
      </Step>
      <LastSteps destination={destination} store={store} first={3} />
    </Steps>
  )
}

function ByPolicies({ destination, store }: SetUpProps) {
  const { bucket, bucket_policy, kms_key_arn, role_arn, trust_policy } = destination
  return (
    <Steps>
      <Step mark={1} title="Create the role">
        <p className={style.message}>
          In IAM, create a role with a custom trust policy. Its ARN must become <code>{role_arn}</code>. The external id in the
          policy makes sure that only this account of Inlet can use it.
        </p>
        <CodeBlock label="Trust policy of the role" code={toJson(trust_policy)} />
      </Step>
      <Step mark={2} title="Let the role use the bucket">
        <p className={style.message}>Add this to the permissions of the role, as an inline policy.</p>
        <CodeBlock label="Policy of the role" code={toJson(rolePolicy(destination))} />
        <p className={style.message}>If the bucket belongs to another account, add this to the policy of the bucket too.</p>
        <CodeBlock label={`Policy of the bucket ${bucket}`} code={toJson(bucket_policy)} />
      </Step>
      {kms_key_arn !== null && (
        <Step mark={3} title="Let the role use the key">
          <p className={style.message}>
            Add this statement to the policy of the key, if the key belongs to another account or its policy does not leave the
            decision to IAM.
          </p>
          <CodeBlock label="Statement for the policy of the key" code={toJson(keyStatement(destination))} />
        </Step>
      )}
      <LastSteps destination={destination} store={store} first={kms_key_arn === null ? 3 : 4} />
    </Steps>
  )
}
