import fc from 'fast-check'
import { expect, test } from 'vitest'
import { countSeqs, findRun, parseRuns, printRuns, type SeqRuns, subtractRuns, uniteRuns } from './seq-runs.ts'

const seqs = fc.uniqueArray(fc.nat({ max: 60 }))
const runsOf = (some: Iterable<number>): SeqRuns => [...some].reduce<SeqRuns>((runs, seq) => uniteRuns(runs, [[seq, seq]]), [])
const seqsOf = (runs: SeqRuns) => runs.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, at) => first + at))
const ascending = (some: Iterable<number>) => [...some].toSorted((a, b) => a - b)

test('runs are sets', () => {
  fc.assert(
    fc.property(seqs, seqs, (one, other) => {
      const [a, b] = [runsOf(one), runsOf(other)]
      expect(seqsOf(a)).toEqual(ascending(one))
      expect(seqsOf(uniteRuns(a, b))).toEqual(ascending(new Set([...one, ...other])))
      expect(seqsOf(subtractRuns(a, b))).toEqual(ascending(new Set(one).difference(new Set(other))))
      expect(countSeqs(a)).toBe(one.length)
      for (let seq = 0; seq <= 60; seq += 1) expect(findRun(a, seq) !== undefined).toBe(one.includes(seq))
      expect(parseRuns(printRuns(a))).toEqual(a)
    }),
  )
})

test('many runs are stored as fewer that have all seqs', () => {
  const runs = Array.from({ length: 3_000 }, (_, at) => [at * 10 + (at % 7), at * 10 + (at % 7)] as const)
  const stored = parseRuns(printRuns(runs))
  expect(stored.length).toBeLessThanOrEqual(1_000)
  expect(subtractRuns(runs, stored)).toEqual([])
  expect([stored[0]?.[0], stored.at(-1)?.[1]]).toEqual([runs[0]?.[0], runs.at(-1)?.[1]])
})
