import type { Destination, ObjectStore } from '../../api/destinations.ts'
import { CodeBlock } from '../../design/code-block.tsx'
import { Card, Section } from '../../design/layout.tsx'
import { Step, Steps } from '../../design/steps.tsx'
import { useAccount } from '../../shell/session.tsx'
import { entryOf, isAllowed } from './allowed-buckets.ts'
import style from './destinations.module.css'
import { LastSteps } from './last-steps.tsx'
import { quote } from './policies.ts'

type OwnSetUpProps = {
  readonly destination: Destination
  readonly store: ObjectStore
  readonly allowed: readonly string[]
}

/** Steps to do once where the credentials of the installation open the bucket. */
export function OwnSetUp({ destination, store, allowed }: OwnSetUpProps) {
  const account = useAccount()
  const entry = entryOf(destination)
  return (
    <Section title={`Let Inlet write to ${destination.bucket}`} about="This is done once.">
      <Card>
        <Steps>
          <Step mark={1} title="Allow the bucket">
            {isAllowed(destination, allowed) ? (
              <p className={style.message}>
                Done: the operator allows this account to use <code>{entry}</code>.
              </p>
            ) : (
              <>
                <p className={style.message}>
                  Inlet uses credentials of its own, so its operator says which account uses which bucket. Ask them to allow{' '}
                  <code>{entry}</code>, on the screen of this account or with this command.
                </p>
                <CodeBlock label="Shell" code={`npm run inlet -- accounts buckets ${account} --allow ${quote(entry)}`} wrap />
              </>
            )}
          </Step>
          <LastSteps destination={destination} store={store} first={2} />
        </Steps>
      </Card>
    </Section>
  )
}
