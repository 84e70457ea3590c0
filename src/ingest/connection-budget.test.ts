import { expect, test } from 'vitest'
import { ConnectionBudget } from './connection-budget.ts'

test('one too many is dropped and counted; a released place can be taken again', () => {
  const budget = new ConnectionBudget(2)
  expect([budget.tryTake(), budget.tryTake(), budget.tryTake()]).toEqual([true, true, false])
  expect([budget.open, budget.dropped]).toEqual([2, 1])
  budget.release()
  expect(budget.tryTake()).toBe(true)
  budget.countDropped()
  expect([budget.open, budget.dropped]).toEqual([2, 2])
})
