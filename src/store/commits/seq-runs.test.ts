import fc from 'fast-check'
import { expect, test } from 'vitest'
import { countSeqs, type SeqRuns, subtractRuns, uniteRuns } from './seq-runs.ts'

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
    }),
  )
})
