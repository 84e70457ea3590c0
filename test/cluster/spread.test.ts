import { expect, test } from 'vitest'
import type { NodeName } from './layout.ts'
import { awaitApplied, type Change } from './spread.ts'

const nodes: readonly NodeName[] = ['fra-1', 'fra-2']
const change = (isAppliedBy: Change['isAppliedBy'], ageMs = 0): Change => ({
  ...{ text: 'a new key', madeAt: performance.now() - ageMs, nodes, isAppliedBy },
})

test('a change that is applied in time is no problem, and its time counts from the request', async () => {
  const { tookMs, problems } = await awaitApplied(
    change(async () => true, 1_000),
    nodes,
    2_000,
  )
  expect(problems).toEqual([])
  expect(tookMs).toBeGreaterThanOrEqual(1_000)
})

test('a change that is applied late, and one that a node lacks, are problems', async () => {
  const late = await awaitApplied(
    change(async () => true, 2_500),
    nodes,
    2_000,
  )
  expect(late.problems).toEqual(['a new key was applied only after 2.5 s'])
  const missing = await awaitApplied(
    change(async (name) => name === 'fra-1'),
    nodes,
    1,
    1,
  )
  expect(missing.problems).toEqual([expect.stringContaining('a new key is not on fra-2')])
})
