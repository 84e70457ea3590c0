import { expect, test } from 'vitest'
import { recordCommit } from '#store/commits.ts'
import { transact } from '#store/store.ts'
import { getViewMetrics, removeViewCountersBefore } from '#store/view-counters.ts'
import { describeDatabases, newStore, type TestStore } from '../support/databases.ts'
import { aCommit, anAccount, anOutcome, aPublishedView, aStoredEndpoint, iso, t0 } from './fixtures.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

async function setUp(store: TestStore) {
  const account = await anAccount(store)
  const endpoint = await aStoredEndpoint(store, account)
  const view = await aPublishedView(store, account)
  let seq = 0
  const count = (now: number, change: Parameters<typeof anOutcome>[1] = {}, endpoint_id = endpoint.id) => {
    seq += 1
    const commit = aCommit(endpoint_id, seq, { views: [anOutcome(view.id, change)] })
    return transact(store, (db) => recordCommit(db, commit, now))
  }
  const metrics = (now: number) => getViewMetrics(store.db, account, view.id, now)
  return { account, endpoint, view, count, metrics }
}

const clean = { dlq: 0, accepted: 9, errors: {}, last_error: null }

describeDatabases('view metrics', (kind) => {
  test('a view that never ran has none', async () => {
    await using store = await newStore(kind)
    const { metrics } = await setUp(store)
    const none = { processed: 0, accepted: 0, dropped: 0, dlq: 0, failed: 0, redriven: 0 }
    expect(await metrics(t0)).toEqual({
      endpoints: [],
      aggregated: { last_24h: none, all_time: none, error_rate_pct: 0, has_errors: false, total_error_count_24h: 0 },
    })
  })

  test('add up by endpoint and over all, in the fields of the API', async () => {
    await using store = await newStore(kind)
    const { account, endpoint, count, metrics } = await setUp(store)
    const second = await aStoredEndpoint(store, account)
    await count(t0)
    await count(t0 + minuteMs)
    await count(t0 + 20 * minuteMs, clean, second.id)
    const twice = { processed: 20, accepted: 12, dropped: 2, dlq: 6, failed: 0, redriven: 0 }
    const { endpoints, aggregated } = await metrics(t0 + 30 * minuteMs)
    expect(endpoints.find(({ endpoint_id }) => endpoint_id === endpoint.id)).toEqual({
      ...{ endpoint_id: endpoint.id, endpoint_name: endpoint.label, last_24h: twice, all_time: twice },
      ...{ error_rate_pct: 30, has_errors: true, error_count_24h: 6, total_error_count: 6 },
      ...{ last_error_at: iso(t0), last_error_code: 'cast_failed', last_error_message: 'no TIMESTAMP: "soon"' },
      last_updated_at: iso(t0 + minuteMs),
      held_since: null,
    })
    expect(endpoints.find(({ endpoint_id }) => endpoint_id === second.id)).toMatchObject({
      ...{ error_rate_pct: 0, has_errors: false, error_count_24h: 0, total_error_count: 0 },
      ...{ last_error_at: null, last_error_code: null, last_error_message: null },
    })
    const all = { processed: 30, accepted: 21, dropped: 3, dlq: 6, failed: 0, redriven: 0 }
    expect(aggregated).toEqual({
      ...{ last_24h: all, all_time: all, error_rate_pct: 20, has_errors: true, total_error_count_24h: 6 },
    })
  })

  test('the window moves in five-minute steps; the lifetime sums stay', async () => {
    await using store = await newStore(kind)
    const { count, metrics } = await setUp(store)
    await count(t0 + 4 * minuteMs)
    await count(t0 + 5 * minuteMs)
    const lately = async (now: number) => (await metrics(now)).aggregated.last_24h.processed
    expect(await lately(t0 + dayMs - 1)).toBe(20)
    expect(await lately(t0 + dayMs)).toBe(10)
    expect(await lately(t0 + dayMs + 5 * minuteMs)).toBe(0)
    const later = await metrics(t0 + 7 * dayMs)
    expect(later.endpoints[0]).toMatchObject({
      has_errors: false,
      error_count_24h: 0,
      total_error_count: 6,
      last_error_at: iso(t0),
    })
    expect(later.aggregated.all_time.processed).toBe(20)
  })

  test('a commit without errors keeps the last error; a new error replaces it', async () => {
    await using store = await newStore(kind)
    const { count, metrics } = await setUp(store)
    await count(t0)
    await count(t0 + 1, clean)
    expect((await metrics(t0 + 2)).endpoints[0]).toMatchObject({ last_error_code: 'cast_failed', last_error_at: iso(t0) })
    await count(t0 + 3, { last_error: { code: 'invalid_json', message: 'bad', at: iso(t0 + 3) } })
    expect((await metrics(t0 + 4)).endpoints[0]).toMatchObject({ last_error_code: 'invalid_json', last_error_at: iso(t0 + 3) })
  })

  test('the records of a view that failed as a whole are processed and failed, and count as errors', async () => {
    await using store = await newStore(kind)
    const { count, metrics } = await setUp(store)
    await count(t0, clean)
    await count(t0, { accepted: 0, dropped: 0, dlq: 0, failed: 10, errors: { view_failed: 10 } })
    const both = { processed: 20, accepted: 9, dropped: 1, dlq: 0, failed: 10 }
    const { endpoints, aggregated } = await metrics(t0)
    expect(endpoints[0]).toMatchObject({ last_24h: both, all_time: both, error_rate_pct: 50, error_count_24h: 10 })
    expect(aggregated).toMatchObject({ last_24h: both, all_time: both, error_rate_pct: 50, has_errors: true })
  })

  test('old buckets are removed; the lifetime sums stay', async () => {
    await using store = await newStore(kind)
    const { count, metrics } = await setUp(store)
    await count(t0)
    await count(t0 + 10 * minuteMs)
    expect(await removeViewCountersBefore(store.db, t0 + 5 * minuteMs)).toBe(1)
    expect((await metrics(t0 + 11 * minuteMs)).aggregated).toMatchObject({
      last_24h: { processed: 10 },
      all_time: { processed: 20 },
    })
  })
})
