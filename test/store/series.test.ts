import { expect } from 'vitest'
import { sampleUndelivered } from '#control/upkeep/undelivered-samples.ts'
import { systemClock } from '#lib/clock.ts'
import { newId } from '#model/id.ts'
import { seriesLimits } from '#model/limits.ts'
import type { SeriesReport } from '#model/node-protocol.ts'
import { type SeriesQuery, seriesWindow } from '#model/series.ts'
import { recordCommit } from '#store/commits/commits.ts'
import { listUndeliveredBytes } from '#store/nodes/lag-totals.ts'
import { recordHeartbeat, registerNode } from '#store/nodes/nodes.ts'
import { listEndpointBuckets, recordSeriesReport } from '#store/series/endpoint-series.ts'
import { seriesRemovals } from '#store/series/series-retention.ts'
import { listVersionSeries } from '#store/series/view-series.ts'
import { transact } from '#store/store.ts'
import { newStore, type TestStore } from '../support/databases.ts'
import { aLag } from '../support/lags.ts'
import { aCommit, anAccount, anOutcome, aPublishedView, aStoredEndpoint, describeStores, iso, t0 } from './fixtures.ts'

type Item = SeriesReport['items'][number]

async function aNode(store: TestStore, region: string): Promise<string> {
  const node_id = newId()
  await registerNode(store.db, { node_id, region, ipv4: [], ipv6: [], ingest_address: 'node:1' }, t0)
  return node_id
}

/** An endpoint whose series nodes report. */
async function setUp(store: TestStore) {
  const account_id = await anAccount(store)
  const { id, region } = await aStoredEndpoint(store, account_id)
  const item = (change: Partial<Item> = {}): Item => ({
    ...{ endpoint_id: id, at: iso(t0), records: 10, bytes: 100, requests: 2, refused: {}, acknowledged_after: { 20: 2 } },
    ...change,
  })
  let number = 0
  const report = async (node_id: string, items: readonly Item[], change: Partial<SeriesReport> = {}, now = t0) => {
    number += 1
    await transact(store, (db) => recordSeriesReport(db, { node_id, run: 'a', number, items: [...items], ...change }, now))
  }
  const buckets = (query: SeriesQuery = {}, now = t0) => listEndpointBuckets(store.db, id, seriesWindow(query, now))
  return { account_id, id, region, node: await aNode(store, region), item, report, buckets }
}

describeStores('the series of an endpoint', (test) => {
  test('are the sum of all nodes, in buckets of every length', async ({ store }) => {
    const { region, node, item, report, buckets } = await setUp(store)
    await report(node, [item(), item({ at: iso(t0 - 10_000), records: 1, acknowledged_after: { 60: 1 } })])
    await report(await aNode(store, region), [item({ refused: { no_room: 3 } })])
    const [before, last] = await buckets({ step: '10s' })
    expect(before).toMatchObject({ at: iso(t0 - 10_000), records: 1 })
    expect(last).toMatchObject({ at: iso(t0), records: 20, bytes: 200, requests: 4, refused: { no_room: 3 }, commits: 0 })
    const inAnHour = t0 + 3_600_000
    expect(await buckets({ step: '1m', since: iso(t0 - 60_000) }, inAnHour)).toMatchObject([{ records: 1 }, { records: 20 }])
    expect(await buckets({ step: '1h', since: iso(t0) }, inAnHour)).toMatchObject([{ at: iso(t0), records: 20 }])
  })

  test('count a report once that arrives twice, and those of every start of a node', async ({ store }) => {
    const { node, item, report, buckets } = await setUp(store)
    for (const number of [1, 1, 2, 1]) await report(node, [item({ records: number })], { number })
    await report(node, [item({ records: 10 })], { run: 'b', number: 1 })
    expect(await buckets()).toMatchObject([{ records: 13 }])
  })

  test('leave out endpoints of other regions, those that do not exist, and times that are too far ahead', async ({ store }) => {
    const { id, node, item, report, buckets } = await setUp(store)
    const elsewhere = await aNode(store, 'else')
    await report(elsewhere, [item()])
    await report(node, [item({ endpoint_id: newId() }), item({ at: iso(t0 + 120_000) })])
    expect(await buckets()).toEqual([])
    const rows = await store.db.selectFrom('endpoint_series').select('endpoint_id').execute()
    expect(rows.filter(({ endpoint_id }) => endpoint_id !== id)).toEqual([])
  })

  test('a late report counts in the buckets that are still kept', async ({ store }) => {
    const { node, item, report, buckets } = await setUp(store)
    const later = t0 + 2 * 3_600_000
    await report(node, [item()], {}, later)
    expect(await buckets({ step: '10s', since: iso(t0) }, t0)).toEqual([])
    expect(await buckets({ step: '1m', since: iso(t0) }, later)).toMatchObject([{ records: 10 }])
  })

  test('nodes that report at the same time lose nothing', async ({ store }) => {
    const { region, node, item, report, buckets } = await setUp(store)
    const nodes = [node, ...(await Promise.all([1, 2, 3].map(() => aNode(store, region))))]
    const items = Array.from({ length: 6 }, (_, index) => item({ at: iso(t0 - index * 10_000) }))
    await Promise.all(nodes.map((each, index) => report(each, index % 2 === 0 ? items : items.toReversed())))
    expect((await buckets({ step: '1h', since: iso(t0 - 3_600_000) })).map(({ records }) => records)).toEqual([200, 40])
  })

  test('a minute of a node is four rows, each written once for each report', async ({ store }) => {
    const { region, node, item, report, buckets } = await setUp(store)
    const minute = Array.from({ length: 6 }, (_, index) => item({ at: iso(t0 + index * 10_000) }))
    const now = t0 + 60_000
    await report(node, minute, {}, now)
    await report(await aNode(store, region), minute, {}, now)
    const rows = await store.db.selectFrom('endpoint_series').select(['step', 'writes']).orderBy('step').execute()
    expect(rows).toEqual(['10s', '1h', '1m', '5m'].map((step) => ({ step, writes: 2 })))
    expect(await buckets({ step: '10s', since: iso(t0 + 20_000) }, now)).toMatchObject(
      minute.slice(2).map(({ at }) => ({ at, records: 20 })),
    )
  })

  test('have commits with their lag, each once', async ({ store }) => {
    const { id, buckets } = await setUp(store)
    for (const [seq, lagMs] of [
      [1, 1_000],
      [2, 5_000],
      [2, 5_000],
    ] as const) {
      const commit = aCommit(id, seq, { sealed_at: iso(t0 - lagMs), records: 7, views: [] })
      await transact(store, (db) => recordCommit(db, commit, t0))
    }
    const [bucket] = await buckets()
    expect(bucket).toMatchObject({ at: iso(t0), commits: 2, committed_records: 14, ack_latency_ms: null })
    expect(bucket?.commit_lag_ms?.max).toBeGreaterThanOrEqual(5_000)
    // Durations are counted in bins.
    expect(bucket?.commit_lag_ms?.p50).toBeGreaterThan(900)
    expect(bucket?.commit_lag_ms?.p50).toBeLessThan(1_100)
  })
})

describeStores('samples of undelivered bytes', (test) => {
  test('are what all nodes last reported, and a bucket keeps the highest', async ({ store }) => {
    const { id, region, node, buckets } = await setUp(store)
    const others = await Promise.all(Array.from({ length: 3 }, () => anAccount(store).then((of) => aStoredEndpoint(store, of))))
    const nodes = [node, await aNode(store, region)]
    const hold = async (...bytes: readonly number[]) => {
      for (const [index, node_id] of nodes.entries()) {
        const lag = [id, newId(), ...others.map((endpoint) => endpoint.id)].map((endpoint_id) =>
          aLag(endpoint_id, { undelivered_bytes: bytes[index] ?? 0 }),
        )
        const beat = { node_id, applied_epoch: 1, healthy: true, reasons: [], lag }
        await transact(store, (db) => recordHeartbeat(db, { process: 'delivery', ...beat }, t0))
      }
    }
    const sampleAt = (now: number) =>
      sampleUndelivered({ store, clock: { ...systemClock, now: () => now } }, new AbortController().signal)
    for (const [seconds, bytes] of [
      [0, [70, 30]],
      [30, [20, 5]],
      [60, [0, 0]],
      [70, [0, 8]],
    ] as const) {
      await hold(...bytes)
      await sampleAt(t0 + seconds * 1_000)
    }
    const most = async (step: '10s' | '1m' | '1h') =>
      (await buckets({ step }, t0 + 70_000)).map((bucket) => bucket.undelivered_bytes_max)
    expect(await most('10s')).toEqual([100, 25, 8])
    expect(await most('1m')).toEqual([100, 8])
    expect(await most('1h')).toEqual([100])
    expect(await listUndeliveredBytes(store.db, '', 2)).toHaveLength(2)
    const ids = [id, ...others.map((endpoint) => endpoint.id)].toSorted()
    expect(await listUndeliveredBytes(store.db, ids[1] ?? '', 9)).toEqual(
      ids.slice(2).map((endpoint_id) => ({ endpoint_id, bytes: 8 })),
    )
  })
})

describeStores('the series of views', (test) => {
  test('have the versions of a view beside each other, in sum or for one endpoint', async ({ store }) => {
    const { account_id, id } = await setUp(store)
    const other = await aStoredEndpoint(store, account_id)
    const view = await aPublishedView(store, account_id)
    const outcome = anOutcome(view.id, { processed: 11, accepted: 7, dropped: 1, dlq: 3, rows: 20, duplicates: 2 })
    for (const [seq, endpoint_id] of [id, id, other.id].entries())
      await transact(store, (db) => recordCommit(db, aCommit(endpoint_id, seq, { views: [outcome] }), t0))
    const of = (endpoint_id: string | null) =>
      listVersionSeries(store.db, { account_id, name: view.name, endpoint_id }, seriesWindow({}, t0))
    const counts = (times: number) => ({
      ...{ accepted: 7 * times, dropped: times, dlq: 3 * times, failed: 0 },
      ...{ rows: 20 * times, duplicates: 2 * times },
    })
    const version = { view_id: view.id, view_version: 1 }
    expect(await of(null)).toEqual([{ ...version, buckets: [{ at: iso(t0), ...counts(3) }] }])
    expect(await of(other.id)).toEqual([{ ...version, buckets: [{ at: iso(t0), ...counts(1) }] }])
    expect(await of(newId())).toEqual([])
  })
})

describeStores('housekeeping of series', (test, kind) => {
  test.each(Object.entries(seriesLimits.keptMs))('removes buckets of %s when their time is over', async (step, keptMs) => {
    await using store = await newStore(kind)
    const { account_id, id } = await setUp(store)
    const view = await aPublishedView(store, account_id)
    const commit = aCommit(id, 1, { views: [anOutcome(view.id)] })
    await transact(store, (db) => recordCommit(db, commit, t0))
    for (const [now, isKept] of [
      [t0 + keptMs, true],
      [t0 + keptMs + 3_600_001, false],
    ] as const) {
      for (const remove of seriesRemovals(store.db, now)) while ((await remove()) > 0);
      for (const table of ['endpoint_series', 'view_series'] as const) {
        const rows = await store.db.selectFrom(table).select('step').where('step', '=', step).execute()
        expect(rows.length > 0, `${table} ${isKept}`).toBe(isKept)
      }
    }
  })
})
