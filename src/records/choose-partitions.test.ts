import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../test/support/thorough.ts'
import { type Candidate, choosePartitions } from './choose-partitions.ts'

const needs = (records: number, ...partitions: readonly string[]): Candidate => ({ records, partitions })

const recordsWith = (candidates: readonly Candidate[], chosen: ReadonlySet<string>) =>
  candidates.reduce((sum, { records, partitions }) => sum + (partitions.every((each) => chosen.has(each)) ? records : 0), 0)

test.each<[string, readonly Candidate[], number, readonly string[]]>([
  ['the most records first', [needs(1, 'a'), needs(3, 'b'), needs(2, 'c')], 2, ['b', 'c']],
  ['equal ones as they come', [needs(1, 'b'), needs(1, 'a')], 1, ['b']],
  ['nothing of a candidate that is too large', [needs(9, 'a', 'b', 'c'), needs(1, 'd')], 2, ['d']],
  ['the most records for each partition', [needs(3, 'a', 'b', 'c'), needs(2, 'd'), needs(2, 'e')], 3, ['d', 'e']],
  ['partitions that others share', [needs(4, 'a', 'b'), needs(1, 'c', 'd'), needs(1, 'a', 'c')], 3, ['a', 'b', 'c']],
  ['the largest although a small one comes first', [needs(3, 'a'), needs(8, 'b', 'c', 'd', 'e')], 4, ['b', 'c', 'd', 'e']],
  ['nothing of nothing', [], 2, []],
])('chooses %s', (_, candidates, partitionsMax, expected) => {
  expect([...choosePartitions(candidates, partitionsMax)].toSorted()).toEqual(expected)
})

test('is the best choice if each record needs one partition, and leaves no place that a record could have', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f')
  const candidate = fc.record({
    records: fc.integer({ min: 1, max: 9 }),
    partitions: fc.uniqueArray(name, { minLength: 1, maxLength: 5 }).map((each) => each.toSorted()),
  })
  const distinct = { selector: ({ partitions }: Candidate) => partitions.join(), maxLength: 12 }
  fc.assert(
    fc.property(fc.uniqueArray(candidate, distinct), fc.integer({ min: 1, max: 5 }), (candidates, partitionsMax) => {
      const chosen = choosePartitions(candidates, partitionsMax)
      expect(chosen.size).toBeLessThanOrEqual(partitionsMax)
      for (const { partitions } of candidates) {
        const missing = partitions.filter((each) => !chosen.has(each))
        expect(missing.length === 0 || chosen.size + missing.length > partitionsMax).toBe(true)
      }
      const single = candidates.filter(({ partitions }) => partitions.length === 1)
      const best = single.map(({ records }) => records).toSorted((one, other) => other - one)
      const expected = best.slice(0, partitionsMax).reduce((sum, records) => sum + records, 0)
      expect(recordsWith(single, choosePartitions(single, partitionsMax))).toBe(expected)
    }),
    { numRuns: runs(300, 10_000) },
  )
})
