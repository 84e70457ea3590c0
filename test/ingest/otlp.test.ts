/** Export requests of OpenTelemetry: POST /v1/logs (OTLP/HTTP). */
import { readFileSync } from 'node:fs'
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { BinaryReader } from '@bufbuild/protobuf/wire'
import { describe, expect, test } from 'vitest'
import { effectiveQuotas } from '#model/quota.ts'
import { accountId, aKey, anEndpoint, aSnapshot, IngestNode, secretOf, useIngest } from '../support/ingest-node.ts'
import { until } from '../support/until.ts'

type Sent = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer }

const fixture = (name: string) => readFileSync(new URL(`../fixtures/otlp/${name}`, import.meta.url))
const endpoint = anEndpoint()
const snapshot = aSnapshot({ endpoints: [endpoint] })

type Call = { readonly headers?: Record<string, string | null>; readonly query?: string }

async function post(node: IngestNode, body: string | Buffer, { headers = {}, query = '' }: Call = {}): Promise<Sent> {
  const all = { authorization: `Bearer ${secretOf('a')}`, 'content-type': 'application/json', ...headers }
  const present = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== null)
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  request(`${node.url}/v1/logs${query}`, { method: 'POST', headers: Object.fromEntries(present), agent: false })
    .on('response', resolve)
    .on('error', reject)
    .end(body)
  const response = await promise
  return { status: response.statusCode ?? 0, headers: response.headers, body: await buffer(response) }
}

const protobuf = { headers: { 'content-type': 'application/x-protobuf' } }

function logs(records: readonly unknown[], resource: unknown = {}): string {
  return JSON.stringify({ resourceLogs: [{ resource, scopeLogs: [{ logRecords: records }] }] })
}

const aText = (text: string) => ({ body: { stringValue: text } })

async function storedTexts(node: IngestNode): Promise<string[]> {
  const frames = await node.stored(endpoint.id)
  return frames.flatMap(({ payload }) => payload.toString().trimEnd().split('\n'))
}

/** Reads `google.rpc.Status`. */
function statusOf(bytes: Buffer): { code: number; message: string } {
  const reader = new BinaryReader(bytes)
  const status = { code: 0, message: '' }
  while (reader.pos < reader.len) {
    const [field] = reader.tag()
    if (field === 1) status.code = reader.int32()
    else status.message = reader.string()
  }
  return status
}

/** Its tests only look at what it responds. */
const running = useIngest({ snapshot })

describe('200', () => {
  test('to JSON is {}, and each log record is durable as a record', async () => {
    await using node = await IngestNode.start({ snapshot })
    const sent = await post(node, fixture('logs.json'))
    expect([sent.status, sent.headers['content-type'], sent.body.toString()]).toEqual([200, 'application/json', '{}'])
    expect(await node.metric('inlet_ingest_records_total')).toBe(2)
    expect(await node.stored(endpoint.id)).toMatchObject([{ layout: 'lines', recordCount: 2 }])
  })

  test('to Protobuf is an empty message, and the records are those of the same request in JSON', async () => {
    await using node = await IngestNode.start({ snapshot })
    const sent = await post(node, fixture('logs.pb'), protobuf)
    expect([sent.status, sent.headers['content-type'], sent.body.length]).toEqual([200, 'application/x-protobuf', 0])
    await post(node, fixture('logs.json'))
    const [first, second, ...same] = await storedTexts(node)
    expect(same).toEqual([first, second])
    expect(JSON.parse(first ?? '')).toMatchObject({
      body: 'hello ü',
      resource: { 'service.name': 'shop' },
      scope: { name: 'lib' },
    })
  })

  test.each([
    ['gzip', gzipSync],
    ['zstd', zstdCompressSync],
  ])('accepts %s', async (encoding, compress) => {
    await using node = await IngestNode.start({ snapshot })
    const headers = { ...protobuf.headers, 'content-encoding': encoding }
    expect((await post(node, compress(fixture('logs.pb')), { headers })).status).toBe(200)
    expect((await storedTexts(node)).length).toBe(2)
  })

  test('to a request without records, and nothing is stored', async () => {
    await using node = await IngestNode.start({ snapshot })
    expect((await post(node, '{}')).body.toString()).toBe('{}')
    expect((await post(node, '', protobuf)).status).toBe(200)
    expect(await node.stored(endpoint.id)).toEqual([])
  })

  test('leaves out records that are too large, and says so; the others are stored', async () => {
    await using node = await IngestNode.start({ snapshot })
    const sent = await post(node, logs([aText('a'), aText('x'.repeat(1024 * 1024)), aText('b')]))
    expect(sent.status).toBe(200)
    expect(JSON.parse(sent.body.toString())).toEqual({
      partialSuccess: { rejectedLogRecords: '1', errorMessage: expect.stringContaining('1048576 bytes') },
    })
    const alone = await post(node, logs([aText('x'.repeat(1024 * 1024))]))
    expect(JSON.parse(alone.body.toString())).toMatchObject({ partialSuccess: { rejectedLogRecords: '1' } })
    expect(await storedTexts(node)).toEqual(['{"body":"a"}', '{"body":"b"}'])
  })

  test('stores a request with an Idempotency-Key once', async () => {
    await using node = await IngestNode.start({ snapshot })
    const headers = { 'idempotency-key': 'k1' }
    await post(node, fixture('logs.json'), { headers })
    const again = await post(node, fixture('logs.json'), { headers })
    expect([again.status, again.body.toString(), again.headers['idempotent-replayed']]).toEqual([200, '{}', 'true'])
    expect((await storedTexts(node)).length).toBe(2)
  })

  test('stores many requests at once completely', async () => {
    await using node = await IngestNode.start({ snapshot })
    const body = logs(Array.from({ length: 3_000 }, (_, at) => aText(`${at} ${'x'.repeat(100)}`)))
    const sent = await Promise.all(
      Array.from({ length: 8 }, () => post(node, gzipSync(body), { headers: { 'content-encoding': 'gzip' } })),
    )
    expect(sent.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200))
    const frames = await node.stored(endpoint.id)
    expect(frames.map(({ recordCount }) => recordCount)).toEqual(Array.from({ length: 8 }, () => 3_000))
    expect(await storedLines(frames)).toBe(24_000)
  })
})

function storedLines(frames: readonly { readonly payload: Buffer }[]): number {
  return frames.reduce((sum, { payload }) => sum + payload.toString().trimEnd().split('\n').length, 0)
}

describe('400', () => {
  test('to JSON that is no export request: names the place, as a problem and as google.rpc.Status', async () => {
    await using node = await IngestNode.start({ snapshot })
    const sent = await post(node, logs([{ timeUnixNano: 'now' }]))
    expect([sent.status, sent.headers['content-type']]).toEqual([400, 'application/json'])
    const message = expect.stringContaining('resourceLogs[0].scopeLogs[0].logRecords[0].timeUnixNano')
    expect(JSON.parse(sent.body.toString())).toMatchObject({ error: 'bad_request', detail: message, code: 3, message })
    expect((await post(node, '{"event":"signup"}')).status).toBe(400)
    expect(await node.stored(endpoint.id)).toEqual([])
  })

  test('to damaged Protobuf, as google.rpc.Status in Protobuf', async () => {
    const node = running()
    const sent = await post(node, fixture('logs.pb').subarray(0, 200), protobuf)
    expect([sent.status, sent.headers['content-type']]).toEqual([400, 'application/x-protobuf'])
    expect(statusOf(sent.body)).toEqual({ code: 3, message: expect.stringContaining('not valid Protobuf') })
  })
})

describe('who may send, and where', () => {
  test('401 without a key, with WWW-Authenticate', async () => {
    const node = running()
    const sent = await post(node, '{}', { headers: { authorization: null } })
    expect([sent.status, sent.headers['www-authenticate']]).toEqual([401, 'Bearer'])
    expect(JSON.parse(sent.body.toString())).toMatchObject({ error: 'unauthorized', code: 16 })
  })

  test('422 if the endpoint is not named, 200 with the query or a key for one endpoint', async () => {
    const other = anEndpoint()
    const bound = aKey({ secret: secretOf('b'), endpoint_ids: [endpoint.id] })
    await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint, other], keys: [aKey(), bound] }) })
    expect((await post(node, fixture('logs.json'))).status).toBe(422)
    expect((await post(node, fixture('logs.json'), { query: `?endpoint=${endpoint.id}` })).status).toBe(200)
    const headers = { authorization: null, 'x-api-key': secretOf('b') }
    expect((await post(node, fixture('logs.json'), { headers })).status).toBe(200)
    expect((await storedTexts(node)).length).toBe(4)
  })

  test('404 for the endpoint of another account', async () => {
    const foreign = anEndpoint({ account_id: accountId('b') })
    await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint, foreign] }) })
    expect((await post(node, '{}', { query: `?endpoint=${foreign.id}` })).status).toBe(404)
  })

  test('405 to GET', async () => {
    const node = running()
    const { status, headers } = await fetch(`${node.url}/v1/logs`)
    expect([status, headers.get('allow')]).toEqual([405, 'POST'])
  })

  test('a page of an allowed origin', async () => {
    await using node = await IngestNode.start({ snapshot, environment: { INLET_CORS_ORIGINS: 'https://app.example.com' } })
    const preflight = await fetch(`${node.url}/v1/logs`, {
      method: 'OPTIONS',
      headers: { origin: 'https://app.example.com', 'access-control-request-method': 'POST' },
    })
    expect(preflight.status).toBe(204)
    const { headers } = await post(node, fixture('logs.json'), { headers: { origin: 'https://app.example.com' } })
    expect(headers['access-control-allow-origin']).toBe('https://app.example.com')
  })
})

describe('limits', () => {
  test('413 for a body over the limit, as sent and decompressed', async () => {
    await using node = await IngestNode.start({ snapshot, environment: { INLET_MAX_REQUEST_BYTES: '64KiB' } })
    const body = logs([aText('x'.repeat(70_000))])
    expect((await post(node, body)).status).toBe(413)
    expect((await post(node, gzipSync(body), { headers: { 'content-encoding': 'gzip' } })).status).toBe(413)
  })

  test('413 for records that repeat a large resource too often, and nothing is stored', async () => {
    await using node = await IngestNode.start({ snapshot, environment: { INLET_MAX_REQUEST_BYTES: '64KiB' } })
    const resource = { attributes: [{ key: 'big', value: { stringValue: 'x'.repeat(10_000) } }] }
    const records = (count: number) =>
      logs(
        Array.from({ length: count }, () => aText('a')),
        resource,
      )
    const sent = await post(node, records(30))
    expect(sent.status).toBe(413)
    expect(JSON.parse(sent.body.toString()).detail).toContain('send smaller batches')
    expect((await post(node, records(20))).status).toBe(200)
    expect((await storedTexts(node)).length).toBe(20)
  })

  test('413 for too many records', async () => {
    await using node = await IngestNode.start({ snapshot })
    // A record without fields has two bytes.
    const empty = Buffer.alloc(2 * 100_001, Buffer.from([0x12, 0]))
    const scope = Buffer.concat([Buffer.from([0x12]), varint(empty.length), empty])
    const sent = await post(node, Buffer.concat([Buffer.from([0x0a]), varint(scope.length), scope]), protobuf)
    expect(sent.status).toBe(413)
    expect(statusOf(sent.body).message).toContain('100000 log records')
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBe(0)
  })

  test('415 for other types, and says which it takes', async () => {
    const node = running()
    const sent = await post(node, '{}', { headers: { 'content-type': 'application/x-ndjson' } })
    expect([sent.status, sent.headers['accept-post']]).toEqual([415, 'application/x-protobuf, application/json'])
    expect(JSON.parse(sent.body.toString()).detail).toContain('/v1/ingest')
  })

  test('releases its memory, also for clients that leave', async () => {
    await using node = await IngestNode.start({ snapshot })
    const body = logs(Array.from({ length: 20_000 }, () => aText('x'.repeat(100))))
    await Promise.all(
      Array.from({ length: 6 }, async () => {
        const sent = request(`${node.url}/v1/logs`, {
          method: 'POST',
          headers: { 'x-api-key': secretOf('a'), 'content-type': 'application/json' },
          agent: false,
        }).on('error', () => undefined)
        await new Promise((resolve) => sent.end(body, () => resolve(undefined)))
        sent.destroy()
      }),
    )
    await until('no bytes in flight', async () => (await node.metric('inlet_ingest_in_flight_bytes')) === 0)
  })
})

describe('what exporters retry', () => {
  test('429 with Retry-After over the quota', async () => {
    const limited = anEndpoint({ account_quotas: { ...effectiveQuotas({}), records_per_second: 1 } })
    await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [limited] }) })
    await post(node, logs(Array.from({ length: 50 }, () => aText('a'))))
    const sent = await post(node, logs([aText('a')]), protobuf)
    expect(sent.status).toBe(429)
    expect(Number(sent.headers['retry-after'])).toBeGreaterThan(0)
    expect(statusOf(sent.body).code).toBe(8)
  })

  test('503 with Retry-After from a paused endpoint, and while there is no room', async () => {
    const paused = anEndpoint({ desired_state: 'paused' })
    await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [paused] }) })
    const sent = await post(node, fixture('logs.json'))
    expect([sent.status, sent.headers['retry-after']]).toEqual([503, '30'])
    expect(JSON.parse(sent.body.toString())).toMatchObject({ error: 'unavailable', code: 14 })
    await using full = await IngestNode.start({ snapshot, environment: { INLET_MAX_IN_FLIGHT_BYTES: '1MiB' } })
    const large = await post(full, logs(Array.from({ length: 20 }, () => aText('x'.repeat(50_000)))))
    expect([large.status, Number(large.headers['retry-after']) > 0]).toEqual([503, true])
    expect(await full.metric('inlet_ingest_in_flight_bytes')).toBe(0)
  })

  test('503 instead of 408: exporters would drop the data of a body that was too slow', async () => {
    await using node = await IngestNode.start({ snapshot, environment: { INLET_REQUEST_TIMEOUT_SECONDS: '1' } })
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const headers = { 'x-api-key': secretOf('a'), 'content-type': 'application/json', 'content-length': '100' }
    const sent = request(`${node.url}/v1/logs`, { method: 'POST', headers, agent: false })
      .on('response', resolve)
      .on('error', reject)
    sent.write('{"resourceLogs":')
    const response = await promise
    expect([response.statusCode, response.headers['retry-after']]).toEqual([503, '1'])
    response.resume()
    sent.destroy()
  })
})

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 127; rest >>>= 7) bytes.push((rest & 127) | 128)
  return Buffer.from([...bytes, rest])
}
