import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { BoundView } from '#model/snapshot.ts'
import { runs } from '../../../test/support/thorough.ts'
import { deliveryLimits } from '../segments/limits.ts'
import { RequiredViewFailed } from './build/failures.ts'
import { conversionLimits } from './limits.ts'
import { type History, judge, noHistory, type Outcome, segmentTolerance, unitTolerance, type Verdict } from './policy.ts'

const { retryDelayMsMin, retryDelayMsMax } = deliveryLimits
const { crashDelayMsMin, heldRestFactor, heldRestMsMax } = conversionLimits
const error = new Error('the reason')
const viewError = new RequiredViewFailed({ name: 'events', version: 1 } as BoundView, error)
const viewFailed = (tookMs: number, isFirst = true): Outcome => ({ kind: 'view failed', error: viewError, tookMs, isFirst })
const past = (history: Partial<History>): History => ({ ...noHistory, ...history })
const pause = (stepMs: number, msMin = 0) => ({ stepMs, msMin })

describe('what follows', () => {
  test.each<[string, Outcome, History, Verdict]>([
    ['a segment that is gone', { kind: 'gone' }, noHistory, { kind: 'end', as: 'gone', pause: pause(0) }],
    ['a damaged one', { kind: 'salvaged' }, noHistory, { kind: 'end', as: 'again', pause: pause(retryDelayMsMin) }],
    ['a lost one', { kind: 'quarantined' }, noHistory, { kind: 'end', as: 'quarantined', pause: pause(0) }],
    ['another format', { kind: 'unreadable', error }, noHistory, { kind: 'park', pause: pause(retryDelayMsMin) }],
    ['a slot that another gets', { kind: 'superseded' }, past({ failures: 1 }), { kind: 'retry', pause: pause(0) }],
    ['a process that a view ended', { kind: 'unfinished' }, past({ failures: 1 }), { kind: 'continue' }],
    ['a first fault', { kind: 'fault', error }, noHistory, { kind: 'retry', pause: pause(retryDelayMsMin) }],
    ['a fault that lasts', { kind: 'fault', error }, past({ pauses: 99 }), { kind: 'retry', pause: pause(retryDelayMsMax) }],
    ['a first failure', { kind: 'failed', error }, noHistory, { kind: 'retry', pause: pause(retryDelayMsMin) }],
    ['a second failure', { kind: 'failed', error }, past({ failures: 1 }), { kind: 'park', pause: pause(retryDelayMsMin) }],
    ['a first crash', { kind: 'crashed', error }, noHistory, { kind: 'retry', pause: pause(crashDelayMsMin) }],
    ['a third crash', { kind: 'crashed', error }, past({ crashes: 2 }), { kind: 'retry', pause: pause(4 * crashDelayMsMin) }],
    ['a fourth crash', { kind: 'crashed', error }, past({ crashes: 3 }), { kind: 'park', pause: pause(retryDelayMsMin) }],
    ['a required view', viewFailed(10), noHistory, { kind: 'hold', pause: pause(retryDelayMsMin, 10 * heldRestFactor) }],
    ['a slow one', viewFailed(1e9), past({ holds: 1 }), { kind: 'hold', pause: pause(2 * retryDelayMsMin, heldRestMsMax) }],
    ['one before its turn', viewFailed(10, false), noHistory, { kind: 'hold', pause: undefined }],
  ])('%s', (_, outcome, history, verdict) => {
    expect(judge(outcome, history).verdict).toEqual(verdict)
  })

  test('a unit of a job fails at its first failure, and at its second crash', () => {
    expect(judge({ kind: 'failed', error }, noHistory, unitTolerance).verdict.kind).toBe('park')
    const { verdict, history } = judge({ kind: 'crashed', error }, noHistory, unitTolerance)
    expect([verdict.kind, judge({ kind: 'crashed', error }, history, unitTolerance).verdict.kind]).toEqual(['retry', 'park'])
  })
})

test('whatever happens in whatever order, only proven failures park a segment, and as many as it takes always do', () => {
  const outcome: fc.Arbitrary<Outcome> = fc.oneof(
    fc.constantFrom<Outcome>({ kind: 'superseded' }, { kind: 'unfinished' }, { kind: 'fault', error }),
    fc.constantFrom<Outcome>({ kind: 'failed', error }, { kind: 'crashed', error }),
    fc.tuple(fc.nat(1e7), fc.boolean()).map(([tookMs, isFirst]) => viewFailed(tookMs, isFirst)),
  )
  const property = fc.property(fc.array(outcome, { maxLength: 60 }), (outcomes) => {
    let history = noHistory
    // Since a required view failed last: the records are whole then.
    const counted = { failed: 0, crashed: 0 }
    for (const outcome of outcomes) {
      const judged = judge(outcome, history)
      history = judged.history
      if (outcome.kind === 'failed' || outcome.kind === 'crashed') counted[outcome.kind] += 1
      if (outcome.kind === 'view failed') counted.failed = counted.crashed = 0
      const { verdict } = judged
      const isEnough = counted.failed >= segmentTolerance.failuresMax || counted.crashed >= segmentTolerance.crashesMax
      expect(verdict.kind === 'park').toBe(isEnough)
      if (isEnough) return
      expect(verdict.kind === 'hold').toBe(outcome.kind === 'view failed')
      expect(verdict.kind === 'continue').toBe(outcome.kind === 'unfinished')
      if (verdict.kind === 'continue' || verdict.pause === undefined) continue
      const isAtOnce = outcome.kind === 'superseded'
      expect(verdict.pause.stepMs).toBeGreaterThanOrEqual(isAtOnce ? 0 : retryDelayMsMin)
      expect(verdict.pause.stepMs).toBeLessThanOrEqual(isAtOnce ? 0 : retryDelayMsMax)
      expect(verdict.pause.msMin).toBeLessThanOrEqual(verdict.kind === 'hold' ? heldRestMsMax : 0)
    }
  })
  fc.assert(property, { numRuns: runs(300, 20_000) })
})
