import { expect } from 'vitest'
import { newId } from '#model/id.ts'
import { listCommits, recordCommit } from '#store/commits/commits.ts'
import { getViewMetrics } from '#store/series/view-counters.ts'
import { transact } from '#store/store.ts'
import type { TestStore } from '../support/databases.ts'
import { aCommit, anOutcome, aPublishedView, aStoredEndpoint, describeStores, iso, t0 } from './fixtures.ts'

const record = (store: TestStore, commit: ReturnType<typeof aCommit>, now: number) =>
  transact(store, (db) => recordCommit(db, commit, now))

describeStores('commits', (test) => {
  test('a repeated report changes nothing', async ({ store, account }) => {
    const { id: endpoint } = await aStoredEndpoint(store, account)
    const view = await aPublishedView(store, account)
    const commit = aCommit(endpoint, 1, { views: [anOutcome(view.id)] })
    await record(store, commit, t0)
    expect(await record(store, { ...commit, wal_bytes: 1, duration_ms: 9 }, t0 + 99)).toBe('known')
    const { items } = await listCommits(store.db, endpoint, { limit: 50 })
    expect(items).toMatchObject([{ wal_bytes: 2750, duration_ms: 120, uploaded_at: iso(t0) }])
    expect((await getViewMetrics(store.db, account, view.id, t0)).aggregated.all_time.processed).toBe(10)
  })

  test('another commit of a segment that has one is not taken', async ({ store, account }) => {
    const { id: endpoint } = await aStoredEndpoint(store, account)
    const first = aCommit(endpoint, 1)
    const parquet = { key: 'p/late.parquet', bytes: 9, rows: 99, sha256: 'cd' }
    const late = { ...first, records: 99, adoption: '0a1b2c3d', artifacts: { parquet } }
    expect([await record(store, first, t0), await record(store, late, t0 + 1)]).toEqual(['new', 'known'])
    const { items } = await listCommits(store.db, endpoint, { limit: 50 })
    expect(items).toMatchObject([{ id: first.id, records: 10, uploaded_at: iso(t0), artifacts: { parquet: { sha256: 'ab' } } }])
  })

  test('uploaded_at increases strictly within an endpoint, whatever the clock does', async ({ store }) => {
    const [one, two] = [newId(), newId()]
    const clock = [t0, t0, t0 - 60_000, t0 + 1, t0 + 10]
    for (const [seq, now] of clock.entries()) await record(store, aCommit(one, seq), now)
    await record(store, aCommit(two, 0), t0)
    const times = async (endpoint: string) =>
      (await listCommits(store.db, endpoint, { limit: 50 })).items.map(({ uploaded_at }) => Date.parse(uploaded_at) - t0)
    expect(await times(one)).toEqual([10, 3, 2, 1, 0])
    expect(await times(two)).toEqual([0])
  })

  test('a failed transaction leaves no part of a commit', async ({ store, account }) => {
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

  test('accept all that a node may report: unknown endpoints and views, U+0000, the largest numbers', async ({ store }) => {
    const last_error = { code: 'cast_failed', message: 'bad \0 byte', at: iso(t0) }
    const commit = aCommit(newId(), Number.MAX_SAFE_INTEGER, {
      wal_bytes: Number.MAX_SAFE_INTEGER,
      views: [anOutcome(newId(), { last_error })],
    })
    expect(await record(store, commit, t0)).toBe('new')
  })
})
