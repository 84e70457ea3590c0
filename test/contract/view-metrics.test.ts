import { describe, expect, test } from 'vitest'
import type { ViewOutcome } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import { newControl, newRegion, type TestControl, useControl } from '../support/control.ts'
import { aCommit, TestNode } from '../support/test-node.ts'

const control = useControl()

async function furnished(on: TestControl = control()) {
  const account = await on.newAccount()
  const { body: view } = await account.post('/v1/views', {
    name: 'events',
    definition: { columns: [{ name: 'a', type: 'VARCHAR', path: '$.a' }] },
  })
  await account.post(`/v1/views/${view.id}/publish`)
  const region = newRegion()
  const [first, second] = [
    (await account.post('/v1/endpoints', { region })).body.id,
    (await account.post('/v1/endpoints', { region })).body.id,
  ]
  const node = await TestNode.register(on, region)
  let seq = 0
  const report = async (endpoint_id: string, outcome: Partial<ViewOutcome>) => {
    seq += 1
    const nothing = { processed: 0, accepted: 0, dropped: 0, dlq: 0, cast_nulls: 0, errors: {}, last_error: null }
    const views = [{ view_id: view.id, view_name: 'events', view_version: 1, ...nothing, ...outcome }]
    const commit = aCommit(node.id, endpoint_id, seq, { views })
    // Reported twice, as a node does that missed the answer.
    for (let times = 0; times < 2; times += 1)
      expect(await node.call('POST', 'commits', { commits: [commit] })).toMatchObject({ status: 200 })
  }
  return { account, view, first, second, report, path: `/v1/views/${view.id}/metrics` }
}

const counts = (processed: number, accepted: number, dropped: number, dlq: number) => ({ processed, accepted, dropped, dlq })
const lastError = { code: 'cast_failed', message: 'the value "x"', at: '2026-11-20T08:00:00.000Z' }

describe('GET /v1/views/{id}/metrics', () => {
  test('200 of a view that has seen nothing', async () => {
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

  test('200 counts by endpoint and in sum, each commit once', async () => {
    const { account, first, second, report, path } = await furnished()
    await report(first, { ...counts(100, 90, 6, 4), errors: { cast_failed: 3, invalid_json: 1 }, last_error: lastError })
    await report(first, counts(10, 10, 0, 0))
    await report(second, counts(90, 90, 0, 0))
    const { status, body } = await account.as('metrics').get(path)
    expect(status).toBe(200)
    const of = (id: string) => body.endpoints.find(({ endpoint_id }: { endpoint_id: string }) => endpoint_id === id)
    expect(of(first)).toMatchObject({
      endpoint_name: expect.stringMatching(/^[a-z0-9]+\.[a-z]{3}$/),
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

  test('200 shows a view that failed as a whole as an error', async () => {
    const { account, first, report, path } = await furnished()
    await report(first, { errors: { view_failed: 1 }, last_error: { ...lastError, code: 'view_failed' } })
    expect(await account.get(path)).toMatchObject({
      body: { endpoints: [{ error_rate_pct: 100, has_errors: true, last_error_code: 'view_failed' }] },
    })
  })

  test('200 forgets a day after 24 hours, and the sum of all time never', async () => {
    await using own = await newControl()
    const { account, first, report, path } = await furnished(own)
    await report(first, { ...counts(5, 4, 0, 1), errors: { cast_failed: 1 }, last_error: lastError })
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

  test('401, 403, 404', async () => {
    const { account, path } = await furnished()
    expect(await account.as('nobody').get(path)).toMatchObject({ status: 401 })
    expect(await account.as('ingest').get(path)).toMatchObject({ status: 403 })
    expect(await account.get(`/v1/views/${newId()}/metrics`)).toMatchObject({ status: 404 })
    expect(await (await control().newAccount()).get(path)).toMatchObject({ status: 404 })
  })
})
