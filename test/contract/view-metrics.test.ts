import { describe, expect, test } from 'vitest'
import type { ViewOutcome } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import type { ColumnQuality, ViewQuality } from '#model/view-quality.ts'
import { newControl, newRegion, type TestControl, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { aPublishedView } from '../support/set-up.ts'
import { aCommit, TestNode } from '../support/test-node.ts'

const control = useControl()

const oneColumn = [{ name: 'a', type: 'VARCHAR', path: '$.a' }]

async function furnished(on: TestControl = control(), columns: readonly object[] = oneColumn) {
  const account = await on.newAccount()
  const view = await aPublishedView(account, 'events', { columns })
  const region = newRegion()
  const [first, second] = [
    (await account.post('/v1/endpoints', { region })).body.id,
    (await account.post('/v1/endpoints', { region })).body.id,
  ]
  const node = await TestNode.register(on, region)
  let seq = 0
  const report = async (endpoint_id: string, outcome: Partial<ViewOutcome>, others: readonly Partial<ViewOutcome>[] = []) => {
    seq += 1
    const nothing = { processed: 0, accepted: 0, dropped: 0, dlq: 0, failed: 0, cast_nulls: 0, errors: {}, last_error: null }
    const views = [outcome, ...others].map((each) => ({
      ...{ view_id: view.id, view_name: 'events', view_version: 1, ...nothing },
      ...each,
    }))
    const commit = aCommit(node.id, endpoint_id, seq, { views })
    // Reported twice, like a node that missed the response.
    for (let times = 0; times < 2; times += 1)
      expect(await node.call('POST', 'commits', { commits: [commit] })).toMatchObject({ status: 200 })
  }
  return { account, view, first, second, report, node, path: `/v1/views/${view.id}/metrics` }
}

const outcomes = (processed: number, accepted: number, dropped: number, dlq: number, failed = 0) => ({
  ...{ processed, accepted, dropped, dlq, failed },
})
const counts = (...of: Parameters<typeof outcomes>) => ({ ...outcomes(...of), rows: of[1], duplicates: 0, redriven: 0 })
const lastError = { code: 'cast_failed', message: 'the value "x"', at: '2026-11-20T08:00:00.000Z' }

describe('GET /v1/views/{id}/metrics', () => {
  test('200 for a view without records', async () => {
    const { account, view, path } = await furnished()
    expect(await account.get(path)).toEqual(
      expect.objectContaining({
        status: 200,
        body: {
          ...{ view_id: view.id, view_name: 'events', view_version: 1, endpoints: [] },
          aggregated: {
            last_24h: counts(0, 0, 0, 0),
            all_time: counts(0, 0, 0, 0),
            ...{ error_rate_pct: 0, has_errors: false, total_error_count_24h: 0 },
          },
        },
      }),
    )
  })

  test('200 counts by endpoint and in total, each commit once', async () => {
    const { account, first, second, report, path } = await furnished()
    await report(first, { ...outcomes(100, 90, 6, 4), errors: { cast_failed: 3, invalid_json: 1 }, last_error: lastError })
    await report(first, outcomes(10, 10, 0, 0))
    await report(second, outcomes(90, 90, 0, 0))
    const { status, body } = await account.as('metrics').get(path)
    expect(status).toBe(200)
    const of = (id: string) => body.endpoints.find(({ endpoint_id }: { endpoint_id: string }) => endpoint_id === id)
    expect(of(first)).toMatchObject({
      endpoint_name: (await account.get(`/v1/endpoints/${first}`)).body.name,
      last_24h: counts(110, 100, 6, 4),
      all_time: counts(110, 100, 6, 4),
      ...{ error_rate_pct: 3.64, has_errors: true, error_count_24h: 4, total_error_count: 4 },
      ...{ last_error_at: lastError.at, last_error_code: 'cast_failed', last_error_message: lastError.message },
      last_updated_at: expect.stringMatching(/\.\d{3}Z$/),
    })
    expect(of(second)).toMatchObject({
      last_24h: counts(90, 90, 0, 0),
      ...{ error_rate_pct: 0, has_errors: false, last_error_at: null, last_error_code: null, last_error_message: null },
    })
    expect(body.aggregated).toEqual({
      last_24h: counts(200, 190, 6, 4),
      all_time: counts(200, 190, 6, 4),
      ...{ error_rate_pct: 2, has_errors: true, total_error_count_24h: 4 },
    })
  })

  test('200 counts the rows of records that became several', async () => {
    const { account, first, report, path } = await furnished()
    await report(first, { ...outcomes(5, 3, 1, 1), rows: 40 })
    await report(first, outcomes(2, 2, 0, 0))
    // Fewer rows than accepted records cannot be.
    await report(first, { ...outcomes(4, 4, 0, 0), rows: 1 })
    const sum = { processed: 11, accepted: 9, dropped: 1, dlq: 1, failed: 0, rows: 46, duplicates: 0, redriven: 0 }
    expect((await account.get(path)).body).toMatchObject({
      endpoints: [{ last_24h: sum, all_time: sum }],
      aggregated: { last_24h: sum, all_time: sum },
    })
  })

  test('200 counts deleted endpoints', async () => {
    const { account, first, report, path } = await furnished()
    await report(first, outcomes(10, 10, 0, 0))
    await account.patch(`/v1/endpoints/${first}`, { name: 'checkout' })
    expect(await account.delete(`/v1/endpoints/${first}?force=true`)).toMatchObject({ status: 200 })
    expect(await account.get(path)).toMatchObject({
      body: { endpoints: [{ endpoint_id: first, endpoint_name: 'checkout', all_time: counts(10, 10, 0, 0) }] },
    })
  })

  test('200 counts the records of a view that failed as a whole as errors', async () => {
    const { account, first, report, path } = await furnished()
    const view_failed = { ...lastError, code: 'view_failed' }
    await report(first, { ...outcomes(150, 0, 0, 0, 150), errors: { view_failed: 150 }, last_error: view_failed })
    expect(await account.get(path)).toMatchObject({
      body: {
        endpoints: [{ last_24h: counts(150, 0, 0, 0, 150), error_rate_pct: 100, last_error_code: 'view_failed' }],
        aggregated: { all_time: counts(150, 0, 0, 0, 150), error_rate_pct: 100, has_errors: true },
      },
    })
  })

  test('200 shows a required view that holds its endpoint, and counts one error each time that it begins', async () => {
    const { account, view, first, second, report, path, node } = await furnished()
    await report(first, { ...outcomes(10, 10, 0, 0) })
    const since = new Date(Date.now() - 60_000).toISOString()
    const reason = 'the required view events v1 failed: too slow'
    const failing = { blocked_by: reason, failing_view: { view_id: view.id, since } }
    const held = { lag: [aLag(first, failing), aLag(second, failing)] }
    for (let times = 0; times < 3; times += 1) await node.heartbeat({}, held)
    const { body } = await account.get(path)
    const of = (id: string) => body.endpoints.find(({ endpoint_id }: { endpoint_id: string }) => endpoint_id === id)
    const error = { last_error_code: 'view_failed', last_error_message: reason, error_count_24h: 1, total_error_count: 1 }
    const shown = { held_since: since, has_errors: true, ...error }
    expect(of(first)).toMatchObject({ ...shown, error_rate_pct: 0, all_time: counts(10, 10, 0, 0) })
    expect(of(second)).toMatchObject({ ...shown, error_rate_pct: 100, all_time: counts(0, 0, 0, 0) })
    expect(body.aggregated).toMatchObject({ has_errors: true, total_error_count_24h: 2 })
    const { body: endpoint } = await account.get(`/v1/endpoints/${first}`)
    expect(endpoint).toMatchObject({ status: 'degraded', status_reasons: expect.arrayContaining([reason]) })
    await node.heartbeat()
    const over = { held_since: null, has_errors: true, error_rate_pct: 0, ...error }
    expect((await account.get(path)).body.endpoints).toMatchObject([over, over])
  })

  test('200 drops a day after 24 hours, and keeps the all-time total', async () => {
    await using own = await newControl()
    const { account, first, report, path } = await furnished(own)
    await report(first, { ...outcomes(5, 4, 0, 1), errors: { cast_failed: 1 }, last_error: lastError })
    own.clock.advance(24 * 3_600_000 + 300_000)
    const { body: token } = await own.call('POST', '/v1/token/exchange', { api_key: account.api_key, scope: 'metrics' })
    const answer = await own.call('GET', path, undefined, { authorization: `Bearer ${token.access_token}` })
    expect(answer).toMatchObject({
      status: 200,
      body: {
        endpoints: [
          {
            last_24h: counts(0, 0, 0, 0),
            all_time: counts(5, 4, 0, 1),
            has_errors: false,
            error_count_24h: 0,
            total_error_count: 1,
          },
        ],
        aggregated: { last_24h: counts(0, 0, 0, 0), all_time: counts(5, 4, 0, 1), error_rate_pct: 0 },
      },
    })
  })

  test('422 for an unknown detail', async () => {
    const { account, path } = await furnished()
    for (const query of ['detail=rows', 'detail=columns&detail=columns', 'details=columns']) {
      expect(await account.get(`${path}?${query}`)).toMatchObject({ status: 422, body: { error: 'validation_error' } })
    }
  })
})

describe('GET /v1/view-metrics', () => {
  test('200 lists published versions with the metrics that each has, newest first', async () => {
    const { account, view, first, second, report, path } = await furnished()
    const { body: idle } = await account.post('/v1/views', { name: 'idle', definition: { columns: oneColumn } })
    expect(await account.get('/v1/view-metrics')).toMatchObject({ status: 200, body: { total: 1 } })
    await account.post(`/v1/views/${idle.id}/publish`)
    await report(first, { ...outcomes(100, 90, 6, 4), errors: { cast_failed: 4 }, last_error: lastError })
    await report(second, outcomes(90, 90, 0, 0))
    const { status, body } = await account.as('metrics').get('/v1/view-metrics')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      total: 2,
      items: [{ view_id: idle.id, view_name: 'idle', endpoints: [] }, { view_id: view.id }],
    })
    expect(body.items[1]).toEqual((await account.get(path)).body)
    expect(body.items[0].aggregated.last_24h).toEqual(counts(0, 0, 0, 0))
  })

  test('200 in pages', async () => {
    const { account, view } = await furnished()
    const { body } = await account.get('/v1/view-metrics?limit=1&offset=0')
    expect(body).toMatchObject({ limit: 1, next_offset: null, items: [{ view_id: view.id }] })
    expect(await (await control().newAccount()).get('/v1/view-metrics')).toMatchObject({ body: { total: 0, items: [] } })
  })
})

describe('GET /v1/views/{id}/metrics?detail=columns', () => {
  const columns = [
    { name: 'big', type: 'long', path: '$.big' },
    { name: 'text', type: 'TEXT', path: '$.text' },
  ]
  const big = (change: Partial<ColumnQuality>): ColumnQuality => ({
    ...{ name: 'big', type: 'BIGINT', values: 0, nulls: 0, cast_nulls: 0, cast_dlq: 0, missing: 0, min: null, max: null },
    ...change,
  })
  const text = (change: Partial<ColumnQuality>): ColumnQuality => big({ name: 'text', type: 'VARCHAR', ...change })
  const quality = (change: Partial<ViewQuality>): ViewQuality => ({
    ...{ columns: [big({}), text({})], sampled_records: 0, unmapped: [] },
    ...change,
  })
  const none = {
    ...{ values: 0, nulls: 0, null_rate_pct: 0, cast_failures: 0, cast_nulls: 0, cast_dlq: 0, missing: 0, min: null, max: null },
  }

  test('200 lists the columns of a view without records, in order', async () => {
    const { account, path } = await furnished(control(), columns)
    expect((await account.get(`${path}?detail=columns`)).body).toMatchObject({
      endpoints: [],
      aggregated: {
        columns: [
          { name: 'big', type: 'BIGINT', hidden: false, last_24h: none, all_time: none },
          { name: 'text', type: 'VARCHAR', hidden: false, last_24h: none, all_time: none },
        ],
        unmapped_paths: [],
      },
    })
  })

  test('200 adds up exactly by endpoint and in total, each commit once, also beside nodes that report no quality', async () => {
    const { account, first, second, report, path } = await furnished(control(), columns)
    const coupon = { path: '$.coupon', types: ['string' as const], records: 5 }
    await report(first, {
      ...outcomes(10, 9, 0, 1),
      quality: quality({
        columns: [
          big({ values: 6, nulls: 3, cast_nulls: 2, cast_dlq: 1, min: '9007199254740993', max: '9223372036854775806' }),
          text({ values: 9, min: 'a', max: 'Z\u0000' }),
        ],
        sampled_records: 10,
        unmapped: [coupon],
      }),
    })
    await report(first, outcomes(10, 10, 0, 0))
    await report(second, {
      ...outcomes(3, 2, 0, 1),
      quality: quality({
        columns: [big({ values: 2, missing: 1, min: '9007199254740992', max: '9223372036854775807' }), text({ nulls: 2 })],
        sampled_records: 3,
        unmapped: [{ ...coupon, types: ['object'], records: 3 }],
      }),
    })
    const { body } = await account.as('metrics').get(`${path}?detail=columns`)
    const of = (id: string) => body.endpoints.find(({ endpoint_id }: { endpoint_id: string }) => endpoint_id === id)
    const ofFirst = { ...none, values: 6, nulls: 3, null_rate_pct: 33.33, cast_failures: 3, cast_nulls: 2, cast_dlq: 1 }
    const min = '9007199254740993'
    expect(of(first).columns[0].last_24h).toEqual({ ...ofFirst, min, max: '9223372036854775806' })
    expect(of(first).columns[0].all_time).toEqual(of(first).columns[0].last_24h)
    expect(of(first).columns[1].last_24h).toMatchObject({ values: 9, null_rate_pct: 0 })
    expect(of(second).unmapped_paths).toEqual([
      { ...coupon, types: ['object'], records: 3, sampled_records: 3, seen_pct: 100, last_seen_at: expect.any(String) },
    ])
    const { columns: summed, unmapped_paths } = body.aggregated
    expect(summed[0].all_time).toEqual({
      ...{ ...ofFirst, values: 8, null_rate_pct: 27.27, missing: 1 },
      ...{ min: '9007199254740992', max: '9223372036854775807' },
    })
    expect(summed[1].last_24h).toMatchObject({ values: 9, nulls: 2, null_rate_pct: 18.18, min: 'a', max: 'Z\u0000' })
    expect(unmapped_paths).toMatchObject([
      { path: '$.coupon', types: ['string', 'object'], records: 8, sampled_records: 13, seen_pct: 61.54 },
    ])
    const plain = (await account.get(path)).body
    expect(plain.aggregated).not.toHaveProperty('columns')
    expect(plain.endpoints[0]).not.toHaveProperty('unmapped_paths')
  })

  test('200 has the failures of hidden columns, which are only in segments with one', async () => {
    const hidden = { name: 'raw', type: 'DOUBLE', path: '$.raw', hidden: true }
    const { account, first, report, path } = await furnished(control(), [...columns, hidden])
    const raw = big({ name: 'raw', type: 'DOUBLE', cast_nulls: 2, cast_dlq: 1, missing: 4 })
    await report(first, { ...outcomes(9, 9, 0, 0), quality: quality({ columns: [big({ values: 9 }), text({ nulls: 9 })] }) })
    await report(first, { ...outcomes(9, 4, 0, 5), quality: quality({ columns: [big({ values: 4 }), text({ nulls: 4 }), raw] }) })
    const { body } = await account.get(`${path}?detail=columns`)
    expect(body.aggregated.columns).toMatchObject([
      { name: 'big', hidden: false, all_time: { values: 13 } },
      { name: 'text', hidden: false, last_24h: { nulls: 13 } },
      { name: 'raw', hidden: true, last_24h: { ...none, cast_failures: 3, cast_nulls: 2, cast_dlq: 1, missing: 4 } },
    ])
  })

  test('200 drops a day after 24 hours, paths too, and keeps the all-time totals', async () => {
    await using own = await newControl()
    const { account, first, report, path } = await furnished(own, columns)
    const unmapped = [{ path: '$.x', types: ['integer' as const], records: 1 }]
    await report(first, {
      ...outcomes(1, 1, 0, 0),
      quality: quality({ columns: [big({ values: 1, min: '7', max: '7' }), text({ nulls: 1 })], sampled_records: 1, unmapped }),
    })
    own.clock.advance(24 * 3_600_000 + 300_000)
    const { body: token } = await own.call('POST', '/v1/token/exchange', { api_key: account.api_key, scope: 'metrics' })
    const headers = { authorization: `Bearer ${token.access_token}` }
    const { body } = await own.call('GET', `${path}?detail=columns`, undefined, headers)
    expect(body.aggregated.columns[0]).toMatchObject({ last_24h: none, all_time: { values: 1, min: '7', max: '7' } })
    expect(body.aggregated.unmapped_paths).toEqual([])
  })

  test('200 for a commit of twenty views with a hundred columns each', async () => {
    const names = Array.from({ length: 100 }, (_, index) => `c${index}${'é'.repeat(120)}`)
    const hundred = names.map((name) => ({ name, type: 'VARCHAR', path: '$.a' }))
    const { account, view, first, report, path } = await furnished(control(), hundred)
    const column = (name: string) => text({ name, values: 1, min: '\u0001'.repeat(64), max: '"'.repeat(64) })
    const full = quality({
      columns: hundred.map(({ name }) => column(name)),
      sampled_records: 200,
      unmapped: Array.from({ length: 50 }, (_, index) => ({
        path: `$["${index}${'"'.repeat(190)}`,
        types: ['boolean', 'integer', 'number', 'string', 'object', 'array'],
        records: 200 - index,
      })),
    })
    const others = Array.from({ length: 19 }, () => ({ view_id: newId(), view_name: 'other', view_version: 1, quality: full }))
    await report(first, { ...outcomes(1, 1, 0, 0), quality: full }, others)
    const { body } = await account.get(`${path}?detail=columns`)
    expect(body.view_id).toBe(view.id)
    expect(body.aggregated.columns).toHaveLength(100)
    expect(body.aggregated.columns[99].all_time).toMatchObject({ values: 1, min: '\u0001'.repeat(64) })
    expect(body.aggregated.unmapped_paths).toHaveLength(50)
  })
})
