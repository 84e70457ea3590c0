/** Views with `dedupe_within`: rows are compared with those of earlier segments, by an index that may be lost at any time. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isMarkerKind, parseArtifactKind } from '#model/artifact.ts'
import type { Definition } from '#model/definition.ts'
import type { BoundView } from '#model/snapshot.ts'
import { aBoundView, aDestination, anEndpointTo, DeliveryNode } from '../support/delivery-node.ts'
import { queryRows } from '../support/parquet.ts'
import { runs } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const definition: Definition = {
  columns: [
    { name: 'id', type: 'VARCHAR', path: '$.id' },
    { name: 'n', type: 'INTEGER', path: '$.n', required: true },
  ],
  dedupe_by: ['id'],
  dedupe_within: '1m',
}
const start = Date.UTC(2026, 10, 20, 12)
const second = 1_000

const aWindow = (change: Partial<BoundView> = {}) => aBoundView({ name: 'once', definition, ...change })
const anEndpointWith = (...views: readonly BoundView[]) =>
  anEndpointTo(aDestination(), { output_formats: ['parquet', 'parquet_views'], views: [...views] })

const recordsOf = (...records: readonly (readonly [id: string | null, n: number | string])[]) =>
  records.map(([id, n]) => JSON.stringify({ id, n })).join('\n')

/** Returns column `n` of the rows that all commits have, in order of the commits. */
async function written(node: DeliveryNode, { view_id }: BoundView): Promise<readonly number[]> {
  const commits = new Map(node.commits.map((commit) => [commit.id, commit]))
  const files = [...commits.values()].flatMap(({ artifacts }) =>
    Object.entries(artifacts).filter(
      ([kind, file]) => file.view_id === view_id && !isMarkerKind(kind) && parseArtifactKind(kind)?.type === 'view',
    ),
  )
  const rows: number[] = []
  for (const [, { key }] of files)
    rows.push(
      ...(await queryRows(`SELECT n FROM '${join(node.config.paths.buckets, 'bucket', key)}'`)).rows.map(([n]) => Number(n)),
    )
  return rows
}

function outcomes(node: DeliveryNode, { view_id }: BoundView) {
  const commits = new Map(node.commits.map((commit) => [commit.id, commit]))
  return [...commits.values()].map(({ views }) => views.find((view) => view.view_id === view_id && view.is_shadow !== true))
}

const indexPath = (node: DeliveryNode, endpointId: string, { view_id }: BoundView) =>
  join(node.config.paths.windows, endpointId, `${view_id}.db`)

const commitsOf = (node: DeliveryNode, count: number) =>
  until(`${count} commits`, () => new Set(node.commits.map(({ id }) => id)).size === count, 30_000)

describe('a view with a window', () => {
  test('leaves out rows whose keys earlier segments have, and counts them', async () => {
    const view = aWindow()
    const beside = aWindow({ definition: { ...definition, dedupe_within: undefined }, name: 'beside' })
    const endpoint = anEndpointWith(view, beside)
    await using node = await DeliveryNode.create(endpoint)
    await node.sealAt(start, endpoint.id, recordsOf(['a', 1], ['b', 2], ['a', 3], [null, 4]))
    await node.sealAt(start + 30 * second, endpoint.id, recordsOf(['b', 5], ['c', 6], [null, 7], ['d', 'no number']))
    await node.sealAt(start + 59 * second, endpoint.id, recordsOf(['a', 8], ['d', 9]))
    await node.sealAt(start + 60 * second, endpoint.id, recordsOf(['a', 10], ['c', 11]))
    await node.start()
    await commitsOf(node, 4)
    // The dead letter of segment 2 is no row with its key.
    expect(await written(node, view)).toEqual([1, 2, 4, 6, 7, 9, 10])
    expect(await written(node, beside)).toEqual([1, 2, 4, 5, 6, 7, 8, 9, 10, 11])
    expect(outcomes(node, view)).toMatchObject([
      { processed: 4, accepted: 3, dropped: 1, dlq: 0, duplicates: 1 },
      { processed: 4, accepted: 2, dropped: 1, dlq: 1, duplicates: 1 },
      { processed: 2, accepted: 1, dropped: 1, dlq: 0, duplicates: 1 },
      { processed: 2, accepted: 1, dropped: 1, dlq: 0, duplicates: 1 },
    ])
    expect(outcomes(node, view).some((outcome) => outcome && 'window_seconds' in outcome)).toBe(false)
    await node.stop()
    expect(readdirSync(join(node.config.paths.windows, endpoint.id))).toEqual([`${view.view_id}.db`])
  })

  test.each<[string, (path: string) => void]>([
    ['removed', (path) => rmSync(path)],
    ['damaged', (path) => flipByteWith(path, 'segments_at')],
    ['replaced by another file', (path) => writeFileSync(path, 'no index')],
  ])('rebuilds an index that was %s', async (_, harm) => {
    const view = aWindow()
    const endpoint = anEndpointWith(view)
    await using node = await DeliveryNode.create(endpoint)
    await node.sealAt(start, endpoint.id, recordsOf(['a', 1], ['b', 2]))
    await node.sealAt(start + 10 * second, endpoint.id, recordsOf(['c', 3]))
    await node.start()
    await commitsOf(node, 2)
    await node.stop()
    harm(indexPath(node, endpoint.id, view))
    await node.sealAt(start + 20 * second, endpoint.id, recordsOf(['a', 4], ['c', 5], ['d', 6]))
    await node.start()
    await commitsOf(node, 3)
    expect(await written(node, view)).toEqual([1, 2, 3, 6])
    expect(outcomes(node, view).at(-1)).toMatchObject({ duplicates: 2 })
    expect(node.log.join('')).toContain('index of keys rebuilt from commits')
  })

  test('rebuilds an index from merged files, and skips what was removed', async () => {
    const view = aWindow()
    const endpoint = anEndpointWith(view)
    await using node = await DeliveryNode.create(endpoint)
    await node.sealAt(start, endpoint.id, recordsOf(['a', 1], ['b', 2]))
    await node.sealAt(start + 10 * second, endpoint.id, recordsOf(['c', 3]))
    await node.sealAt(start + 20 * second, endpoint.id, recordsOf(['d', 4]))
    await node.start()
    await commitsOf(node, 3)
    await node.stop()
    rmSync(indexPath(node, endpoint.id, view))
    const bucket = join(node.config.paths.buckets, 'bucket')
    const sources = node.commits.map(({ id, artifacts }) => ({ id, key: artifacts['views/once/v1']?.key ?? '' }))
    const key = 'compacted.parquet'
    const [first] = sources.map((source) => join(bucket, source.key))
    // The second segment is first in the merged file. The third has no rows any more.
    await queryRows(
      `COPY (SELECT * FROM '${join(bucket, sources[1]?.key ?? '')}' UNION ALL SELECT * FROM '${first}') TO '${join(bucket, key)}'`,
    )
    const file = readFileSync(join(bucket, key))
    for (const source of sources) rmSync(join(bucket, source.key))
    node.control.changeScrub = (page) => ({
      ...page,
      commits: page.commits.map((commit, index) => ({
        ...commit,
        files: commit.files.filter(({ kind }) => kind !== 'views/once/v1' || index === 2),
        merged:
          index !== 1
            ? []
            : [
                {
                  ...{ id: 'compaction', kind: 'views/once/v1', key, bytes: file.length, rows: 3, marker_key: 'marker' },
                  sha256: createHash('sha256').update(file).digest('hex'),
                  sources: [
                    { id: sources[1]?.id ?? '', first_row: 0, rows: 1 },
                    { id: sources[0]?.id ?? '', first_row: 1, rows: 2 },
                  ],
                },
              ],
      })),
    })
    await node.sealAt(start + 30 * second, endpoint.id, recordsOf(['a', 5], ['b', 6], ['c', 7], ['d', 8], ['e', 9]))
    await node.sealAt(start + 60 * second, endpoint.id, recordsOf(['a', 10], ['c', 11]))
    await node.start()
    await commitsOf(node, 5)
    // Segment 1 is out of the window of the last one, and segment 2 is not.
    expect(outcomes(node, view).slice(3)).toMatchObject([
      { accepted: 2, dropped: 3, duplicates: 3 },
      { accepted: 1, dropped: 1, duplicates: 1 },
    ])
    expect(node.log.join('')).toMatch(/"segments":2,"missing":1|segments=2 missing=1/)
  })

  test('waits with a reason while its index cannot be rebuilt', async () => {
    const view = aWindow()
    const endpoint = anEndpointWith(view)
    await using node = await DeliveryNode.create(endpoint)
    node.control.refusesScrubs = true
    await node.sealAt(start, endpoint.id, recordsOf(['a', 1]))
    await node.start()
    const reason = 'the index of dedupe_within of once v1 is being rebuilt'
    await until('the reason', () => node.lag(endpoint.id)?.blocked_by?.includes(reason) === true)
    node.control.refusesScrubs = false
    await commitsOf(node, 1)
    expect(await written(node, view)).toEqual([1])
  })

  test('begins anew, and says so, if the role may not read what was delivered', async () => {
    const view = aWindow()
    const endpoint = anEndpointWith(view)
    await using node = await DeliveryNode.create(endpoint)
    await node.sealAt(start, endpoint.id, recordsOf(['a', 1]))
    await node.start()
    await commitsOf(node, 1)
    await node.stop()
    rmSync(indexPath(node, endpoint.id, view))
    node.stores.isUnreadable = true
    for (const [at, n] of [
      [20, 2],
      [30, 3],
      [79, 4],
      [80, 5],
    ] as const)
      await node.sealAt(start + at * second, endpoint.id, recordsOf(['a', n]))
    await node.start()
    await commitsOf(node, 5)
    expect(await written(node, view)).toEqual([1, 2, 5])
    expect(outcomes(node, view).map((outcome) => outcome?.window_seconds)).toEqual([undefined, 0, 10, 59, undefined])
    expect(node.log.join('')).toContain('the window of dedupe_within begins anew')
  })

  test('has an index of its own for each version, and a shadow has none', async () => {
    const [first, second_, shadow] = [
      aWindow({ deactivated_at: new Date(start + 15 * second).toISOString() }),
      aWindow({ version: 2, activated_at: new Date(start + 5 * second).toISOString() }),
      aWindow({ version: 3 }),
    ]
    const endpoint = { ...anEndpointWith(first, second_), shadows: [shadow] }
    await using node = await DeliveryNode.create(endpoint)
    for (const at of [0, 10, 20]) await node.sealAt(start + at * second, endpoint.id, recordsOf(['a', at]))
    await node.start()
    await commitsOf(node, 3)
    expect([await written(node, first), await written(node, second_)]).toEqual([[0], [10]])
    const counted = node.commits.map(({ views }) => views.find(({ is_shadow }) => is_shadow)?.accepted)
    expect(counted).toEqual([1, 1, 1])
    await node.stop()
    expect(readdirSync(join(node.config.paths.windows, endpoint.id)).toSorted()).toEqual(
      [first, second_].map(({ view_id }) => `${view_id}.db`).toSorted(),
    )
  })
})

/** Flips a bit in the middle of the file, behind the text. */
function flipByteWith(path: string, text: string): void {
  const bytes = readFileSync(path)
  const at = bytes.indexOf(text)
  expect(at).toBeGreaterThan(0)
  bytes[at] = (bytes[at] ?? 0) ^ 1
  writeFileSync(path, bytes)
}

/** One segment, or something that happens to the node before it. */
type Event =
  | { readonly kind: 'seal'; readonly afterSeconds: number; readonly ids: readonly number[] }
  | { readonly kind: 'restart' | 'abort' | 'lose' | 'damage' | 'fail' }

const seal: fc.Arbitrary<Event> = fc.record({
  kind: fc.constant('seal' as const),
  afterSeconds: fc.constantFrom(-5, 0, 10, 20, 25, 60),
  ids: fc.array(fc.nat(12), { minLength: 1, maxLength: 8 }),
})
const accident: fc.Arbitrary<Event> = fc.record({ kind: fc.constantFrom('restart', 'abort', 'lose', 'damage', 'fail') })
const events = fc.array(fc.oneof({ weight: 5, arbitrary: seal }, { weight: 2, arbitrary: accident }), {
  minLength: 3,
  maxLength: 14,
})

/** A segment that was sealed by a clock that went back is as new as the one before, also when its index is rebuilt. */
const clockWentBack: [Event[]][] = [
  [
    [
      { kind: 'seal', afterSeconds: 25, ids: [1] },
      { kind: 'seal', afterSeconds: -5, ids: [2] },
      { kind: 'damage' },
      { kind: 'seal', afterSeconds: 60, ids: [1, 2] },
    ],
  ],
]

/** Says what is written, in the order of the segments: a row of each key, and again once the window is over. */
function model(seals: readonly { readonly at: number; readonly rows: readonly (readonly [string | null, number])[] }[]) {
  const seen = new Map<string, number>()
  const rows: number[] = []
  let [newest, duplicates] = [0, 0]
  for (const { at, rows: of } of seals) {
    newest = Math.max(newest, at)
    for (const [id, n] of of) {
      const before = id === null ? undefined : seen.get(id)
      if (before !== undefined && before > newest - 60 * second) duplicates += 1
      else {
        rows.push(n)
        if (id !== null) seen.set(id, newest)
      }
    }
  }
  return { rows, duplicates }
}

test('whatever happens to the node and its index, each key is written once in its window', async () => {
  await fc.assert(
    fc.asyncProperty(events, async (happened) => {
      const view = aWindow()
      const endpoint = anEndpointWith(view)
      await using node = await DeliveryNode.create(endpoint)
      const seals: Parameters<typeof model>[0][number][] = []
      let [at, n] = [start, 0]
      await node.start()
      for (const event of happened) {
        if (event.kind === 'seal') {
          at += event.afterSeconds * second
          const rows = event.ids.map((id) => {
            n += 1
            return [id === 0 ? null : `event ${id}`, n] as const
          })
          seals.push({ at, rows })
          await node.sealAt(at, endpoint.id, recordsOf(...rows))
        } else if (event.kind === 'fail') {
          let left = 2
          node.stores.fault = () => (left-- > 0 ? 'answer lost' : undefined)
        } else {
          if (event.kind !== 'abort') await commitsOf(node, seals.length)
          await node.stop(event.kind === 'abort' ? AbortSignal.abort() : undefined)
          const path = indexPath(node, endpoint.id, view)
          if (event.kind === 'lose') rmSync(path, { force: true })
          if (event.kind === 'damage' && existsSync(path)) flipByteWith(path, 'segments_at')
          await node.start()
        }
      }
      await commitsOf(node, seals.length)
      await node.stop()
      const expected = model(seals)
      expect(await written(node, view)).toEqual(expected.rows)
      expect(outcomes(node, view).reduce((sum, outcome) => sum + (outcome?.duplicates ?? 0), 0)).toBe(expected.duplicates)
    }),
    { numRuns: runs(6, 60), endOnFailure: true, examples: clockWentBack },
  )
}, 900_000)
