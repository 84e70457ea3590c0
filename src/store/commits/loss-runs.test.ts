import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { HeldSegments } from '#model/held-segments.ts'
import {
  addCommits,
  type Committed,
  findLossRun,
  type LossRun,
  missingOf,
  parseLossRuns,
  partitionRuns,
  printLossRuns,
  sumMissing,
  uniteLossRuns,
} from './loss-runs.ts'

const one = (seq: number, records: number | null): HeldSegments => ({ ...many(seq, seq), records, bytes: records ?? 5 })
const many = (first_seq: number, last_seq: number): HeldSegments => {
  const segments = last_seq - first_seq + 1
  return { first_seq, last_seq, segments, records: segments * 10, bytes: segments * 10 }
}
const commit = (seq: number, records = 10): Committed => ({ seq, records, wal_bytes: records })
const seqsOf = (runs: readonly LossRun[]) => runs.map(({ first_seq, last_seq }) => [first_seq, last_seq])

/** The segments of one log with their records, and commits that have some of them. */
const segments = fc.uniqueArray(fc.record({ seq: fc.nat({ max: 40 }), records: fc.integer({ min: 1, max: 9 }) }), {
  selector: ({ seq }) => seq,
})
const commits = fc.uniqueArray(
  fc.record({ seq: fc.nat({ max: 40 }), records: fc.nat({ max: 12 }), wal_bytes: fc.nat({ max: 9 }) }),
  {
    selector: ({ seq }) => seq,
  },
)

test('a segment is missing until its commit has as many records, in whatever order commits and reports come', () => {
  fc.assert(
    fc.property(segments, commits, fc.nat(), (held, done, cut) => {
      const [early, late] = [done.slice(0, cut % (done.length + 1)), done.slice(cut % (done.length + 1))]
      const all = held.map(({ seq, records }) => one(seq, records))
      const [first, second] = [all.filter((_, at) => at % 3 !== 0), all.filter((_, at) => at % 2 === 0)]
      const missing = missingOf(all, done)
      expect(addCommits(missingOf(all, early), late)).toEqual(missing)
      const told = uniteLossRuns(missingOf(first, early), missingOf(second, early))
      expect(addCommits(told, late)).toEqual(missingOf([...new Set([...first, ...second])], done))
      const isShort = ({ seq, records }: { readonly seq: number; readonly records: number }) =>
        (done.find((each) => each.seq === seq)?.records ?? -1) < records
      const short = held.filter(isShort)
      expect(missing.map(({ first_seq }) => first_seq)).toEqual(short.map(({ seq }) => seq).toSorted((a, b) => a - b))
      expect(sumMissing(missing).segments).toBe(short.length)
      for (const { seq } of held) expect(findLossRun(missing, seq) !== undefined).toBe(short.some((each) => each.seq === seq))
      expect(parseLossRuns(printLossRuns(missing))).toEqual(missing)
    }),
  )
})

describe('neighbours together', () => {
  test('are missing until each has a commit, with as many records in all', () => {
    const runs = missingOf([many(1, 3)], [commit(1), commit(3, 30)])
    expect([seqsOf(runs), sumMissing(runs)]).toEqual([[[1, 3]], { segments: 1, records: 0, bytes: 0 }])
    expect(addCommits(runs, [commit(2, 0)])).toEqual([])
    const short = missingOf([many(1, 2)], [commit(1), commit(2, 9)])
    expect(sumMissing(short)).toEqual({ segments: 1, records: 1, bytes: 1 })
  })

  test('with seqs of other segments between them get no records from their commits', () => {
    const sparse = { ...many(1, 5), segments: 2, records: 20 }
    const runs = missingOf([sparse], [commit(2), commit(3), commit(4)])
    expect(sumMissing(runs)).toEqual({ segments: 2, records: 20, bytes: 50 })
  })

  test('of which a later report names some keep the others', () => {
    const runs = uniteLossRuns(missingOf([many(1, 4)], [commit(4)]), missingOf([one(2, 25)], []))
    expect(seqsOf(runs)).toEqual([
      [1, 1],
      [2, 2],
      [3, 4],
    ])
    expect(uniteLossRuns(missingOf([many(1, 4)], [commit(4)]), missingOf([one(1, 9), one(2, 9), one(3, 9)], [])).length).toBe(3)
  })

  test('of which a later report names some miss the rest, without what is delivered', () => {
    const named = missingOf(
      [5, 6, 7, 8].map((seq) => one(seq, 10)),
      [],
    )
    const runs = uniteLossRuns(
      missingOf(
        [many(0, 9)],
        [0, 1, 2, 3, 4].map((seq) => commit(seq)),
      ),
      named,
    )
    expect(seqsOf(runs)).toEqual([5, 6, 7, 8, 9].map((seq) => [seq, seq]))
    expect(sumMissing(runs)).toEqual({ segments: 5, records: 50, bytes: 50 })
    expect(
      addCommits(
        runs,
        [5, 6, 7, 8, 9].map((seq) => commit(seq)),
      ),
    ).toEqual([])
    const beyond = uniteLossRuns(missingOf([many(0, 3)], []), missingOf([many(3, 9)], []))
    expect([seqsOf(beyond), sumMissing(beyond).records]).toEqual([
      [
        [0, 2],
        [3, 9],
      ],
      null,
    ])
  })
})

test('a count that is not known is not compared', () => {
  expect(sumMissing(missingOf([one(1, null)], []))).toEqual({ segments: 1, records: null, bytes: 5 })
  expect(missingOf([one(1, null)], [commit(1, 0)])).toEqual([])
})

test('very many are stored as fewer, with all seqs', () => {
  const runs = missingOf(
    Array.from({ length: 5_000 }, (_, at) => one(at * 2, 1)),
    [],
  )
  const stored = parseLossRuns(printLossRuns(runs))
  expect(stored.length).toBe(2_000)
  expect([stored[0]?.first_seq, stored.at(-1)?.last_seq, sumMissing(stored).records]).toEqual([0, 9_998, 5_000])
  expect(stored.filter((run) => run.segments === 1).length).toBeGreaterThan(1_000)
  // A report that names them again adds nothing: the seqs between them are not missing.
  expect(sumMissing(uniteLossRuns(stored, [...runs, ...missingOf([one(9_999, 1)], [])]))).toMatchObject({
    segments: 5_001,
    records: 5_001,
  })
})

test.each([
  ['all of it', [many(1, 3)], [one(1, 10), one(2, 10), one(3, 10)], []],
  ['a part of a run', [many(1, 3)], [one(1, 10), one(3, 10)], [[1, 3]]],
  [
    'some runs',
    [one(1, 10), one(2, 10), one(5, 10)],
    [many(2, 4)],
    [
      [1, 1],
      [5, 5],
    ],
  ],
  ['fewer records', [one(1, 10)], [one(1, 9)], [[1, 1]]],
  ['a number of records that is not known', [one(1, 10), one(2, null)], [one(1, null), one(2, 10)], []],
])('a machine that has what another one has, %s, lacks the rest', (_, held, others, lacking) => {
  const [left, same] = partitionRuns(missingOf(held, []), missingOf(others, []))
  expect(seqsOf(left)).toEqual(lacking)
  expect(left.length + same.length).toBe(held.length)
})
