import { expect, test } from 'vitest'
import { auditLimits } from '#model/limits.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { FailureBudget } from './failure-budget.ts'

const { failuresBurst, failuresPerMinute } = auditLimits

test('allows a burst, then a rate, for each account; counts what is too much', () => {
  const clock = new ManualClock(0)
  const budget = new FailureBudget(clock)
  const take = (account: string, times: number) =>
    Array.from({ length: times }, () => budget.take(account)).filter(Boolean).length
  expect(take('a', failuresBurst + 5)).toBe(failuresBurst)
  expect(take('b', 1)).toBe(1)
  clock.advance(60_000)
  expect(take('a', failuresPerMinute + 3)).toBe(failuresPerMinute)
  expect([budget.takeUnrecorded('a'), budget.takeUnrecorded('a'), budget.takeUnrecorded('never seen')]).toEqual([8, 0, 0])
  clock.advance(3_600_000)
  expect(take('a', 2 * failuresBurst)).toBe(failuresBurst)
})
