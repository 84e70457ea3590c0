/** Web pages of other origins: what browsers are told, and who may connect. */
import { describe, expect, test } from 'vitest'
import { accountId, aKey, anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'

const page = 'https://app.example.com'
const snapshot = aSnapshot({ endpoints: [anEndpoint()] })
const allowing = (origins: string) => ({ snapshot, environment: { INLET_CORS_ORIGINS: origins } })

function preflight(node: IngestNode, origin: string): Promise<Response> {
  const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-api-key,content-type' }
  return fetch(`${node.url}/v1/ingest`, { method: 'OPTIONS', headers: { origin, ...asked } })
}

function post(node: IngestNode, headers: Record<string, string>, body = '1\n'): Promise<Response> {
  const all = { origin: page, 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson', ...headers }
  return fetch(`${node.url}/v1/ingest`, { method: 'POST', headers: all, body })
}

describe('INLET_CORS_ORIGINS', () => {
  test('not set: no response has a header for pages, and a preflight is refused', async () => {
    await using node = await IngestNode.start({ snapshot })
    const asked = await preflight(node, page)
    expect(asked.status).toBe(405)
    const sent = await post(node, {})
    expect(sent.status).toBe(202)
    for (const { headers } of [asked, sent]) {
      expect(headers.get('access-control-allow-origin')).toBeNull()
      expect(headers.get('vary')).toBeNull()
    }
  })

  test('a page of the list may send, with every header that senders need, and never with cookies', async () => {
    await using node = await IngestNode.start(allowing(`http://localhost:5173, ${page}`))
    const { status, headers } = await preflight(node, page)
    expect(status).toBe(204)
    expect(headers.get('access-control-allow-origin')).toBe(page)
    expect(headers.get('vary')).toBe('Origin')
    expect(headers.get('access-control-allow-methods')).toBe('POST')
    expect(headers.get('access-control-max-age')).toBe('7200')
    expect(headers.get('access-control-allow-credentials')).toBeNull()
    const allowed = headers.get('access-control-allow-headers')?.split(', ')
    const forSenders = ['Idempotency-Key', 'Inlet-Ack', 'Prefer']
    expect(allowed).toEqual(['X-API-Key', 'Authorization', 'Content-Type', 'Content-Encoding', ...forSenders])
    const sent = await post(node, {})
    expect(sent.status).toBe(202)
    expect(sent.headers.get('access-control-allow-origin')).toBe(page)
    expect(sent.headers.get('access-control-expose-headers')).toBe('Retry-After, Idempotent-Replayed, Inlet-Ack')
  })

  test('a page outside the list is refused at the preflight, and cannot read a response', async () => {
    await using node = await IngestNode.start(allowing(page))
    const asked = await preflight(node, 'https://evil.example')
    expect(asked.status).toBe(403)
    expect(await asked.json()).toMatchObject({ detail: expect.stringContaining('INLET_CORS_ORIGINS') })
    const sent = await post(node, { origin: 'https://evil.example' })
    for (const { headers } of [asked, sent]) {
      expect(headers.get('access-control-allow-origin')).toBeNull()
      expect(headers.get('vary')).toBe('Origin')
    }
  })

  test('* allows every page, with the same response for all', async () => {
    await using node = await IngestNode.start(allowing('*'))
    const { headers } = await preflight(node, 'https://any.example')
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('vary')).toBeNull()
  })

  test('a page can read every problem, also those before its key is known', async () => {
    const foreign = aKey({ secret: secretOf('b'), account_id: accountId('b') })
    const known = aSnapshot({ endpoints: [anEndpoint()], keys: [aKey(), foreign] })
    const environment = { INLET_CORS_ORIGINS: page, INLET_MAX_REQUEST_BYTES: '64KiB' }
    await using node = await IngestNode.start({ snapshot: known, environment })
    const responses = {
      401: post(node, { 'x-api-key': secretOf('c') }),
      413: post(node, {}, '1'.repeat(70_000)),
      415: post(node, { 'content-type': 'text/csv' }),
      422: post(node, { 'x-api-key': secretOf('b') }),
    }
    for (const [status, response] of Object.entries(responses)) {
      const { headers, status: got } = await response
      expect(got).toBe(Number(status))
      expect(headers.get('access-control-allow-origin'), status).toBe(page)
    }
    await using empty = await IngestNode.start({ snapshot: undefined, environment })
    const early = await post(empty, {})
    expect(early.status).toBe(503)
    expect(early.headers.get('access-control-allow-origin')).toBe(page)
    expect(early.headers.get('access-control-expose-headers')).toContain('Retry-After')
  })

  test('pages cannot read what is for operators', async () => {
    await using node = await IngestNode.start(allowing(page))
    const { headers } = await fetch(`${node.url}/metrics`, { headers: { origin: page } })
    expect(headers.get('access-control-allow-origin')).toBeNull()
  })
})
