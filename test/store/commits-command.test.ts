/** `inlet commits rebuild` with directory buckets: it records and rejects markers, and can be repeated. */
import { mkdtemp, rename, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { rebuildCompaction } from '#cli/commits/rebuild-compaction.ts'
import { readConfig } from '#config/config.ts'
import { encodeCompactionMarker } from '#delivery/jobs/compaction-marker.ts'
import { decodeUnitMarker, encodeUnitMarker } from '#delivery/jobs/unit-marker.ts'
import { encodeMarker, withMarker } from '#delivery/publish/marker.ts'
import { must } from '#lib/assert.ts'
import { system } from '#lib/system.ts'
import { compactedKey, compactionMarkerKey, objectKey, printArtifactKind } from '#model/artifact.ts'
import { commitId, type SegmentCommit, type ViewOutcome } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import { DirectoryStores } from '#objects/directory.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import { findCommit, insertAddition } from '#store/commits/commit-additions.ts'
import { listCommits, recordCommit } from '#store/commits/commits.ts'
import { listDlqFiles } from '#store/commits/dlq-files.ts'
import { listMissingCommits, noteMissingCommits } from '#store/commits/missing-commits.ts'
import { insertDestination, updateDestination } from '#store/endpoints/destinations.ts'
import { updateEndpoint } from '#store/endpoints/endpoints.ts'
import { insertVersion, publishView } from '#store/endpoints/views.ts'
import { startCompaction } from '#store/jobs/compaction-jobs.ts'
import { getViewMetrics } from '#store/series/view-counters.ts'
import { transact } from '#store/store.ts'
import { runCli } from '../support/cli.ts'
import type { TestStore } from '../support/databases.ts'
import { ManualClock } from '../support/manual-clock.ts'
import {
  aDestination,
  anAccount,
  anOutcome,
  aPublishedView,
  aStoredDestination,
  aStoredEndpoint,
  describeStores,
  iso,
  t0,
} from './fixtures.ts'

const now = t0 + 3_600_000
const node_id = newId()
let data = ''

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'inlet-rebuild-'))
})
afterEach(() => rm(data, { recursive: true }))

async function rebuild(store: TestStore, ...args: string[]) {
  const config = readConfig({ INLET_DATA_DIR: data, INLET_DATABASE_URL: store.url })
  const { code, out, err } = await runCli(['commits', 'rebuild', ...args], { config, clock: new ManualClock(now) })
  return { code, text: `${out}${err}` }
}

async function aPlace(store: TestStore) {
  const account = await anAccount(store)
  const destination = await aStoredDestination(store, account)
  const endpoint = await aStoredEndpoint(store, account)
  const view = await aPublishedView(store, account)
  return { account, destination, endpoint: endpoint.id, view }
}

type Place = Awaited<ReturnType<typeof aPlace>>

function aCommit({ endpoint, destination, view }: Place, seq: number, madeAt = t0 + seq * 1000): SegmentCommit {
  const log = 'abcdefghij'
  const name = { endpointId: endpoint, nodeId: node_id, incarnation: log, seq, sealedAtMicros: t0 * 1000 }
  const artifact = { bytes: 10, rows: 3, sha256: 'ab' }
  const ofView = { view_id: view.id, view_version: 1 }
  return {
    ...{
      id: commitId(node_id, log, seq),
      endpoint_id: endpoint,
      node_id,
      log,
      seq,
      records: 10,
      records_damaged: 3,
      wal_bytes: 99,
    },
    ...{ sealed_at: iso(t0), uploaded_at: iso(madeAt), duration_ms: 7 },
    destination: { id: destination.id, bucket: destination.bucket, region: destination.region },
    artifacts: {
      parquet: { key: objectKey(destination.prefix, name, { type: 'parquet' }), ...artifact },
      'dlq/events/v1': {
        key: objectKey(destination.prefix, name, { type: 'dlq', name: 'events', version: 1 }),
        ...artifact,
        ...ofView,
      },
    },
    views: [anOutcome(view.id)],
  }
}

function keyOf({ destination, endpoint }: Place, { log, seq }: Pick<SegmentCommit, 'log' | 'seq'>): string {
  const name = { endpointId: endpoint, nodeId: node_id, incarnation: log, seq, sealedAtMicros: t0 * 1000 }
  return objectKey(destination.prefix, name, { type: 'marker' })
}

async function put({ destination }: Place, key: string, body: string | Uint8Array): Promise<void> {
  const store = new DirectoryStores({ ...system, root: join(data, 'buckets') }).open(destination)
  await store.put(key, Buffer.from(body), { contentType: 'application/json', metadata: {} })
}

/** Writes the files of a commit to the bucket, as a node does. Returns the commit. */
async function delivered(place: Place, commit: SegmentCommit): Promise<SegmentCommit> {
  const key = keyOf(place, commit)
  const marker = encodeMarker(commit)
  await put(place, key, marker)
  return withMarker(commit, key, marker)
}

/** Records what a job adds to a commit, with its marker in the bucket. */
async function added(
  store: TestStore,
  place: Place,
  { id, endpoint_id, log, seq }: SegmentCommit,
  outcome: ViewOutcome,
  from_view_id: string | null,
): Promise<void> {
  const { view_id, view_name: name, view_version: version } = outcome
  const { destination } = place
  const segment = { endpointId: endpoint_id, nodeId: node_id, incarnation: log, seq, sealedAtMicros: t0 * 1000 }
  const redriveFrom = from_view_id === null ? {} : { redriveFrom: 1 }
  const kind = { type: 'view' as const, name, version, ...redriveFrom }
  const file = {
    key: objectKey(destination.prefix, segment, kind),
    bytes: 10,
    rows: 10,
    sha256: 'ab',
    view_id,
    view_version: version,
  }
  const key = objectKey(destination.prefix, segment, { type: 'addition-marker', name, version })
  const { definition } = place.view
  const marker = encodeUnitMarker(
    {
      ...{ lease_id: newId(), lease_ms: 1, job_id: newId(), account_id: place.account },
      commit: { id, endpoint_id, node_id, log, seq, sealed_at: iso(t0) },
      view: { id: view_id, name, version, definition },
      source: { kind: from_view_id === null ? 'segment' : 'dlq', artifact: file, from_version: from_view_id === null ? null : 1 },
      target: { ...destination, prefix: destination.prefix },
    },
    { [printArtifactKind(kind)]: file },
    outcome,
    iso(t0 + 60_000),
  )
  await put(place, key, marker)
  const { artifacts } = must(decodeUnitMarker(key, marker), 'the marker')
  await transact(store, async (db) => {
    const commit = must(await findCommit(db, id), 'the commit')
    return insertAddition(db, { commit, view_id, from_view_id, job_id: newId(), artifacts, outcome }, t0 + 60_000)
  })
}

/** Writes the marker of a compaction that merged the raw Parquet of these commits. Returns the key of its file. */
async function compacted(place: Place, commits: readonly SegmentCommit[]): Promise<string> {
  const { key, marker, file } = aCompaction(place, commits)
  await put(place, key, marker)
  return file.key
}

function aCompaction({ account, destination, endpoint }: Place, commits: readonly SegmentCommit[]) {
  const folder = { prefix: destination.prefix, endpointId: endpoint, date: iso(t0).slice(0, 10) }
  const sources = commits.map(({ id }, index) => ({ id, first_row: index * 3, rows: 3, bytes: 10, sha256: 'ab' }))
  const id = `compact-${newId()}`
  const compaction = { id, endpoint_id: endpoint, kind: 'parquet', date: folder.date, view: null, sources }
  const unit = { lease_id: newId(), lease_ms: 1, job_id: newId(), account_id: account, compaction, target: destination }
  const sha256 = 'cd'.repeat(32)
  const file = { key: compactedKey(folder, { type: 'parquet' }, { id, sha256 }), bytes: 25, rows: 3 * commits.length, sha256 }
  return { key: compactionMarkerKey(folder, id), marker: encodeCompactionMarker(unit, file, iso(now)), file }
}

async function shown(store: TestStore, { account, endpoint, view }: Place) {
  return {
    commits: (await listCommits(store.db, endpoint, { limit: 200 })).items,
    metrics: await getViewMetrics(store.db, account, view.id, now),
    dlq: (await listDlqFiles(store.db, view.id, { limit: 200 })).files,
  }
}

describeStores('inlet commits rebuild', (test) => {
  test('restores the rows that live commits recorded, and a second run changes nothing', async ({ store }) => {
    const place = await aPlace(store)
    const failed = { accepted: 0, dropped: 0, dlq: 0, failed: 10, errors: { view_failed: 10 } }
    for (const seq of [1, 2, 3, 4]) {
      const made = aCommit(place, seq)
      const commit = await delivered(place, seq === 3 ? { ...made, views: [anOutcome(place.view.id, failed)] } : made)
      await transact(store, (db) => recordCommit(db, commit, t0 + seq * 1000))
    }
    const before = await shown(store, place)
    expect(before.metrics.aggregated.all_time).toEqual({
      processed: 40,
      accepted: 18,
      dropped: 3,
      dlq: 9,
      failed: 10,
      rows: 18,
      duplicates: 0,
      redriven: 0,
    })
    for (const table of ['commits', 'commit_heads', 'committed_seqs', 'dlq_files', 'view_counters', 'view_totals'] as const) {
      await store.db.deleteFrom(table).execute()
    }
    expect((await shown(store, place)).commits).toEqual([])
    expect(await rebuild(store)).toMatchObject({
      code: 0,
      text: expect.stringContaining('4 recorded, 0 already known, 0 rejected'),
    })
    expect(await shown(store, place)).toEqual(before)
    expect(await rebuild(store)).toMatchObject({
      code: 0,
      text: expect.stringContaining('0 recorded, 4 already known, 0 rejected'),
    })
    expect(await shown(store, place)).toEqual(before)
    const { seq } = await store.db.selectFrom('committed_seqs').select('seq').executeTakeFirstOrThrow()
    expect(seq).toBe(4)
  })

  test('restores what jobs added, with its counters: a re-drive, and a backfill after the view failed', async ({ store }) => {
    const place = await aPlace(store)
    const { account, view } = place
    const second = await transact(store, async (db) => {
      const { id } = await insertVersion(db, account, view.id, { id: newId(), created_by: 'ci' }, undefined, t0)
      return publishView(db, account, id, t0)
    })
    const failed = { accepted: 0, dropped: 0, dlq: 0, failed: 10, errors: { view_failed: 10 } }
    const rejecting = aCommit(place, 1)
    const failing = { ...aCommit(place, 2), artifacts: {}, views: [anOutcome(view.id, failed)] }
    for (const commit of [rejecting, failing]) {
      await transact(store, async (db) => recordCommit(db, await delivered(place, commit), t0 + commit.seq * 1000))
    }
    const clean = { accepted: 10, dropped: 0, dlq: 0, errors: {}, last_error: null }
    await added(store, place, rejecting, anOutcome(second.id, { ...clean, view_name: view.name, view_version: 2 }), view.id)
    await added(store, place, failing, anOutcome(view.id, { ...clean, view_name: view.name }), null)
    const before = [await shown(store, place), await shown(store, { ...place, view: second })]
    expect(before).toMatchObject([
      {
        metrics: {
          aggregated: { all_time: { processed: 20, accepted: 16, dlq: 3, failed: 0, redriven: 3 }, has_errors: false },
        },
      },
      { metrics: { aggregated: { all_time: { processed: 10, accepted: 10 } } } },
    ])
    const tables = ['commits', 'commit_additions', 'commit_heads', 'committed_seqs', 'dlq_files'] as const
    for (const table of [...tables, 'view_counters', 'view_totals', 'view_series', 'view_quality'] as const) {
      await store.db.deleteFrom(table).execute()
    }
    expect((await rebuild(store)).text).toContain('4 recorded, 0 already known, 0 rejected')
    expect([await shown(store, place), await shown(store, { ...place, view: second })]).toEqual(before)
    expect((await rebuild(store)).text).toContain('0 recorded, 4 already known, 0 rejected')
    expect([await shown(store, place), await shown(store, { ...place, view: second })]).toEqual(before)
  })

  test('inserts lost commits between known ones, each with its own time', async ({ store }) => {
    const place = await aPlace(store)
    for (const seq of [1, 2, 3, 4, 5]) {
      // The node's clock stopped, then jumped an hour ahead.
      const commit = await delivered(place, aCommit(place, seq, seq < 5 ? t0 : now + 3_600_000))
      if (seq > 1 && seq < 4) await transact(store, (db) => recordCommit(db, commit, t0 + (seq - 2)))
    }
    expect((await rebuild(store)).text).toContain('3 recorded, 2 already known, 0 rejected')
    const { items } = await listCommits(store.db, place.endpoint, { limit: 9 })
    const times = items.map(({ seq, uploaded_at }) => [seq, Date.parse(uploaded_at) - t0])
    expect(times.slice(0, 1)).toEqual([[5, now - t0]])
    expect(times.map(([, at]) => at)).toEqual([now - t0, 3, 2, 1, 0])
    expect(times).toEqual(
      expect.arrayContaining([
        [2, 0],
        [3, 1],
      ]),
    )
    const next = aCommit(place, 6)
    await transact(store, (db) => recordCommit(db, next, now))
    const [newest] = (await listCommits(store.db, place.endpoint, { limit: 1 })).items
    expect(newest).toMatchObject({ seq: 6, uploaded_at: iso(now + 1) })
  })

  test('an older error does not replace a newer one', async ({ store }) => {
    const place = await aPlace(store)
    const [older, newer] = [1, 2].map((seq) => ({
      ...aCommit(place, seq),
      views: [anOutcome(place.view.id, { last_error: { code: `error_${seq}`, message: '', at: iso(t0 + seq) } })],
    }))
    if (older === undefined || newer === undefined) throw new Error('two commits')
    await transact(store, (db) => recordCommit(db, newer, t0 + 2000))
    await delivered(place, older)
    expect((await rebuild(store)).code).toBe(0)
    const { endpoints } = await getViewMetrics(store.db, place.account, place.view.id, now)
    expect(endpoints).toMatchObject([
      { last_error_code: 'error_2', last_updated_at: iso(t0 + 2000), all_time: { processed: 20 } },
    ])
  })

  test('rejects and reports markers that no node of this endpoint wrote, and continues', async ({ store }) => {
    const place = await aPlace(store)
    const other = await aPlace(store)
    const good = await delivered(place, aCommit(place, 1))
    const folder = dirname(keyOf(place, good))
    const at = (seq: number) => keyOf(place, { log: 'abcdefghij', seq })
    const changed = (seq: number, change: Partial<SegmentCommit>) => encodeMarker({ ...aCommit(place, seq), ...change })
    const { artifacts } = aCommit(place, 7)
    await put(place, at(2), encodeMarker(good).subarray(0, 200))
    await put(place, at(3), encodeMarker(aCommit(other, 3)))
    await put(place, at(4), encodeMarker(aCommit(place, 5)))
    await put(place, at(6), changed(6, { views: [anOutcome(other.view.id)] }))
    await put(place, at(7), changed(7, { artifacts: { parquet: { ...good.artifacts['parquet'], key: 'another/key' } as never } }))
    await put(place, at(8), changed(8, { destination: { id: newId(), bucket: 'elsewhere', region: 'eu-central-1' } }))
    await put(place, at(9), Buffer.alloc(5 * 1024 * 1024))
    await put(place, at(10), changed(10, { artifacts: { ...artifacts, 'dlq/other/v1': artifacts['dlq/events/v1'] as never } }))
    await put(place, at(11), changed(11, { views: [anOutcome(place.view.id, { processed: 11 })] }))
    await put(place, `${folder}/notes.txt`, 'mine')
    const { code, text } = await rebuild(store)
    expect(code).toBe(1)
    expect(text).toContain('1 recorded, 0 already known, 10 rejected')
    for (const reason of [
      'damaged, or not a marker of Inlet',
      `it belongs to another endpoint, ${other.endpoint}`,
      'its key should be',
      `a view of another account: ${other.view.id}`,
      'a file that no node writes: another/key',
      'another bucket, elsewhere',
      'too large for a marker: ',
      'not the name of a marker',
    ]) {
      expect(text).toContain(reason)
    }
    expect((await shown(store, place)).commits).toMatchObject([{ seq: 1 }])
    expect((await shown(store, other)).commits).toEqual([])
  })

  test('a bucket that is gone holds up the jobs of all, until the operator goes on without it', async ({ store }) => {
    await transact(store, (db) => noteMissingCommits(db, null, t0, now))
    const missing = async () => (await listMissingCommits(store.db)).length
    // Without a destination there is nothing to read.
    expect(await rebuild(store)).toMatchObject({ code: 0, text: expect.stringContaining('0 recorded') })
    expect(await missing()).toBe(0)
    const place = await aPlace(store)
    await delivered(place, aCommit(place, 1))
    const gone = await insertDestination(store.db, place.account, { ...aDestination(), name: 'gone', bucket: 'gone' }, t0)
    const folder = join(data, 'buckets', gone.bucket)
    await symlink(folder, folder)
    await transact(store, (db) => noteMissingCommits(db, null, t0, now))
    const { code, text } = await rebuild(store)
    expect([code, await missing()]).toEqual([1, 1])
    expect(text).toMatch(/1 recorded.*reading bucket gone failed.*Commits may still be missing, and jobs wait/s)
    await rebuild(store, '--skip-unreadable', '--dry-run')
    await rebuild(store, '--skip-unreadable', '--endpoint', place.endpoint)
    expect(await missing()).toBe(1)
    expect((await rebuild(store, '--skip-unreadable')).code).toBe(1)
    expect(await missing()).toBe(0)
  })

  test('a bucket without any marker of what it had is not read: its disk may not be mounted', async ({ store }) => {
    const place = await aPlace(store)
    const commit = await delivered(place, aCommit(place, 1))
    await transact(store, (db) => recordCommit(db, commit, t0))
    await transact(store, (db) => noteMissingCommits(db, null, t0, now))
    const folder = join(data, 'buckets', place.destination.bucket)
    await rename(folder, `${folder}-elsewhere`)
    const { code, text } = await rebuild(store)
    expect([code, text, (await listMissingCommits(store.db)).length]).toEqual([
      1,
      expect.stringContaining(`bucket ${place.destination.bucket} has no marker of endpoint ${place.endpoint}`),
      1,
    ])
    await rename(`${folder}-elsewhere`, folder)
    expect((await rebuild(store)).code).toBe(0)
    expect(await listMissingCommits(store.db)).toEqual([])
  })

  test('a marker under a prefix that the destination had before is found', async ({ store }) => {
    const place = await aPlace(store)
    await delivered(place, aCommit(place, 1))
    const { account, destination, endpoint } = place
    await inNewEpoch(store, (db) => updateEndpoint(db, account, endpoint, { destination_id: destination.id }, now))
    await inNewEpoch(store, (db) => updateDestination(db, account, destination.id, { prefix: 'newer' }, now))
    expect((await rebuild(store)).text).toContain('1 recorded')
    expect((await shown(store, place)).commits).toMatchObject([{ seq: 1 }])
  })

  test('a dry run reports and records nothing; --endpoint and --destination narrow the search', async ({ store }) => {
    const place = await aPlace(store)
    const other = await aPlace(store)
    await delivered(place, aCommit(place, 1))
    await delivered(other, aCommit(other, 1))
    expect(await rebuild(store, '--dry-run')).toMatchObject({ code: 0, text: expect.stringContaining('2 to record') })
    expect((await shown(store, place)).commits).toEqual([])
    expect((await rebuild(store, '--endpoint', other.endpoint)).text).toContain('1 recorded')
    expect((await rebuild(store, '--destination', other.destination.id)).text).toContain('0 recorded, 1 already known')
    expect((await shown(store, place)).commits).toEqual([])
    const both = ['--endpoint', place.endpoint, '--destination', other.destination.id]
    expect(await rebuild(store, ...both)).toMatchObject({ code: 1, text: expect.stringContaining('no endpoint and destination') })
    expect((await rebuild(store, '--endpoint', 'x')).code).toBe(2)
    expect((await rebuild(store, '--all')).code).toBe(2)
  })

  test('leaves out what the database would not keep', async ({ store }) => {
    const place = await aPlace(store)
    const keptMs = 400 * 86_400_000
    await delivered(place, aCommit(place, 1, now - keptMs - 1))
    await delivered(place, aCommit(place, 2, now - keptMs))
    expect(await rebuild(store)).toMatchObject({
      code: 0,
      text: expect.stringContaining('1 recorded, 0 already known, 0 rejected, 1 left out: older than INLET_COMMITS_KEPT_DAYS'),
    })
    expect((await shown(store, place)).commits).toMatchObject([{ seq: 2 }])
  })

  test('a compaction in the bucket displaces a planned one, for some of its files or others too', async ({ store }) => {
    const place = await aPlace(store)
    const { account, endpoint } = place
    const commits: SegmentCommit[] = []
    for (const seq of [1, 2, 3, 4]) {
      const commit = await delivered(place, aCommit(place, seq))
      commits.push(commit)
      await transact(store, (db) => recordCommit(db, commit, t0 + seq * 1000))
    }
    // The database was restored, and has forgotten what became of these files.
    const merged = await compacted(place, commits.slice(0, 3))
    const range = { period: 'day', to: iso(now) } as const
    const job = await startCompaction(store, { account_id: account, created_by: 'someone' }, endpoint, range, now)
    expect(job?.segments.total).toBe(1)
    expect(await rebuild(store)).toMatchObject({
      code: 0,
      text: expect.stringContaining('1 recorded, 4 already known, 0 rejected'),
    })
    expect(await rebuild(store)).toMatchObject({
      code: 0,
      text: expect.stringContaining('0 recorded, 5 already known, 0 rejected'),
    })
    const files = (await listCommits(store.db, endpoint, { limit: 9 })).items.map(
      ({ artifacts }) => artifacts['parquet']?.moved_to,
    )
    expect(files.map((file) => file?.key)).toEqual([undefined, merged, merged, merged])
    expect(await store.db.selectFrom('compactions').select('published_at').execute()).toEqual([{ published_at: now }])
  })

  test('rejects a second compaction of files that another one has merged', async ({ store }) => {
    const place = await aPlace(store)
    const commits = await Promise.all([1, 2, 3].map((seq) => delivered(place, aCommit(place, seq))))
    await compacted(place, commits.slice(0, 2))
    await compacted(place, commits.slice(1))
    const { code, text } = await rebuild(store)
    expect(code).toBe(1)
    expect(text).toContain('4 recorded, 0 already known, 1 rejected')
    expect(text).toContain('another compaction has moved it')
  })

  test('rebuilds at the same time record a compaction once', async ({ store }) => {
    const place = await aPlace(store)
    const commits = await Promise.all([1, 2, 3].map((seq) => delivered(place, aCommit(place, seq))))
    await rebuild(store)
    const { key, marker } = aCompaction(place, commits)
    const folder = { endpoint_id: place.endpoint, account_id: place.account, target: place.destination }
    const options = { store, now: () => now, keptMs: now, dryRun: false }
    const rebuilds = await Promise.all([1, 2, 3].map(() => rebuildCompaction(key, marker, folder, options)))
    expect(rebuilds.toSorted()).toEqual(['known', 'known', 'recorded'])
  })

  test('a commit of a deleted destination is recorded with the destination it was found through', async ({ store }) => {
    const place = await aPlace(store)
    const { id } = aDestination()
    const commit = aCommit(place, 1)
    await delivered(place, { ...commit, destination: { ...commit.destination, id } })
    expect((await rebuild(store)).code).toBe(0)
    expect(await findCommit(store.db, commit.id)).toMatchObject({ destination: { id: place.destination.id, bucket: 'lake' } })
  })
})
