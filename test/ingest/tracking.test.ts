/** The tracking API of Segment: its real library, and requests as other libraries send them. */
import { gzipSync } from 'node:zlib'
import { Analytics } from '@segment/analytics-node'
import { describe, expect, test } from 'vitest'
import { aKey, anEndpoint, aSnapshot, IngestNode, secretOf, useIngest } from '../support/ingest-node.ts'

const endpoint = anEndpoint()
const other = anEndpoint()
const key = aKey({ secret: secretOf('s'), endpoint_ids: [endpoint.id] })
const snapshot = aSnapshot({ endpoints: [endpoint, other], keys: [aKey(), key] })

const basic = { authorization: `Basic ${Buffer.from(`${secretOf('s')}:`).toString('base64')}` }
/** A header that is null is not sent. */
type Call = { readonly headers?: Readonly<Record<string, string | null>>; readonly query?: string }

async function post(
  node: IngestNode,
  path: string,
  body: string | Uint8Array<ArrayBuffer>,
  { headers = {}, query = '' }: Call = {},
) {
  const all = Object.entries({ ...basic, 'content-type': 'application/json', ...headers }).flatMap(([name, value]) =>
    value === null ? [] : [[name, value] as [string, string]],
  )
  const response = await fetch(`${node.url}${path}${query}`, { method: 'POST', headers: all, body })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, unknown> }
}

async function storedTexts(node: IngestNode): Promise<string[]> {
  const frames = await node.stored(endpoint.id)
  return frames.flatMap(({ payload }) =>
    payload
      .toString()
      .split('\n')
      .filter((line) => line.trim() !== ''),
  )
}

test('analytics-node delivers every event once, and its write key is in none', async () => {
  await using node = await IngestNode.start({ snapshot })
  const analytics = new Analytics({ writeKey: secretOf('s'), host: node.url, flushAt: 20, maxRetries: 0 })
  const failures: unknown[] = []
  analytics.on('error', (failure) => failures.push(failure))
  for (let n = 0; n < 50; n++) analytics.track({ userId: `u-${n}`, event: 'ordered', properties: { n, text: 'ü\n"' } })
  analytics.identify({ userId: 'u-1', traits: { plan: 'free' } })
  analytics.page({ anonymousId: 'a', name: 'home' })
  analytics.group({ userId: 'u-1', groupId: 'g' })
  analytics.alias({ userId: 'u-1', previousId: 'a' })
  await analytics.closeAndFlush()
  expect(failures).toEqual([])
  const texts = await storedTexts(node)
  const events = texts.map((text) => JSON.parse(text))
  expect(events.filter(({ type }) => type === 'track').map(({ properties }) => properties.n)).toEqual(
    Array.from({ length: 50 }, (_, n) => n),
  )
  expect(events.slice(50).map(({ type }) => type)).toEqual(['identify', 'page', 'group', 'alias'])
  expect(new Set(events.map(({ messageId }) => messageId)).size).toBe(54)
  expect(texts.join()).not.toContain(secretOf('s'))
})

/** Its tests only look at what it responds. */
const running = useIngest({ snapshot })

describe('POST /v1/batch', () => {
  const batch = '{"writeKey":"k","batch":[{"type":"track","n":1},\n{"type":"page","n":2}],"sentAt":"2026-11-23T04:50:00Z"}'

  test.each(['/v1/batch', '/v1/b', '/v1/import'])('200 on %s: an event is a record', async (path) => {
    await using node = await IngestNode.start({ snapshot })
    const answer = await post(node, path, batch)
    expect(answer).toMatchObject({ status: 200, body: { success: true, accepted_records: 2, segment_seq: expect.any(Number) } })
    expect(await storedTexts(node)).toEqual(['{"type":"track","n":1}', '{"type":"page","n":2}'])
  })

  test('200 for gzip, for text/plain, with an idempotency key, and for a named endpoint', async () => {
    await using node = await IngestNode.start({ snapshot })
    const zipped = { headers: { 'content-encoding': 'gzip' } }
    expect(await post(node, '/v1/batch', gzipSync(batch), zipped)).toMatchObject({ status: 200 })
    expect(await post(node, '/v1/batch', batch, { headers: { 'content-type': 'text/plain' } })).toMatchObject({ status: 200 })
    const once = { headers: { 'idempotency-key': 'one' }, query: `?endpoint=${endpoint.id}` }
    const [first, again] = [await post(node, '/v1/batch', batch, once), await post(node, '/v1/batch', batch, once)]
    expect(again).toMatchObject({ status: 200, body: first.body })
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(await storedTexts(node)).toHaveLength(6)
  })

  test('200 for what @rudderstack/rudder-sdk-node 3.0.13 sends with its defaults: gzip, named as a form', async () => {
    await using node = await IngestNode.start({ snapshot })
    const sent = `{"batch":[{"userId":"u","event":"e","properties":{"a":1},"type":"track","context":{"library":{"name":"analytics-node","version":"3.0.13"}},"channel":"server","_metadata":{"nodeVersion":"20.20.2"},"originalTimestamp":"2026-11-24T09:50:09.392Z","messageId":"9b0ae178-6c44-4545-8168-fb2ab3b708bb","sentAt":"2026-11-24T09:50:09.392Z"}],"timestamp":"2026-11-24T09:50:09.392Z","sentAt":"2026-11-24T09:50:09.392Z"}`
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      'content-encoding': 'gzip',
      'user-agent': 'analytics-node/3.0.13',
    }
    expect(await post(node, '/v1/batch', gzipSync(sent), { headers })).toMatchObject({
      status: 200,
      body: { accepted_records: 1 },
    })
    // A form is no batch, and no event.
    const form = { headers: { 'content-type': 'application/x-www-form-urlencoded' } }
    expect(await post(node, '/v1/batch', 'batch=1', form)).toMatchObject({ status: 422 })
    expect(await post(node, '/v1/track', 'event=e', form)).toMatchObject({ status: 415 })
    expect((await storedTexts(node)).map((text) => JSON.parse(text))).toEqual(JSON.parse(sent).batch)
  })

  test.each([null, '', 'application/octet-stream', 'Text/JSON; charset=utf-8', 'application/vnd.events+json'])(
    '200 for JSON of type %j, compressed or not',
    async (type) => {
      await using node = await IngestNode.start({ snapshot })
      const event = '{"type":"track","userId":"u","event":"e"}'
      for (const [path, body] of [
        ['/v1/batch', `{"batch":[${event}]}`],
        ['/v1/b', `{"batch":[${event}]}`],
        ['/v1/track', event],
      ] as const) {
        const plain = { headers: { 'content-type': type } }
        expect(await post(node, path, Buffer.from(body), plain)).toMatchObject({ status: 200, body: { accepted_records: 1 } })
        const compressed = { headers: { ...plain.headers, 'content-encoding': 'gzip' } }
        expect(await post(node, path, gzipSync(body), compressed)).toMatchObject({ status: 200, body: { accepted_records: 1 } })
      }
      expect(await storedTexts(node)).toHaveLength(6)
    },
  )

  test.each([
    ['[{"type":"track"}]', 'not a JSON object'],
    ['{"type":"track"}', 'has no batch'],
    ['{"batch":[]}', 'no records'],
  ])('422 for %s', async (body, why) => {
    await using node = await IngestNode.start({ snapshot })
    const refused = { error: 'validation_error', detail: expect.stringContaining(why) }
    expect(await post(node, '/v1/batch', body)).toMatchObject({ status: 422, body: refused })
    expect(await node.stored(endpoint.id)).toEqual([])
  })

  test('401, 403, 405, 415', async () => {
    const node = running()
    expect(await post(node, '/v1/batch', batch, { headers: { authorization: 'Basic eDo=' } })).toMatchObject({ status: 401 })
    expect(await post(node, '/v1/batch', batch, { query: `?endpoint=${other.id}` })).toMatchObject({ status: 403 })
    const lines = { headers: { 'content-type': 'application/x-ndjson' } }
    expect(await post(node, '/v1/batch', batch, lines)).toMatchObject({ status: 415 })
    const got = await fetch(`${node.url}/v1/batch`)
    expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST'])
  })

  test('413 names the event that is too large', async () => {
    const node = running()
    const large = JSON.stringify({ batch: [1, 'x'.repeat(1024 * 1024)] })
    expect(await post(node, '/v1/batch', large)).toMatchObject({
      status: 413,
      body: { detail: expect.stringContaining('element 2') },
    })
  })
})

test.each(['track', 'identify', 'page', 'screen', 'group', 'alias'])('POST /v1/%s: 200, the event is a record', async (call) => {
  await using node = await IngestNode.start({ snapshot })
  const event = `{\n  "userId": "u-1", "type": "${call}"\n}`
  expect(await post(node, `/v1/${call}`, event)).toMatchObject({ status: 200, body: { success: true, accepted_records: 1 } })
  const [frame] = await node.stored(endpoint.id)
  expect(frame?.payload.toString()).toBe(event)
})
