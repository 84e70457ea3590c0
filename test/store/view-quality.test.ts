import { expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { qualityLimits } from '#model/limits.ts'
import type { ColumnQuality, ViewQuality } from '#model/view-quality.ts'
import { recordCommit } from '#store/commits.ts'
import { transact } from '#store/store.ts'
import { getViewQuality, removeViewQualityBefore } from '#store/view-quality.ts'
import { describeDatabases, newStore, type TestStore } from '../support/databases.ts'
import { aCommit, anOutcome, iso, t0 } from './fixtures.ts'

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
  const count = (now: number, quality: ViewQuality | undefined, { endpoint_id = endpoint, view_id = view } = {}) => {
    seq += 1
    const outcome = anOutcome(view_id, quality === undefined ? {} : { quality })
    return transact(store, (db) => recordCommit(db, aCommit(endpoint_id, seq, { views: [outcome] }), now))
  }
  return { endpoint, view, count, quality: (now: number) => getViewQuality(store.db, view, endpoint, now) }
}

const nothing = { columns: [], sampled_records: 0, unmapped: [] }

describeDatabases('column quality', (kind) => {
  test('is empty for a view that never ran, and for nodes that do not report it', async () => {
    await using store = await newStore(kind)
    const { count, quality } = setUp(store)
    await count(t0, undefined)
    expect(await quality(t0)).toEqual({ last_24h: nothing, all_time: nothing })
  })

  test('sums exactly by endpoint and view', async () => {
    await using store = await newStore(kind)
    const { count, quality } = setUp(store)
    await count(t0, aQuality())
    await count(t0 + 1, undefined)
    await count(t0 + minuteMs, aQuality({ columns: [column({ min: '-9223372036854775808', max: '9007199254740993' })] }))
    await count(t0 + 20 * minuteMs, aQuality({ columns: [column({ max: '9007199254740992' })], unmapped: [] }))
    await count(t0, aQuality(), { endpoint_id: newId() })
    await count(t0, aQuality(), { view_id: newId() })
    const summed = column({
      ...{ values: 15, nulls: 3, cast_nulls: 3, cast_dlq: 6, missing: 3 },
      ...{ min: '-9223372036854775808', max: '9007199254740993' },
    })
    expect(await quality(t0 + 21 * minuteMs)).toEqual({
      last_24h: {
        columns: [summed],
        sampled_records: 30,
        unmapped: [{ path: '$.new', types: ['string'], records: 8, last_seen_at: iso(t0 + minuteMs) }],
      },
      all_time: { columns: [summed], sampled_records: 30, unmapped: [] },
    })
  })

  test('the window of values, minimum, maximum and paths moves in five-minute steps; the lifetime sums stay', async () => {
    await using store = await newStore(kind)
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

  test('old buckets are removed; the lifetime sums stay', async () => {
    await using store = await newStore(kind)
    const { count, quality } = setUp(store)
    await count(t0, aQuality())
    await count(t0 + 10 * minuteMs, aQuality())
    const remove = () => removeViewQualityBefore(store.db, t0 + 5 * minuteMs)
    expect([await remove(), await remove()]).toEqual([1, 0])
    expect(await store.db.selectFrom('view_quality').select('bucket_start').orderBy('bucket_start').execute()).toEqual([
      { bucket_start: -1 },
      { bucket_start: t0 + 10 * minuteMs },
    ])
    const { last_24h, all_time } = await quality(t0 + 11 * minuteMs)
    expect([last_24h.columns[0]?.values, all_time.columns[0]?.values]).toEqual([5, 10])
  })

  test('the stored size is bounded, whatever names the records have', async () => {
    await using store = await newStore(kind)
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
