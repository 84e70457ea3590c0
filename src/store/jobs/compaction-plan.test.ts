import { describe, expect, test } from 'vitest'
import { hourMs } from '#lib/time-units.ts'
import { objectKey, parseArtifactKind } from '#model/artifact.ts'
import { commitId } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import { closedUntil, planCompactions } from './compaction-plan.ts'
import type { CommitToCompact } from './compactions.ts'

const endpointId = newId()
const nodeId = newId()
const at = Date.parse('2026-11-20T08:00:00.000Z')
const limits = { bytesMax: 100, sourcesMax: 4, bytesEnough: 50 }

/** A commit with files of so many bytes and half as many rows. */
function aCommit(seq: number, files: Readonly<Record<string, number>>, sealed_at = at, prefix = 'p'): CommitToCompact {
  const id = commitId(nodeId, 'abcdefghij', seq)
  const listed = Object.entries(files).map(([kind, bytes]) => {
    const parsed = parseArtifactKind(kind) ?? expect.fail(kind)
    const name = { endpointId, nodeId, incarnation: 'abcdefghij', seq, sealedAtMicros: sealed_at * 1000 }
    return { kind, marker_id: id, artifact: { key: objectKey(prefix, name, parsed), bytes, rows: bytes / 2, sha256: 'ab' } }
  })
  return { id, sealed_at, destination_id: 'd', bucket: 'b', region: 'local', files: listed }
}

const plan = (commits: readonly CommitToCompact[], period: 'hour' | 'day' = 'day') =>
  planCompactions(endpointId, commits, { period }, limits).map(({ kind, sources }) => [
    kind,
    ...sources.map(({ bytes }) => bytes),
  ])

describe('a plan', () => {
  test('merges small files of each kind in order, up to a size and a number', () => {
    const commits = [10, 60, 20, 30, 40, 2, 2, 2, 2, 50].map((bytes, seq) => aCommit(seq, { parquet: bytes, 'views/a/v1': 2 }))
    const made = plan(commits)
    expect(made.filter(([kind]) => kind === 'parquet')).toEqual([
      ['parquet', 10, 20, 30, 40],
      ['parquet', 2, 2, 2, 2],
    ])
    expect(made.filter(([kind]) => kind !== 'parquet')).toEqual([
      ['views/a/v1', 2, 2, 2, 2],
      ['views/a/v1', 2, 2, 2, 2],
      ['views/a/v1', 2, 2],
    ])
  })

  test('says where the rows of each file begin', () => {
    const [made] = planCompactions(
      endpointId,
      [aCommit(0, { parquet: 10 }), aCommit(1, { parquet: 4 })],
      { period: 'day' },
      limits,
    )
    expect(made?.sources.map(({ first_row, rows }) => [first_row, rows])).toEqual([
      [0, 5],
      [5, 2],
    ])
    expect(made).toMatchObject({ date: '2026-11-20', prefix: 'p', view: null, id: expect.stringMatching(/^compact-/) })
  })

  test('keeps kinds, places and periods apart, and leaves what is alone, and what is not Parquet', () => {
    expect(plan([aCommit(0, { parquet: 2 }), aCommit(1, { 'views/a/v1': 2 }), aCommit(2, { parquet: 2 }, at, 'q')])).toEqual([])
    expect(plan([aCommit(0, { segment: 2, 'dlq/a/v1': 2 }), aCommit(1, { segment: 2, 'dlq/a/v1': 2 })])).toEqual([])
    const hours = [aCommit(0, { parquet: 2 }), aCommit(1, { parquet: 4 }, at + hourMs)]
    expect([plan(hours, 'hour'), plan(hours, 'day')]).toEqual([[], [['parquet', 2, 4]]])
    expect(plan([aCommit(0, { parquet: 2 }), aCommit(1, { parquet: 2 }, at + 24 * hourMs)])).toEqual([])
  })
})

test('leaves out the files of views that stay as they are', () => {
  const commits = [0, 1].map((seq) => aCommit(seq, { parquet: 2, 'views/a/v1': 2, 'views/a/v2/redrive-v1': 2, 'views/ab/v1': 2 }))
  const made = planCompactions(endpointId, commits, { period: 'day', except_views: ['a'] }, limits)
  expect(made.map(({ kind }) => kind)).toEqual(['parquet', 'views/ab/v1'])
})

test.each([
  ['hour', '2026-11-20T08:09:59.999Z', '2026-11-20T07:00:00.000Z'],
  ['hour', '2026-11-20T08:10:00.000Z', '2026-11-20T08:00:00.000Z'],
  ['day', '2026-11-21T00:59:59.999Z', '2026-11-20T00:00:00.000Z'],
  ['day', '2026-11-21T01:00:00.000Z', '2026-11-21T00:00:00.000Z'],
] as const)('periods of a(n) %s that are closed at %s end before %s', (period, now, end) => {
  expect(closedUntil(period, Date.parse(now))).toBe(Date.parse(end))
})
