import { expect, test } from 'vitest'
import { ConnectionBudget } from './connection-budget.ts'

test('a connection above the limit is dropped and counted; a released slot can be acquired again', () => {
  const budget = new ConnectionBudget(2)
  expect([budget.tryAcquire(), budget.tryAcquire(), budget.tryAcquire()]).toEqual([true, true, false])
  expect([budget.open, budget.dropped]).toEqual([2, 1])
  budget.release()
  expect(budget.tryAcquire()).toBe(true)
  budget.countDropped()
  expect([budget.open, budget.dropped]).toEqual([2, 2])
})
