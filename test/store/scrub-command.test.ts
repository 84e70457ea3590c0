/** `inlet scrub` with directory buckets: it finds every kind of damage to what was delivered, and says what to do. */
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { readConfig } from '#config/config.ts'
import { encodeCompactionMarker } from '#delivery/jobs/compaction-marker.ts'
import { encodeMarker, withMarker } from '#delivery/publish/marker.ts'
import { system } from '#lib/system.ts'
import { compactedKey, compactionMarkerKey, objectKey } from '#model/artifact.ts'
import { commitId, type SegmentCommit } from '#model/commit.ts'
import { DestinationTarget } from '#model/destination.ts'
import { newId } from '#model/id.ts'
import type { Finding } from '#model/scrub.ts'
import { DirectoryStores } from '#objects/directory.ts'
import { recordCommit } from '#store/commits/commits.ts'
import { insertCompaction, publishCompaction } from '#store/jobs/compactions.ts'
import { transact } from '#store/store.ts'
import { runCli } from '../support/cli.ts'
import type { TestStore } from '../support/databases.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { anAccount, anOutcome, aPublishedView, aStoredDestination, aStoredEndpoint, describeStores, iso, t0 } from './fixtures.ts'

const hour = 3_600_000
const now = t0 + 100 * hour
const node_id = newId()
const log = 'abcdefghij'
let data = ''

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'inlet-scrub-'))
})
afterEach(() => rm(data, { recursive: true }))

async function scrub(store: TestStore, ...args: string[]) {
  const config = readConfig({ INLET_DATA_DIR: data, INLET_DATABASE_URL: store.url })
  const { code, out, err } = await runCli(['scrub', '--json', ...args], { config, clock: new ManualClock(now) })
  if (out === '') throw new Error(err)
  const result = JSON.parse(out) as { findings: Finding[]; buckets: Record<string, number> }
  return { code, ...result, seen: result.findings.map(({ kind, where }) => [kind, where.split('/').slice(4).join('/')]) }
}

async function aPlace(store: TestStore) {
  const account = await anAccount(store)
  const destination = await aStoredDestination(store, account)
  const endpoint = await aStoredEndpoint(store, account)
  const view = await aPublishedView(store, account)
  const bucket = new DirectoryStores({ ...system, root: join(data, 'buckets') }).open(destination)
  return { account, destination, endpoint: endpoint.id, view, bucket }
}

type Place = Awaited<ReturnType<typeof aPlace>>

function nameOf({ endpoint }: Place, seq: number) {
  return { endpointId: endpoint, nodeId: node_id, incarnation: log, seq, sealedAtMicros: (t0 + seq * hour) * 1000 }
}

async function put({ bucket }: Place, key: string, body: string | Uint8Array): Promise<void> {
  await bucket.put(key, Buffer.from(body), { contentType: 'text/plain', metadata: {} })
}

function describeFile(key: string, body: string) {
  return { key, bytes: body.length, rows: 3, sha256: createHash('sha256').update(body).digest('hex') }
}

/** Delivers a segment: raw Parquet, a view, and the marker. One an hour. */
async function deliver(store: TestStore, place: Place, seq: number, { isRecorded = true } = {}): Promise<SegmentCommit> {
  const { destination, view, endpoint } = place
  const keyOf = (kind: Parameters<typeof objectKey>[2]) => objectKey(destination.prefix, nameOf(place, seq), kind)
  const parquet = describeFile(keyOf({ type: 'parquet' }), `raw ${seq}`)
  const ofView = describeFile(keyOf({ type: 'view', name: 'events', version: 1 }), `view ${seq}`)
  await put(place, parquet.key, `raw ${seq}`)
  await put(place, ofView.key, `view ${seq}`)
  const commit: SegmentCommit = {
    ...{ id: commitId(node_id, log, seq), endpoint_id: endpoint, node_id, log, seq },
    ...{ records: 10, records_damaged: 0, wal_bytes: 99, duration_ms: 7 },
    ...{ sealed_at: iso(t0 + seq * hour), uploaded_at: iso(t0 + seq * hour) },
    destination: { id: destination.id, bucket: destination.bucket, region: destination.region },
    artifacts: { parquet, 'views/events/v1': { ...ofView, view_id: view.id, view_version: 1 } },
    views: [anOutcome(view.id)],
  }
  const marker = encodeMarker(commit)
  const key = keyOf({ type: 'marker' })
  await put(place, key, marker)
  const recorded = withMarker(commit, key, marker)
  if (isRecorded) await transact(store, (db) => recordCommit(db, recorded, t0 + seq * hour))
  return recorded
}

const keyOf = ({ artifacts }: SegmentCommit, kind: string) => artifacts[kind]?.key ?? ''

/** Merges the raw Parquet of the commits. */
async function compact(store: TestStore, place: Place, commits: readonly SegmentCommit[], removing_since: number | null) {
  const { account, destination, endpoint } = place
  const date = iso(t0).slice(0, 10)
  const folder = { prefix: destination.prefix, endpointId: endpoint, date }
  const id = `compact-${newId()}`
  const sha256 = createHash('sha256').update('merged').digest('hex')
  const file = { ...describeFile(compactedKey(folder, { type: 'parquet' }, { id, sha256 }), 'merged'), rows: 3 * commits.length }
  const sources = commits.map(({ id: commit_id }, index) => {
    return { commit_id, marker_id: commit_id, first_row: index * 3, rows: 3, bytes: 5, sha256: 'ab' }
  })
  const target = DestinationTarget.parse(destination)
  const unit = {
    ...{ lease_id: newId(), lease_ms: 1, job_id: newId(), account_id: account, target },
    compaction: {
      id,
      endpoint_id: endpoint,
      kind: 'parquet',
      date,
      view: null,
      sources: sources.map((s) => ({ ...s, id: s.marker_id })),
    },
  }
  await put(place, file.key, 'merged')
  const marker = compactionMarkerKey(folder, id)
  await put(place, marker, encodeCompactionMarker(unit, file, iso(now)))
  const { bucket, region, prefix } = destination
  const where = {
    endpoint_id: endpoint,
    kind: 'parquet',
    view: null,
    date,
    destination_id: destination.id,
    bucket,
    region,
    prefix,
  }
  await transact(store, async (db) => {
    await insertCompaction(db, account, { ...where, id, sources }, now)
    await publishCompaction(db, id, { file, now, removing_since })
  })
  return { file, marker }
}

describeStores('inlet scrub', (test) => {
  test('finds nothing in what was delivered, and counts it', async ({ store }) => {
    const place = await aPlace(store)
    for (let seq = 0; seq < 51; seq += 1) await deliver(store, place, seq)
    expect(await scrub(store)).toMatchObject({ code: 0, findings: [], buckets: { commits: 51, files: 153, readFiles: 153 } })
    expect(await scrub(store, '--sizes-only')).toMatchObject({ code: 0, buckets: { commits: 51, files: 153, readFiles: 51 } })
  })

  test('finds files and markers that are missing, changed, cut or without a commit, and no other', async ({ store }) => {
    const place = await aPlace(store)
    const commits: SegmentCommit[] = []
    for (let seq = 0; seq < 6; seq += 1) commits.push(await deliver(store, place, seq))
    const [, second, third, fourth, fifth] = commits
    if (!second || !third || !fourth || !fifth) throw new Error('six commits')
    await place.bucket.remove(keyOf(second, 'views/events/v1'))
    await put(place, keyOf(second, 'parquet'), 'raw X')
    await put(place, keyOf(third, 'views/events/v1'), 'view')
    await place.bucket.remove(keyOf(third, 'manifest'))
    await put(place, keyOf(fourth, 'manifest'), encodeMarker({ ...fourth, records: 11 }))
    await store.db.deleteFrom('commits').where('id', '=', fifth.id).execute()
    const { code, seen, findings } = await scrub(store)
    expect(code).toBe(1)
    expect(seen).toEqual([
      ['file_changed', expect.stringContaining('parquet/dt=2026-11-20/')],
      ['file_missing', expect.stringContaining('views/events/v1/')],
      ['file_changed', expect.stringContaining('views/events/v1/')],
      ['marker_missing', expect.stringContaining('commits/')],
      ['marker_changed', expect.stringContaining('commits/')],
      ['commit_missing', expect.stringContaining('commits/')],
    ])
    expect(findings.every(({ endpoint_id, next_step }) => endpoint_id === place.endpoint && next_step !== '')).toBe(true)
    expect(findings.at(-1)?.next_step).toContain('inlet commits rebuild')
    const sizes = await scrub(store, '--sizes-only')
    expect(sizes.seen.map(([what]) => what)).not.toContainEqual('raw X')
    expect(sizes.findings).toHaveLength(5)
  })

  test('merged files stand in for those that are removed, and are verified with their marker', async ({ store }) => {
    const place = await aPlace(store)
    const commits = [await deliver(store, place, 1), await deliver(store, place, 2)]
    const { file, marker } = await compact(store, place, commits, now)
    for (const commit of commits) await place.bucket.remove(keyOf(commit, 'parquet'))
    expect(await scrub(store)).toMatchObject({ code: 0, findings: [] })
    await put(place, file.key, 'merge!')
    await put(place, marker, '{}')
    expect((await scrub(store)).seen).toEqual([
      ['file_changed', file.key.split('/').slice(3).join('/')],
      ['marker_changed', marker.split('/').slice(3).join('/')],
    ])
    await store.db.deleteFrom('compactions').execute()
    expect((await scrub(store)).seen).toContainEqual(['commit_missing', marker.split('/').slice(3).join('/')])
  })

  test('a merged file without its sources is missed, with its marker', async ({ store }) => {
    const place = await aPlace(store)
    const { file, marker } = await compact(store, place, [await deliver(store, place, 1), await deliver(store, place, 2)], null)
    await place.bucket.remove(file.key)
    await place.bucket.remove(marker)
    expect((await scrub(store)).seen.map(([what]) => what)).toEqual(['file_missing', 'marker_missing'])
  })

  test('files that a rule of the bucket removed by age have expired; an emptied bucket is reported', async ({ store }) => {
    const place = await aPlace(store)
    const commits: SegmentCommit[] = []
    for (let seq = 0; seq < 4; seq += 1) commits.push(await deliver(store, place, seq))
    const removeAll = async (some: readonly SegmentCommit[]) => {
      for (const { artifacts } of some) for (const { key } of Object.values(artifacts)) await place.bucket.remove(key)
    }
    await removeAll(commits.slice(0, 2))
    expect(await scrub(store)).toMatchObject({ code: 0, findings: [], buckets: { expired: 6 } })
    await removeAll(commits)
    const { findings } = await scrub(store)
    expect(findings).toHaveLength(12)
  })

  test('a marker whose commit may still be on its way, or that is of another endpoint, is no finding', async ({ store }) => {
    const place = await aPlace(store)
    const early = await deliver(store, place, 100, { isRecorded: false })
    expect(early.uploaded_at).toBe(iso(now))
    expect(await scrub(store)).toMatchObject({ code: 0, findings: [] })
    await deliver(store, place, 90, { isRecorded: false })
    expect((await scrub(store)).seen.map(([what]) => what)).toEqual(['commit_missing'])
  })
})
