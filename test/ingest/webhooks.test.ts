/** Webhooks: a key that a URL can have, and headers that stay with the record. */
import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { aKey, anEndpoint, aSnapshot, IngestNode, secretOf, useIngest } from '../support/ingest-node.ts'

const endpoint = anEndpoint({ kept_headers: ['x-hub-signature-256', 'x-github-event', 'stripe-signature', 'user-agent'] })
const other = anEndpoint()
const key = aKey({ secret: secretOf('w'), endpoint_ids: [endpoint.id] })
const snapshot = aSnapshot({ endpoints: [endpoint, other], keys: [aKey(), key] })

const basic = (user: string, password = '') => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
const json = { 'content-type': 'application/json' }

async function post(node: IngestNode, headers: Record<string, string>, body = '{"a":1}', query = '') {
  const response = await fetch(`${node.url}/v1/ingest${query}`, { method: 'POST', headers: { ...json, ...headers }, body })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

/** Its tests only look at what it responds. */
const running = useIngest({ snapshot })

describe('Basic authentication', () => {
  test.each([
    ['the user name', basic(secretOf('w'))],
    ['the password', basic('github', secretOf('w'))],
    ['the user name, with any password', basic(secretOf('w'), 'a:b')],
    ['the user name, with the scheme in lower case', basic(secretOf('w')).replace('Basic', 'basic')],
  ])('202 with a key as %s', async (_, authorization) => {
    await using node = await IngestNode.start({ snapshot })
    expect(await post(node, { authorization })).toMatchObject({ status: 202, body: { accepted_records: 1 } })
    expect(await node.stored(endpoint.id)).toHaveLength(1)
  })

  test.each([
    ['another key', basic(secretOf('x')), 'unknown'],
    ['no key', basic('github', 'hook'), 'neither the user name nor the password'],
    ['nothing', 'Basic', 'must read'],
    ['bytes that are not Base64', 'Basic {}', 'must read'],
  ])('401 with %s', async (_, authorization, why) => {
    const node = running()
    const answer = await post(node, { authorization })
    expect(answer).toMatchObject({ status: 401, body: { detail: expect.stringContaining(why) } })
  })

  test('X-API-Key wins, and a key sends only to its endpoints', async () => {
    const node = running()
    const both = { authorization: basic('github', 'hook'), 'x-api-key': secretOf('w') }
    expect(await post(node, both)).toMatchObject({ status: 202 })
    const elsewhere = await post(node, { authorization: basic(secretOf('w')) }, '{}', `?endpoint=${other.id}`)
    expect(elsewhere).toMatchObject({ status: 403 })
  })
})

describe('headers that an endpoint keeps', () => {
  test('are in the envelope, and no others are', async () => {
    await using node = await IngestNode.start({ snapshot })
    const headers = { authorization: basic(secretOf('w')), 'user-agent': 'GitHub-Hookshot/1', 'x-other': '1' }
    await post(node, { ...headers, 'X-Hub-Signature-256': 'sha256=ab', 'X-GitHub-Event': 'push' })
    await post(node, { ...headers, 'idempotency-key': 'one' })
    const [push, once] = await node.frames(endpoint.id)
    const agent = { 'user-agent': 'GitHub-Hookshot/1' }
    expect(push?.headers).toEqual({ ...agent, 'x-hub-signature-256': 'sha256=ab', 'x-github-event': 'push' })
    expect(once).toMatchObject({ headers: agent, idempotency_key: 'one' })
  })

  test('are none where the endpoint names none', async () => {
    await using node = await IngestNode.start({ snapshot })
    await post(node, { 'x-api-key': secretOf('a'), 'x-github-event': 'push' }, '{"a":1}', `?endpoint=${other.id}`)
    expect((await node.frames(other.id)).map(({ headers }) => headers)).toEqual([undefined])
  })

  test('follow a change of the endpoint', async () => {
    await using node = await IngestNode.start({ snapshot })
    const headers = { authorization: basic(secretOf('w')), 'x-github-event': 'push', 'x-more': '2', 'user-agent': 'a' }
    await post(node, headers)
    await node.publish({ ...snapshot, epoch: 2, endpoints: [{ ...endpoint, kept_headers: ['x-more'] }, other] })
    await post(node, headers)
    const kept = (await node.frames(endpoint.id)).map((frame) => frame.headers)
    expect(kept).toEqual([{ 'x-github-event': 'push', 'user-agent': 'a' }, { 'x-more': '2' }])
  })

  test('431 if they are too long together, and nothing is stored', async () => {
    await using node = await IngestNode.start({ snapshot })
    const headers = { authorization: basic(secretOf('w')), 'stripe-signature': 'v'.repeat(4096), 'user-agent': 'a' }
    const refused = { error: 'headers_too_large', detail: expect.stringContaining('kept_headers of the endpoint') }
    expect(await post(node, headers)).toMatchObject({ status: 431, body: refused })
    expect(await node.stored(endpoint.id)).toEqual([])
  })

  test('verify the bytes of the record, whatever white space the document has', async () => {
    await using node = await IngestNode.start({ snapshot })
    const document = { id: 'evt_1', type: 'charge.succeeded', data: [1, 'ü', { nested: ['a\nb'] }] }
    const bodies = [
      JSON.stringify(document),
      JSON.stringify(document, null, 2),
      `\r\n${JSON.stringify(document, null, '\t')}\r\n \n`,
    ]
    for (const body of bodies) {
      const signature = createHmac('sha256', 'whsec').update(body).digest('hex')
      await post(node, { authorization: basic(secretOf('w')), 'stripe-signature': signature }, body)
    }
    const frames = await node.frames(endpoint.id)
    expect(frames.map(({ recordCount, layout }) => [recordCount, layout])).toEqual(bodies.map(() => [1, 'single']))
    for (const { payload, headers } of frames) {
      expect(headers?.['stripe-signature']).toBe(createHmac('sha256', 'whsec').update(payload).digest('hex'))
    }
  })
})
