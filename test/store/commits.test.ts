import { expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { listCommits, recordCommit } from '#store/commits.ts'
import { listDlqFiles } from '#store/dlq-files.ts'
import { transact } from '#store/store.ts'
import { getViewMetrics } from '#store/view-counters.ts'
import { describeDatabases, newStore, type TestStore } from '../support/databases.ts'
import { aCommit, anAccount, anOutcome, aPublishedView, aStoredEndpoint, iso, t0 } from './fixtures.ts'

const record = (store: TestStore, commit: ReturnType<typeof aCommit>, now: number) =>
  transact(store, (db) => recordCommit(db, commit, now))

describeDatabases('commits', (kind) => {
  test('are listed in the format of the API, newest first', async () => {
    await using store = await newStore(kind)
    const { id: endpoint } = await aStoredEndpoint(store, await anAccount(store))
    const commit = aCommit(endpoint, 1)
    expect(await record(store, commit, t0)).toBe('new')
    await record(store, aCommit(endpoint, 2), t0 + 5)
    await record(store, aCommit(newId(), 1), t0)
    const { items, next_cursor } = await listCommits(store.db, endpoint, { limit: 50 })
    const key = `raw/events/${endpoint}/parquet/1.parquet`
    expect(items).toEqual([
      expect.objectContaining({ seq: 2, uploaded_at: iso(t0 + 5) }),
      {
        ...{
          id: commit.id,
          node_id: commit.node_id,
          seq: 1,
          records: 10,
          records_damaged: 2,
          wal_bytes: 2750,
          duration_ms: 120,
          sealed_at: commit.sealed_at,
          uploaded_at: iso(t0),
          bucket: commit.destination.bucket,
        },
        artifacts: { parquet: { key, bytes: 4096, sha256: commit.artifacts['parquet']?.sha256 } },
      },
    ])
    expect(next_cursor).toBeNull()
  })

  test('a repeated report changes nothing', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { id: endpoint } = await aStoredEndpoint(store, account)
    const view = await aPublishedView(store, account)
    const commit = aCommit(endpoint, 1, { views: [anOutcome(view.id)] })
    await record(store, commit, t0)
    expect(await record(store, { ...commit, wal_bytes: 1, duration_ms: 9 }, t0 + 99)).toBe('known')
    const { items } = await listCommits(store.db, endpoint, { limit: 50 })
    expect(items).toMatchObject([{ wal_bytes: 2750, duration_ms: 120, uploaded_at: iso(t0) }])
    expect((await getViewMetrics(store.db, account, view.id, t0)).aggregated.all_time.processed).toBe(10)
  })

  test('uploaded_at increases strictly within an endpoint, whatever the clock does', async () => {
    await using store = await newStore(kind)
    const [one, two] = [newId(), newId()]
    const clock = [t0, t0, t0 - 60_000, t0 + 1, t0 + 10]
    for (const [seq, now] of clock.entries()) await record(store, aCommit(one, seq), now)
    await record(store, aCommit(two, 0), t0)
    const times = async (endpoint: string) =>
      (await listCommits(store.db, endpoint, { limit: 50 })).items.map(({ uploaded_at }) => Date.parse(uploaded_at) - t0)
    expect(await times(one)).toEqual([10, 3, 2, 1, 0])
    expect(await times(two)).toEqual([0])
  })

  test('pages by cursor contain every commit once', async () => {
    await using store = await newStore(kind)
    const endpoint = newId()
    for (let seq = 0; seq < 11; seq += 1) await record(store, aCommit(endpoint, seq), t0)
    const seen: number[] = []
    let before: string | undefined
    do {
      const page = await listCommits(store.db, endpoint, { limit: 4, before })
      seen.push(...page.items.map(({ seq }) => seq))
      before = page.next_cursor ?? undefined
    } while (before !== undefined)
    expect(seen).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
    expect((await listCommits(store.db, endpoint, { limit: 11 })).next_cursor).toBeNull()
    expect(await listCommits(store.db, endpoint, { limit: 4, before: iso(t0) })).toEqual({ items: [], next_cursor: null })
  })

  test('a failed transaction leaves no part of a commit', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { id: endpoint } = await aStoredEndpoint(store, account)
    const view = await aPublishedView(store, account)
    const commit = aCommit(endpoint, 1, { views: [anOutcome(view.id)] })
    const failing = transact(store, async (db) => {
      await recordCommit(db, commit, t0)
      throw new Error('on purpose')
    })
    await expect(failing).rejects.toThrow('on purpose')
    expect((await listCommits(store.db, endpoint, { limit: 1 })).items).toEqual([])
    expect((await getViewMetrics(store.db, account, view.id, t0)).endpoints).toEqual([])
    expect(await record(store, commit, t0)).toBe('new')
  })

  test('accept everything a node may report: unknown endpoints and views, U+0000 in an error, the largest numbers', async () => {
    await using store = await newStore(kind)
    const last_error = { code: 'cast_failed', message: 'bad \0 byte', at: iso(t0) }
    const commit = aCommit(newId(), Number.MAX_SAFE_INTEGER, {
      wal_bytes: Number.MAX_SAFE_INTEGER,
      views: [anOutcome(newId(), { last_error })],
    })
    expect(await record(store, commit, t0)).toBe('new')
  })
})

describeDatabases('DLQ files', (kind) => {
  test('are recorded with their commit, for the view that wrote them', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const endpoint = await aStoredEndpoint(store, account)
    const [view, quiet] = [await aPublishedView(store, account), await aPublishedView(store, account)]
    for (const seq of [1, 2, 3]) {
      const dlq = { key: `dlq/${seq}`, bytes: 100 + seq, rows: seq, sha256: 'ab', view_id: view.id, view_version: 1 }
      const parquet = { key: `views/${seq}`, bytes: 1, rows: 1, sha256: 'ab', view_id: quiet.id, view_version: 1 }
      const artifacts = { [`dlq/${view.name}/v1`]: dlq, [`views/${quiet.name}/v1`]: parquet }
      const destination = { id: newId(), bucket: 'lake', region: 'eu-central-1' }
      await record(store, aCommit(endpoint.id, seq, { artifacts, destination }), t0 + seq)
    }
    const { files, total } = await listDlqFiles(store.db, view.id, { limit: 2 })
    expect(total).toBe(3)
    expect(files).toEqual([
      {
        ...{ endpoint_id: endpoint.id, endpoint_name: endpoint.label, segment_seq: 3, s3_key: 'dlq/3' },
        ...{ s3_bucket: 'lake', region: 'eu-central-1', bytes: 103, rows: 3, created_at: iso(t0 + 3) },
        ...{ destination_id: expect.any(String), redriven_at: null },
      },
      expect.objectContaining({ segment_seq: 2 }),
    ])
    expect(await listDlqFiles(store.db, quiet.id, { limit: 2 })).toEqual({ files: [], total: 0, last: undefined })
  })

  test('of the same time are neither repeated nor skipped by pages', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const view = await aPublishedView(store, account)
    for (const moment of [t0, t0 + 1]) {
      // `uploaded_at` is unique within an endpoint, so files of the same time belong to several endpoints.
      for (let seq = 0; seq < 5; seq += 1) {
        const endpoint = await aStoredEndpoint(store, account)
        const dlq = { key: `${moment}/${seq}`, bytes: 1, rows: 1, sha256: 'ab', view_id: view.id, view_version: 1 }
        await record(store, aCommit(endpoint.id, seq, { artifacts: { 'dlq/events/v1': dlq } }), moment)
      }
    }
    const all = await listDlqFiles(store.db, view.id, { limit: 100 })
    expect(all.files.map(({ created_at }) => created_at)).toEqual([
      ...Array.from({ length: 5 }, () => iso(t0 + 1)),
      ...Array.from({ length: 5 }, () => iso(t0)),
    ])
    for (const limit of [1, 2, 3, 4, 5, 9, 10]) {
      const keys: string[] = []
      let after: Awaited<ReturnType<typeof listDlqFiles>>['last']
      do {
        const page = await listDlqFiles(store.db, view.id, { limit, after })
        expect(page.total).toBe(10)
        keys.push(...page.files.map(({ s3_key }) => s3_key))
        after = page.last
      } while (after !== undefined)
      expect(keys).toEqual(all.files.map(({ s3_key }) => s3_key))
    }
  })
})
