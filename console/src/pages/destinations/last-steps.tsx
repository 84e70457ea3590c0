import type { Destination, ObjectStore } from '../../api/destinations.ts'
import { CodeBlock } from '../../design/code-block.tsx'
import { Step } from '../../design/steps.tsx'
import style from './destinations.module.css'
import { lifecycleRules, toJson } from './policies.ts'
import { Validation } from './validation.tsx'

type LastStepsProps = { readonly destination: Destination; readonly store: ObjectStore; readonly first: number }

/** Steps that are left once Inlet may use the bucket. */
export function LastSteps({ destination, store, first }: LastStepsProps) {
  return (
    <>
      <Step mark={first} title="Remove uploads that were never finished">
        <p className={style.message}>
          A lifecycle rule of the bucket removes what is left of uploads when a machine dies. Add it to the rules that the bucket
          has.
        </p>
        <CodeBlock label="Lifecycle rule" code={toJson(lifecycleRules)} />
      </Step>
      <Step mark={first + 1} title="Validate">
        <p className={style.message}>
          {store.has_roles
            ? 'Inlet assumes the role and tries each step of a delivery with a small object. A new role or policy may take a minute to reach all of AWS.'
            : 'Inlet tries each step of a delivery with a small object.'}
        </p>
        <Validation destination={destination} />
      </Step>
    </>
  )
}
