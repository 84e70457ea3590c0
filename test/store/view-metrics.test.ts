import { expect } from 'vitest'
import { recordCommit } from '#store/commits/commits.ts'
import { getViewMetrics } from '#store/series/view-counters.ts'
import { transact } from '#store/store.ts'
import type { TestStore } from '../support/databases.ts'
import { aCommit, anAccount, anOutcome, aPublishedView, aStoredEndpoint, describeStores, iso, t0 } from './fixtures.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

async function setUp(store: TestStore) {
  const account = await anAccount(store)
  const endpoint = await aStoredEndpoint(store, account)
  const view = await aPublishedView(store, account)
  let seq = 0
  const count = (now: number, change: Parameters<typeof anOutcome>[1] = {}) => {
    seq += 1
    const commit = aCommit(endpoint.id, seq, { views: [anOutcome(view.id, change)] })
    return transact(store, (db) => recordCommit(db, commit, now))
  }
  const metrics = (now: number) => getViewMetrics(store.db, account, view.id, now)
  return { count, metrics }
}

const clean = { dlq: 0, accepted: 9, errors: {}, last_error: null }

describeStores('view metrics', (test) => {
  test('the window moves in five-minute steps; the lifetime sums stay', async ({ store }) => {
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

  test('a commit without errors keeps the last error; a new error replaces it', async ({ store }) => {
    const { count, metrics } = await setUp(store)
    await count(t0)
    await count(t0 + 1, clean)
    expect((await metrics(t0 + 2)).endpoints[0]).toMatchObject({ last_error_code: 'cast_failed', last_error_at: iso(t0) })
    await count(t0 + 3, { last_error: { code: 'invalid_json', message: 'bad', at: iso(t0 + 3) } })
    expect((await metrics(t0 + 4)).endpoints[0]).toMatchObject({ last_error_code: 'invalid_json', last_error_at: iso(t0 + 3) })
  })
})
