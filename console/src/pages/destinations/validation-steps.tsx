import type { Destination, ValidationStep } from '../../api/destinations.ts'
import { Badge, type Tone } from '../../design/badge.tsx'
import { Step, Steps } from '../../design/steps.tsx'
import style from './destinations.module.css'
import { SettingToChange } from './setting-to-change.tsx'
import { labelOf, sentence } from './validation-words.ts'

type Outcome = ValidationStep['outcome']

const words = { passed: 'passed', failed: 'failed', warning: 'warning', skipped: 'not reached' } as const satisfies Record<
  Outcome,
  string
>
const tones = { passed: 'good', failed: 'bad', warning: 'warn', skipped: 'none' } as const satisfies Record<Outcome, Tone>

type ValidationStepsProps = { readonly destination: Destination; readonly steps: readonly ValidationStep[] }

/** Each step, why it failed, and the way to what must change. */
export function ValidationSteps({ destination, steps }: ValidationStepsProps) {
  return (
    <Steps>
      {steps.map((each) => (
        <Step
          key={each.step}
          mark={tones[each.outcome]}
          title={labelOf(each.step)}
          aside={<Badge tone={tones[each.outcome]}>{words[each.outcome]}</Badge>}
        >
          {each.effect !== null && <p className={style.message}>Delivery works without it, but {each.effect}.</p>}
          {each.message !== null && <p className={style.message}>{sentence(each.message)}</p>}
          {each.setting !== null && <SettingToChange destination={destination} setting={each.setting} value={each.value} />}
        </Step>
      ))}
    </Steps>
  )
}

/** Holds the place of the steps while they are tried. */
export function RunningSteps({ steps }: { readonly steps: readonly ValidationStep['step'][] }) {
  return (
    <Steps>
      {steps.map((step) => (
        <Step key={step} mark="busy" title={labelOf(step)} aside={<Badge>trying</Badge>} />
      ))}
    </Steps>
  )
}
