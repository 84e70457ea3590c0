import { describe, expect, test } from 'vitest'
import { newRegion, useControl } from '../support/control.ts'
import { TestNode } from '../support/test-node.ts'

const control = useControl()

async function anEndpoint() {
  const account = await control().newAccount()
  const region = newRegion()
  const { body: endpoint } = await account.post('/v1/endpoints', { region })
  return { account, region, path: `/v1/endpoints/${endpoint.id}/test-events` }
}

// Responses of ingest are tested where a node runs: test/e2e/follow.test.ts.
describe('POST /v1/endpoints/{id}/test-events', () => {
  test('503 names the address that cannot be reached, and says what to check', async () => {
    const { account, region, path } = await anEndpoint()
    // Nothing listens at port 1.
    await TestNode.register(control(), region, { ingest_address: '127.0.0.1:1' })
    const answer = await account.post(path, {})
    expect(answer).toMatchObject({ status: 503, body: { error: 'unavailable', retry: true } })
    expect(answer.body.detail).toMatch(/^control cannot reach ingest at 127\.0\.0\.1:1 \(.*ECONNREFUSED.*\): check/)
    expect(answer.headers.get('retry-after')).toBe('5')
  })

  test('409 if something else answers there', async () => {
    const { account, region, path } = await anEndpoint()
    await TestNode.register(control(), region, { ingest_address: new URL(control().url).host })
    const answer = await account.post(path, {})
    expect(answer).toMatchObject({
      status: 409,
      body: { error: 'conflict', detail: expect.stringContaining('refused the test event') },
    })
  })

  test('is in the audit trail', async () => {
    const { account, region, path } = await anEndpoint()
    await TestNode.register(control(), region, { ingest_address: new URL(control().url).host })
    await account.post(path, {})
    const { body } = await account.get('/v1/audit-events?limit=1')
    expect(body.items).toMatchObject([{ operation: 'sendTestEvent', actor: `key:${account.key_id}` }])
  })

  test('422 for a record that is too large, and an unknown field', async () => {
    const { account, path } = await anEndpoint()
    for (const [body, where] of [
      [{ record: 'ü'.repeat(40_000) }, 'record'],
      [{ records: 2 }, 'records'],
    ] as const)
      expect(await account.post(path, body)).toMatchObject({ status: 422, body: { errors: [{ path: where }] } })
  })
})
