import { expect } from 'vitest'
import { newId } from '#model/id.ts'
import { qualityLimits } from '#model/limits.ts'
import type { ColumnQuality, ViewQuality } from '#model/view-quality.ts'
import { recordCommit } from '#store/commits/commits.ts'
import { getViewQuality } from '#store/series/view-quality.ts'
import { transact } from '#store/store.ts'
import type { TestStore } from '../support/databases.ts'
import { aCommit, anOutcome, describeStores, t0 } from './fixtures.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

const column = (change: Partial<ColumnQuality> = {}): ColumnQuality => ({
  ...{ name: 'n', type: 'BIGINT', values: 5, nulls: 1, cast_nulls: 1, cast_dlq: 2, missing: 1, min: '9', max: '10' },
  ...change,
})
const aQuality = (change: Partial<ViewQuality> = {}): ViewQuality => ({
  columns: [column()],
  sampled_records: 10,
  unmapped: [{ path: '$.new', types: ['string'], records: 4 }],
  ...change,
})

function setUp(store: TestStore) {
  const [endpoint, view] = [newId(), newId()]
  let seq = 0
  const count = (now: number, quality: ViewQuality) => {
    seq += 1
    const commit = aCommit(endpoint, seq, { views: [anOutcome(view, { quality })] })
    return transact(store, (db) => recordCommit(db, commit, now))
  }
  return { endpoint, view, count, quality: (now: number) => getViewQuality(store.db, view, endpoint, now) }
}

describeStores('column quality', (test) => {
  test('the window of values, bounds and paths moves in five-minute steps; the lifetime sums stay', async ({ store }) => {
    const { count, quality } = setUp(store)
    await count(t0 + 4 * minuteMs, aQuality())
    await count(t0 + 5 * minuteMs, aQuality({ columns: [column({ min: '100', max: '200' })], unmapped: [] }))
    const lately = async (now: number) => {
      const { last_24h } = await quality(now)
      return [last_24h.columns[0]?.min, last_24h.columns[0]?.max, last_24h.unmapped.length]
    }
    expect(await lately(t0 + dayMs - 1)).toEqual(['9', '200', 1])
    expect(await lately(t0 + dayMs)).toEqual(['100', '200', 0])
    expect(await lately(t0 + dayMs + 5 * minuteMs)).toEqual([undefined, undefined, 0])
    expect((await quality(t0 + 7 * dayMs)).all_time.columns).toEqual([
      column({ values: 10, nulls: 2, cast_nulls: 2, cast_dlq: 4, missing: 2, max: '200' }),
    ])
  })

  test('the stored size is bounded, whatever names the records have', async ({ store }) => {
    const { view, endpoint, count } = setUp(store)
    for (let commit = 0; commit < 5; commit += 1) {
      const unmapped = Array.from({ length: qualityLimits.pathsMax }, (_, index) => ({
        path: `$['\0${commit}-${index}${'"'.repeat(150)}']`,
        types: ['object' as const],
        records: 1,
      }))
      await count(t0 + commit, aQuality({ columns: [column({ type: 'VARCHAR', max: '\0'.repeat(64) })], unmapped }))
    }
    const rows = await store.db.selectFrom('view_quality').selectAll().where('view_id', '=', view).execute()
    expect(rows).toHaveLength(2)
    for (const { quality } of rows) expect(quality.length).toBeLessThan(qualityLimits.pathsKeptMax * 500 + 1_000)
    const { last_24h } = await getViewQuality(store.db, view, endpoint, t0)
    expect(last_24h.unmapped).toHaveLength(qualityLimits.pathsKeptMax)
    expect(last_24h.columns[0]?.max).toBe('\0'.repeat(64))
  })
})
