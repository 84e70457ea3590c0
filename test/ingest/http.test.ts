import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json, text as streamText } from 'node:stream/consumers'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { KiB, MiB } from '#lib/bytes.ts'
import { isoTimestamp } from '#lib/clock.ts'
import { type Files, systemFiles } from '#lib/files.ts'
import { newId } from '#model/id.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { anAccessToken } from '../support/access-token.ts'
import { accountId, aKey, anEndpoint, aSnapshot, IngestNode, secretOf, useIngest } from '../support/ingest-node.ts'
import { RawClient } from '../support/raw-http.ts'

type Sent = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Record<string, unknown> }

/** Sends `body` like the documented client. `headers` replace its headers; null removes one. */
async function post(
  node: IngestNode,
  body: string | Uint8Array,
  { headers = {}, query = '' }: { headers?: Record<string, string | null>; query?: string } = {},
): Promise<Sent> {
  const all = { 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson', ...headers }
  const present = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== null)
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  request(`${node.url}/v1/ingest${query}`, { method: 'POST', headers: Object.fromEntries(present), agent: false })
    .on('response', resolve)
    .on('error', reject)
    .end(body)
  const response = await promise
  return { status: response.statusCode ?? 0, headers: response.headers, body: (await json(response)) as Record<string, unknown> }
}

const bytes = (text: string) => new Uint8Array(Buffer.from(text))
const endpoint = anEndpoint()
const snapshot = aSnapshot({ endpoints: [endpoint] })

/** Its tests only look at what it responds. */
const running = useIngest({ snapshot })

describe('202', () => {
  test('is a receipt; the acknowledged records are in the WAL byte for byte', async () => {
    await using node = await IngestNode.start({ snapshot })
    const sent = await post(node, '{"a":1}\r\n\n{"b":2}\n \t\n{"c"')
    expect(sent).toMatchObject({ status: 202, body: { accepted_records: 3, accepted_bytes: 25, segment_seq: 0 } })
    expect(sent.headers['content-type']).toBe('application/json')
    expect(sent.body['node_id']).toBe((await readFile(join(node.directory, 'node', 'id'), 'utf8')).trim())
    expect(await node.stored(endpoint.id)).toEqual([
      { seq: 0, layout: 'lines', recordCount: 3, payload: Buffer.from('{"a":1}\r\n\n{"b":2}\n \t\n{"c"') },
    ])
  })

  test.each([
    'application/x-ndjson',
    'application/ndjson',
    'application/jsonl',
    'Application/X-NDJSON; charset=UTF-8',
    'application/x-ndjson;charset="utf-8"',
  ])('accepts lines as %s', async (type) => {
    const node = running()
    expect(await post(node, '1\n2', { headers: { 'content-type': type } })).toMatchObject({ body: { accepted_records: 2 } })
  })

  test('accepts application/json as one record, line breaks included', async () => {
    await using node = await IngestNode.start({ snapshot })
    const sent = await post(node, '{\n  "a": 1\n}\n', { headers: { 'content-type': 'application/json; charset=utf-8' } })
    expect(sent).toMatchObject({ status: 202, body: { accepted_records: 1, accepted_bytes: 13 } })
    expect(await node.stored(endpoint.id)).toMatchObject([{ layout: 'single', recordCount: 1 }])
  })

  test('accepts an array and NDJSON as application/json, a record for each element or line', async () => {
    await using node = await IngestNode.start({ snapshot })
    const json = { headers: { 'content-type': 'application/json' } }
    expect(await post(node, '[{"a":1}, {"a":2}]', json)).toMatchObject({ body: { accepted_records: 2, accepted_bytes: 18 } })
    expect(await post(node, '{"a":1}\n{"a":2}\n', json)).toMatchObject({ body: { accepted_records: 2, accepted_bytes: 16 } })
    const pretty = new Uint8Array(gzipSync('[\n  {\n    "a": 1\n  },\n  {"a":2}\n]\n'))
    const headers = { ...json.headers, 'content-encoding': 'gzip' }
    expect(await post(node, pretty, { headers })).toMatchObject({ body: { accepted_records: 2, accepted_bytes: 34 } })
    expect(await node.stored(endpoint.id)).toMatchObject([
      { layout: 'lines', recordCount: 2, payload: Buffer.from('\n{"a":1}\n\n{"a":2}\n') },
      { layout: 'lines', recordCount: 2, payload: Buffer.from('{"a":1}\n{"a":2}\n') },
      { layout: 'texts', recordCount: 2, payload: Buffer.from('____{\n    "a": 1\n  }____{"a":2}___'.replaceAll('_', '\u001e')) },
    ])
  })

  test.each([
    ['application/cloudevents+json', '{"specversion":"1.0",\n"id":"1"}', 1],
    ['application/cloudevents-batch+json; charset=utf-8', '[{"id":"1"}, {"id":"2"}]', 2],
    ['Application/Reports+JSON', '[{"type":"csp-violation"}]', 1],
    ['application/csp-report', '{"csp-report":{}}', 1],
    ['text/json; charset=UTF-8', '{"a":1}', 1],
    ['application/octet-stream', '{"a":1}\n{"a":2}\n', 2],
    ['application/octet-stream', '{\n"a":1}', 1],
    [null, '{"a":1}\n{"a":2}\n', 2],
    ['', '[{"a":1},{"a":2}]', 2],
  ])('accepts %j as JSON: %j', async (type, body, records) => {
    const node = running()
    const sent = await post(node, body, { headers: { 'content-type': type } })
    expect(sent).toMatchObject({ status: 202, body: { accepted_records: records } })
  })

  test('refuses JSON whose records are unclear, and says what to send', async () => {
    await using node = await IngestNode.start({ snapshot })
    for (const body of ['[{"a":1}', '[]', '{"a":1} {"a":2}']) {
      const sent = await post(node, body, { headers: { 'content-type': 'application/json' } })
      expect(sent).toMatchObject({ status: 422, body: { error: 'validation_error', detail: expect.stringContaining('send') } })
    }
    expect(await node.stored(endpoint.id)).toEqual([])
  })

  test.each([
    ['a BOM', bytes('\uFEFF{"a":1}\n'), 1],
    ['NUL bytes', bytes('{"a":"\0"}\n\0'), 2],
    ['invalid UTF-8', new Uint8Array([0x7b, 0xff, 0xfe, 10, 0xc3, 0x28]), 2],
    ['malformed JSON', bytes('{"a":\nnull\n]]'), 3],
  ])('keeps %s as it came', async (_, body, records) => {
    await using node = await IngestNode.start({ snapshot })
    expect(await post(node, body)).toMatchObject({ status: 202, body: { accepted_records: records } })
    expect((await node.stored(endpoint.id))[0]?.payload).toEqual(Buffer.from(body))
  })

  test.each([
    ['identity', (text: string) => Buffer.from(text)],
    ['gzip', gzipSync],
    ['X-GZIP', gzipSync],
    ['gzip', (text: string) => Buffer.concat([gzipSync(text.slice(0, 40)), gzipSync(text.slice(40))])],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
    ['zstd', (text: string) => Buffer.concat([zstdCompressSync(text.slice(0, 40)), zstdCompressSync(text.slice(40))])],
  ])('decodes Content-Encoding: %s (%#)', async (encoding, compress) => {
    await using node = await IngestNode.start({ snapshot })
    const text = '{"some":"record","n":123456}\n'.repeat(1_000)
    const sent = await post(node, new Uint8Array(compress(text)), { headers: { 'content-encoding': encoding } })
    expect(sent).toMatchObject({ status: 202, body: { accepted_records: 1_000, accepted_bytes: text.length } })
    expect((await node.stored(endpoint.id))[0]?.payload.toString()).toBe(text)
  })

  test('accepts a record of exactly 1 MiB and a body of exactly the bound', async () => {
    await using node = await IngestNode.start({ snapshot, environment: { INLET_MAX_REQUEST_BYTES: '2MiB' } })
    expect(await post(node, `${'1'.repeat(MiB)}\n${'2'.repeat(MiB - 1)}`)).toMatchObject({
      status: 202,
      body: { accepted_records: 2, accepted_bytes: 2 * MiB },
    })
  })

  test('accepts an access token, and an API key as Bearer', async () => {
    const key = aKey()
    const { token, issued } = await anAccessToken({ key_id: key.id })
    await using node = await IngestNode.start({ snapshot: aSnapshot({ keys: [key], ...issued }) })
    for (const bearer of [token, token, secretOf('a')]) {
      const sent = await post(node, '1', { headers: { 'x-api-key': null, authorization: `Bearer ${bearer}` } })
      expect(sent.status).toBe(202)
    }
  })
})

describe('a key that is limited to endpoints', () => {
  test('is accepted only there, and so is a token of it', async () => {
    const [own, other] = [anEndpoint(), anEndpoint()]
    const key = aKey({ endpoint_ids: [own.id] })
    const { token, issued } = await anAccessToken({ key_id: key.id, endpoint_ids: key.endpoint_ids })
    await using node = await IngestNode.start({ snapshot: aSnapshot({ keys: [key], endpoints: [own, other], ...issued }) })
    for (const headers of [{}, { 'x-api-key': null, authorization: `Bearer ${token}` }]) {
      expect((await post(node, '1', { headers })).status).toBe(202)
      expect((await post(node, '1', { headers, query: `?endpoint=${own.id}` })).status).toBe(202)
      expect(await post(node, '1', { headers, query: `?endpoint=${other.id}` })).toMatchObject({
        status: 403,
        body: { error: 'forbidden', detail: expect.stringContaining(`the key is not for the endpoint ${other.id}`) },
      })
    }
  })
})

describe('the endpoint', () => {
  const first = anEndpoint({ ingest_host: 'abc123.loc.ingest.test' })
  const second = anEndpoint({ ingest_host: 'def456.loc.ingest.test' })
  const foreign = anEndpoint({ ingest_host: 'ghi789.loc.ingest.test', account_id: accountId('b') })
  const paused = anEndpoint({ desired_state: 'paused', account_id: accountId('c') })
  const deleted = anEndpoint({ desired_state: 'draining', account_id: accountId('d') })
  const keys = ['a', 'b', 'c', 'd', 'e'].map((letter) => aKey({ secret: secretOf(letter), account_id: accountId(letter) }))
  const many = aSnapshot({ endpoints: [first, second, foreign, paused, deleted], keys })
  const runningMany = useIngest({ snapshot: many })
  const as = (letter: string, headers = {}) => ({ headers: { 'x-api-key': secretOf(letter), ...headers } })

  test('is found by host, whatever its case and port', async () => {
    await using node = await IngestNode.start({ snapshot: many })
    for (const host of ['def456.loc.ingest.test', 'DEF456.LOC.Ingest.Test:443', 'def456.loc.ingest.test.']) {
      expect(await post(node, host, as('a', { host }))).toMatchObject({ status: 202 })
    }
    expect(await node.stored(second.id)).toHaveLength(3)
  })

  test('is found by query if the host belongs to no endpoint', async () => {
    await using node = await IngestNode.start({ snapshot: many })
    expect(await post(node, '1', { query: `?endpoint=${second.id}` })).toMatchObject({ status: 202 })
    expect(await post(node, '1', { query: `?endpoint=${second.id.toUpperCase()}` })).toMatchObject({ status: 202 })
    expect(await node.stored(second.id)).toHaveLength(2)
  })

  test('is the only endpoint of the account', async () => {
    await using node = await IngestNode.start({ snapshot: many })
    expect(await post(node, '1', as('b'))).toMatchObject({ status: 202 })
    expect(await node.stored(foreign.id)).toHaveLength(1)
  })

  test('422 if there are several, naming them', async () => {
    const node = runningMany()
    const sent = await post(node, '1')
    expect(sent).toMatchObject({ status: 422, body: { error: 'validation_error', errors: [{ path: 'endpoint' }] } })
    expect(sent.body['detail']).toContain(first.id)
    expect(sent.body['detail']).toContain(second.id)
    expect(sent.body['detail']).not.toContain(foreign.id)
  })

  test.each([
    ['no endpoint', 'e', '', 'has no endpoint in region loc'],
    ['an unknown parameter', 'a', '?endpiont=x', '"endpiont"'],
    ['two endpoints', 'a', `?endpoint=${first.id}&endpoint=${second.id}`, 'name one endpoint'],
    ['only a draining endpoint', 'd', '', 'has no endpoint in region loc'],
  ])('422 for %s', async (_, letter, query, detail) => {
    const node = runningMany()
    const sent = await post(node, '1', { ...as(letter), query })
    expect(sent).toMatchObject({ status: 422, body: { detail: expect.stringContaining(detail) } })
  })

  test('422 if host and query differ', async () => {
    const node = runningMany()
    const call = { ...as('a', { host: first.ingest_host }), query: `?endpoint=${second.id}` }
    expect(await post(node, '1', call)).toMatchObject({ status: 422 })
    expect(await post(node, '1', { ...call, query: `?endpoint=${first.id}` })).toMatchObject({ status: 202 })
  })

  test('404 with a key of another account, like for an endpoint that does not exist', async () => {
    await using node = await IngestNode.start({ snapshot: many })
    const unknown = { id: newId(), host: 'zzz999.loc.ingest.test' }
    /** The response to a name, with the name left out. */
    const told = async (id: string, host: string, call: Parameters<typeof post>[2]) => {
      const { status, headers, body } = await post(node, '1', call)
      const { date: _, 'content-length': __, ...others } = headers
      return JSON.stringify({ status, others, body }).toLowerCase().replaceAll(id, '<id>').replaceAll(host, '<host>')
    }
    const host = foreign.ingest_host ?? ''
    const calls = [
      (id: string, _: string) => ({ query: `?endpoint=${id}` }),
      (id: string, _: string) => ({ query: `?endpoint=${id.toUpperCase()}` }),
      (_: string, name: string) => as('a', { host: name }),
      (_: string, name: string) => as('a', { host: `${name.toUpperCase()}.:8081` }),
      (id: string, _: string) => ({ ...as('a', { host: first.ingest_host }), query: `?endpoint=${id}` }),
      (_: string, name: string) => ({ ...as('a', { host: name }), query: `?endpoint=${first.id}` }),
    ]
    for (const call of calls) {
      const answer = await told(foreign.id, host, call(foreign.id, host))
      expect(answer).toBe(await told(unknown.id, unknown.host, call(unknown.id, unknown.host)))
      expect(answer).toContain('"status":404')
    }
    expect(await node.stored(foreign.id)).toEqual([])
  })

  test('404 if it does not exist or is deleted, or the host is unknown', async () => {
    const node = runningMany()
    expect(await post(node, '1', { query: `?endpoint=${newId()}` })).toMatchObject({ status: 404, body: { error: 'not_found' } })
    expect(await post(node, '1', { query: '?endpoint=x' })).toMatchObject({ status: 404 })
    expect(await post(node, '1', as('a', { host: 'zzz999.loc.ingest.test' }))).toMatchObject({ status: 404 })
    expect(await post(node, '1', { ...as('d'), query: `?endpoint=${deleted.id}` })).toMatchObject({ status: 404 })
  })

  test('403 while its account is suspended, whatever the request names; other accounts are not affected', async () => {
    const suspended = [first, second].map((one) => ({ ...one, account_suspended: true }))
    const { token, issued } = await anAccessToken()
    const oldToken = { 'x-api-key': null, authorization: `Bearer ${token}` }
    const base = { ...many, ...issued }
    await using node = await IngestNode.start({ snapshot: base })
    expect(await post(node, '1', { query: `?endpoint=${first.id}`, headers: oldToken })).toMatchObject({ status: 202 })
    await node.publish({ ...base, epoch: 2, endpoints: [...suspended, foreign] })
    for (const query of [`?endpoint=${first.id}`, `?endpoint=${foreign.id}`, '', '?endpoint=x']) {
      const sent = await post(node, '1', { query, headers: query === '' ? oldToken : {} })
      expect(sent).toMatchObject({
        status: 403,
        body: { error: 'account_suspended', detail: expect.stringContaining('operator') },
      })
      expect(sent.body['retry']).toBeUndefined()
    }
    expect(await post(node, '1', as('b'))).toMatchObject({ status: 202 })
    await node.publish({ ...base, epoch: 3 })
    expect(await post(node, '1', { query: `?endpoint=${first.id}` })).toMatchObject({ status: 202 })
    expect(await node.stored(first.id)).toHaveLength(2)
  })

  test.each<[number, string, readonly SnapshotEndpoint[]]>([
    [403, 'account_suspended', [{ ...first, account_suspended: true }]],
    [503, 'unavailable', [{ ...first, desired_state: 'paused' }]],
    [404, 'not_found', [{ ...first, desired_state: 'draining' }]],
    [404, 'not_found', []],
    [202, '', [{ ...first, segment_bytes: 9_000_000 }, second]],
  ])('%i %s for a body that ends after a change', async (status, error, endpoints) => {
    const before = aSnapshot({ endpoints: [first] })
    await using node = await IngestNode.start({ snapshot: before })
    await using client = await RawClient.connect(node.url)
    await client.send(
      `POST /v1/ingest HTTP/1.1\r\nHost: x\r\nX-API-Key: ${secretOf('a')}\r\nContent-Type: application/x-ndjson\r\n` +
        'Expect: 100-continue\r\nContent-Length: 4\r\n\r\n',
    )
    // The head was admitted.
    expect((await client.answer()).status).toBe(100)
    await node.publish({ ...before, epoch: 2, endpoints: [...endpoints] })
    await client.send('1\n2\n')
    const answer = await client.answer()
    expect([answer.status, answer.json['error'] ?? '']).toEqual([status, error])
    expect(await node.stored(first.id)).toHaveLength(status === 202 ? 1 : 0)
  })

  test('503 while it is paused', async () => {
    const node = runningMany()
    const sent = await post(node, '1', as('c'))
    expect(sent).toMatchObject({ status: 503, body: { error: 'unavailable', retry: true } })
    expect(sent.headers['retry-after']).toBe('30')
  })
})

describe('401', () => {
  test.each([
    ['no credentials', { 'x-api-key': null }],
    ['an unknown key', { 'x-api-key': secretOf('z') }],
    ['a malformed key', { 'x-api-key': 'hello' }],
    ['basic credentials', { 'x-api-key': null, authorization: 'Basic YTpi' }],
    ['a malformed token', { 'x-api-key': null, authorization: 'Bearer a.b.c' }],
    ['an unknown key as Bearer', { 'x-api-key': null, authorization: `Bearer ${secretOf('z')}` }],
  ])('for %s', async (_, headers) => {
    await using node = await IngestNode.start({ snapshot })
    const sent = await post(node, '1', { headers })
    expect(sent).toMatchObject({
      status: 401,
      body: { type: 'http://control.test/errors/unauthorized', title: 'Unauthorized', status: 401, error: 'unauthorized' },
    })
    expect(sent.headers['content-type']).toBe('application/problem+json')
    expect(sent.headers['www-authenticate']).toBe('Bearer')
    expect(await node.stored(endpoint.id)).toEqual([])
  })

  test('for a revoked key, from the next epoch on', async () => {
    await using node = await IngestNode.start({ snapshot })
    expect(await post(node, '1')).toMatchObject({ status: 202 })
    await node.publish({ ...snapshot, epoch: 2, keys: [] })
    expect(await post(node, '1')).toMatchObject({ status: 401 })
    await node.publish({ ...snapshot, epoch: 3 })
    expect(await post(node, '1')).toMatchObject({ status: 202 })
  })

  test.each([
    ['key', { sends: 'key', tokensLastMs: null, status: 401 }],
    ['token', { sends: 'token', tokensLastMs: null, status: 401 }],
    ['key whose tokens live on', { sends: 'key', tokensLastMs: 60_000, status: 401 }],
    ['token that lives on', { sends: 'token', tokensLastMs: 60_000, status: 202 }],
    ['token that lived on until now', { sends: 'token', tokensLastMs: 0, status: 401 }],
    ['other key', { sends: 'key', of: secretOf('b'), tokensLastMs: null, status: 202 }],
    ['other token', { sends: 'token', of: secretOf('b'), tokensLastMs: null, status: 202 }],
  ])('for a key that is revoked while the body arrives: sent with %s: %o', async (_, how) => {
    const { sends, of: secret = secretOf('a'), tokensLastMs, status } = { of: undefined, ...how }
    const other = aKey({ secret: secretOf('b') })
    const { token, issued } = await anAccessToken({ key_id: aKey({ secret }).id })
    const before = { ...snapshot, ...issued, keys: [aKey(), other] }
    await using node = await IngestNode.start({ snapshot: before })
    await using client = await RawClient.connect(node.url)
    const sender = sends === 'token' ? `Authorization: Bearer ${token}` : `X-API-Key: ${secret}`
    await client.send(
      `POST /v1/ingest HTTP/1.1\r\nHost: x\r\n${sender}\r\nContent-Type: application/x-ndjson\r\n` +
        'Expect: 100-continue\r\nContent-Length: 4\r\n\r\n',
    )
    expect((await client.answer()).status).toBe(100)
    const tokens_until = tokensLastMs === null ? null : isoTimestamp(Date.now() + tokensLastMs)
    await node.publish({ ...before, epoch: 2, keys: [other], revoked_keys: [{ id: aKey().id, tokens_until }] })
    await client.send('1\n2\n')
    expect((await client.answer()).status).toBe(status)
    expect(await node.stored(endpoint.id)).toHaveLength(status === 202 ? 1 : 0)
  })
})

describe('403', () => {
  test('for a key or token without the scope ingest', async () => {
    const { token, issued } = await anAccessToken({}, 'admin')
    await using node = await IngestNode.start({
      snapshot: aSnapshot({ keys: [aKey({ scopes: ['admin', 'metrics'] })], ...issued }),
    })
    expect(await post(node, '1')).toMatchObject({ status: 403, body: { error: 'forbidden' } })
    const bearer = { 'x-api-key': null, authorization: `Bearer ${token}` }
    expect(await post(node, '1', { headers: bearer })).toMatchObject({ status: 403 })
  })
})

describe('413', () => {
  const bound = { INLET_MAX_REQUEST_BYTES: '64KiB' }

  test('for a body above the bound, announced or not', async () => {
    await using node = await IngestNode.start({ snapshot, environment: bound })
    const large = new Uint8Array(64 * KiB + 1).fill(10)
    expect(await post(node, large)).toMatchObject({ status: 413, body: { error: 'payload_too_large' } })
    const response = await fetch(`${node.url}/v1/ingest`, {
      method: 'POST',
      headers: { 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson' },
      body: new Blob([large]).stream(),
      duplex: 'half',
    })
    expect(response.status).toBe(413)
    expect(await node.stored(endpoint.id)).toEqual([])
  })

  test.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
    ['deflate', deflateSync],
  ])('for a %s bomb, which stops at the bound', async (encoding, compress) => {
    await using node = await IngestNode.start({ snapshot, environment: { INLET_MAX_IN_FLIGHT_BYTES: '1MiB', ...bound } })
    const bomb = new Uint8Array(compress(Buffer.alloc(50 * MiB, '{}\n')))
    const sent = await post(node, bomb, { headers: { 'content-encoding': encoding } })
    expect(sent).toMatchObject({ status: 413, body: { detail: expect.stringContaining('decompressed') } })
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBe(0)
  })

  test('for a record above 1 MiB, with its line; none of the request is stored', async () => {
    await using node = await IngestNode.start({ snapshot })
    const sent = await post(node, `{"a":1}\n\n${'1'.repeat(MiB + 1)}\n{"b":2}\n`)
    expect(sent).toMatchObject({ status: 413, body: { detail: expect.stringMatching(/^line 3 is longer/) } })
    const single = await post(node, '1'.repeat(MiB + 1), { headers: { 'content-type': 'application/json' } })
    expect(single).toMatchObject({ status: 413, body: { detail: expect.stringMatching(/^the record is longer/) } })
    expect(await node.stored(endpoint.id)).toEqual([])
  })
})

describe('415', () => {
  test.each([
    ['text/plain', null, 'text/plain'],
    ['application/xml; charset=utf-8', null, 'application/xml'],
    ['application/x-ndjson; charset=utf-16', null, 'utf-16'],
    ['application/x-www-form-urlencoded', null, 'application/x-www-form-urlencoded'],
    ['text/x+jsonp', null, 'text/x+jsonp'],
    ['+json', null, '+json'],
    ['application/csp-report; charset=utf-16', null, 'utf-16'],
    ['application/json', 'compress', 'compress'],
    ['application/json', 'gzip, gzip', 'several'],
  ])('for type %j, encoding %j', async (type, encoding, detail) => {
    const node = running()
    const sent = await post(node, '1', { headers: { 'content-type': type, 'content-encoding': encoding } })
    expect(sent).toMatchObject({ status: 415, body: { detail: expect.stringContaining(detail) } })
    expect(sent.headers['accept-post']).toContain('application/x-ndjson')
    expect(sent.headers['accept-encoding']).toContain('zstd')
  })
})

describe('422', () => {
  test.each(['', '\n', ' \r\n\t\n'])('for a body without records: %j', async (body) => {
    await using node = await IngestNode.start({ snapshot })
    for (const type of ['application/x-ndjson', 'application/json']) {
      expect(await post(node, body, { headers: { 'content-type': type } })).toMatchObject({ status: 422 })
    }
    for (const [encoding, compressed] of [['gzip', gzipSync(body)] as const, ['zstd', zstdCompressSync(body)] as const]) {
      const sent = await post(node, new Uint8Array(compressed), { headers: { 'content-encoding': encoding } })
      expect(sent).toMatchObject({ status: 422 })
    }
    expect(await node.stored(endpoint.id)).toEqual([])
  })

  const good = '{"a":1}\n'.repeat(100)
  test.each([
    ['gzip', 'not gzip', Buffer.from(good)],
    ['gzip', 'cut short', gzipSync(good).subarray(0, -5)],
    ['gzip', 'a wrong checksum', Buffer.concat([gzipSync(good).subarray(0, -8), Buffer.alloc(8)])],
    ['gzip', 'garbage after it', Buffer.concat([gzipSync(good), Buffer.from('{"b":2}\n')])],
    ['deflate', 'garbage after it', Buffer.concat([deflateSync(good), Buffer.from('{"b":2}\n')])],
    ['br', 'garbage after it', Buffer.concat([brotliCompressSync(good), Buffer.from('{"b":2}\n')])],
    ['zstd', 'garbage after it', Buffer.concat([zstdCompressSync(good), Buffer.from('{"b":2}\n')])],
    ['zstd', 'cut short', zstdCompressSync(good).subarray(0, -3)],
    ['zstd', 'nothing', Buffer.alloc(0)],
  ])('for %s with %s', async (encoding, _, body) => {
    await using node = await IngestNode.start({ snapshot })
    const sent = await post(node, new Uint8Array(body), { headers: { 'content-encoding': encoding } })
    expect(sent).toMatchObject({ status: 422, body: { error: 'validation_error' } })
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBe(0)
    expect(await node.stored(endpoint.id)).toEqual([])
  })
})

describe('404 and 405', () => {
  test('have a hint what to do instead', async () => {
    const node = running()
    const lost = await fetch(`${node.url}/v1/events`, { method: 'POST', body: '1' })
    expect(lost.status).toBe(404)
    expect(await lost.json()).toMatchObject({ error: 'not_found', detail: expect.stringContaining('POST /v1/ingest') })
    const traces = await fetch(`${node.url}/v1/traces`, { method: 'POST', body: '{}' })
    expect(await traces.json()).toMatchObject({ detail: expect.stringContaining('only logs are taken, at /v1/logs') })
    const got = await fetch(`${node.url}/v1/ingest`)
    expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST'])
    expect(await got.json()).toMatchObject({ error: 'method_not_allowed' })
    const posted = await fetch(`${node.url}/readyz`, { method: 'POST' })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })

  test('405 with Allow on every path for every other method', async () => {
    await using node = await IngestNode.start({ snapshot })
    const reads = ['/', '/healthz', '/readyz', '/metrics', '/errors', '/errors/not_found'].map(
      (path) => [path, 'GET, HEAD'] as const,
    )
    await using client = await RawClient.connect(node.url)
    for (const [path, allow] of [...reads, ['/v1/ingest', 'POST'], ['/mqtt', 'GET']] as const) {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'PURGE']) {
        if (allow.split(', ').includes(method)) continue
        await client.send(`${method} ${path} HTTP/1.1\r\nHost: inlet.test\r\nContent-Length: 2\r\n\r\n<>`)
        const { status, headers, json } = await client.answer()
        expect([status, headers['allow'], json['error']], `${method} ${path}`).toEqual([405, allow, 'method_not_allowed'])
      }
    }
    await client.send('CONNECT inlet.test:80 HTTP/1.1\r\nHost: inlet.test:80\r\n\r\n')
    expect(await client.answer()).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD, POST' } })
  })
})

describe('503', () => {
  test('without a configuration, with that reason; then 202 without a restart', async () => {
    await using node = await IngestNode.start({ snapshot: undefined })
    const sent = await post(node, '1')
    expect(sent).toMatchObject({
      status: 503,
      body: { error: 'unavailable', retry: true, detail: expect.stringContaining('control was never reached') },
    })
    expect(sent.headers['retry-after']).toBe('2')
    const ready = await fetch(`${node.url}/readyz`)
    expect([ready.status, ready.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await ready.json()).toMatchObject({ error: 'unavailable', retry: true, reasons: ['no configuration yet'] })
    expect(await (await fetch(`${node.url}/healthz`)).json()).toEqual({ status: 'ok' })
    await node.publish(snapshot)
    expect(await (await fetch(`${node.url}/readyz`)).json()).toEqual({ status: 'ok' })
    expect(await post(node, '1')).toMatchObject({ status: 202 })
  })

  test('below the disk reserve', async () => {
    await using node = await IngestNode.start({ snapshot: undefined, environment: { INLET_DISK_RESERVE_BYTES: '1024GiB' } })
    await node.publish(snapshot)
    const sent = await post(node, '1')
    expect(sent).toMatchObject({ status: 503, body: { retry: true, detail: expect.stringContaining('reserve') } })
    expect(sent.headers['retry-after']).toBe('5')
    expect(await (await fetch(`${node.url}/readyz`)).json()).toMatchObject({ reasons: [expect.stringContaining('reserve')] })
    expect(await node.stored(endpoint.id)).toEqual([])
  })

  test('above seven eighths of the disk budget, the rest of which is kept for other accounts', async () => {
    await using node = await IngestNode.start({ snapshot, environment: { INLET_DISK_BUDGET_BYTES: '64MiB' } })
    const batch = new Uint8Array(9 * MiB).fill(10)
    for (let line = 0; line < batch.length; line += 512 * KiB) batch[line] = 0x31
    const statuses: number[] = []
    for (let sent = 0; sent < 8; sent += 1) statuses.push((await post(node, batch)).status)
    expect(statuses).toEqual([202, 202, 202, 202, 202, 202, 503, 503])
  })
})

describe('without control', () => {
  test('starts from the stored snapshot', async () => {
    await using first = await IngestNode.start({ snapshot })
    expect(await post(first, '1')).toMatchObject({ status: 202, body: { segment_seq: 0 } })
    await first.stop()
    await using second = await IngestNode.start({ snapshot, directory: first.directory, controlUrl: 'http://127.0.0.1:1' })
    expect(await post(second, '2')).toMatchObject({ status: 202, body: { segment_seq: 1 } })
    expect((await second.stored(endpoint.id)).map(({ payload }) => payload.toString())).toEqual(['1', '2'])
  })

  test('continues after the last seq that control has committed', async () => {
    await using node = await IngestNode.start({ snapshot: { ...snapshot, endpoints: [{ ...endpoint, committed_seq: 41 }] } })
    expect(await post(node, '1')).toMatchObject({ body: { segment_seq: 42 } })
  })
})

describe('reporting', () => {
  test('/metrics is written a few times for hundreds of requests at once', async () => {
    await using node = await IngestNode.start({ snapshot })
    await using client = await RawClient.connect(node.url)
    await client.send('GET /metrics HTTP/1.1\r\nHost: ingest.test\r\n\r\n'.repeat(300))
    const texts = new Set<string>()
    for (let count = 0; count < 300; count += 1) {
      const { status, body } = await client.answer()
      expect(status).toBe(200)
      texts.add(body)
    }
    expect(texts.size).toBeLessThan(10)
  })

  test('/metrics is Prometheus text', async () => {
    await using node = await IngestNode.start({ snapshot })
    await post(node, '1\n2\n')
    await post(node, '')
    const response = await fetch(`${node.url}/metrics`)
    expect(response.headers.get('content-type')).toContain('text/plain')
    const text = await response.text()
    expect(text).toContain('inlet_ingest_requests_total{status="202",process="ingest"} 1')
    expect(text).toContain('inlet_ingest_requests_total{status="422",process="ingest"} 1')
    expect(text).toContain('inlet_ingest_records_total{process="ingest"} 2')
    expect(text).toContain('inlet_ingest_accepted_bytes_total{process="ingest"} 4')
    expect(text).toContain('inlet_ingest_in_flight_bytes{process="ingest"} 0')
    expect(text).toMatch(/inlet_wal_disk_bytes\{process="ingest"\} [1-9]/)
    expect(text).toMatch(/inlet_ingest_connections\{process="ingest"\} [1-9]/)
    for (const name of ['process_resident', 'nodejs_external'])
      expect(text).toMatch(new RegExp(`^${name}_memory_bytes\\{process="ingest"\\} [1-9]`, 'm'))
    for (const name of ['nodejs_heap_size_used', 'nodejs_heap_size_total', 'inlet_array_buffers', 'inlet_resident_memory_peak'])
      expect(text).toMatch(new RegExp(`^${name}_bytes\\{process="ingest"\\} [1-9]`, 'm'))
    expect(text).toContain('inlet_wal_waiting_bytes{process="ingest"} 0')
    expect(text).toMatch(/inlet_ingest_idempotency_index_bytes\{process="ingest"\} \d/)
  })

  test('heartbeats report the applied epoch and the health to control', async () => {
    await using node = await IngestNode.start({ snapshot: { ...snapshot, epoch: 7 } })
    expect(node.control.registered).toEqual([expect.objectContaining({ region: 'loc', ipv4: ['127.0.0.1'], ipv6: [] })])
    await expect
      .poll(() => node.control.heartbeats.at(-1), { timeout: 5_000 })
      .toMatchObject({
        process: 'ingest',
        applied_epoch: 7,
        healthy: true,
        reasons: [],
      })
  })
  test('a log that cannot be written to is reported; the node stays ready, and other endpoints are not affected', async () => {
    const broken = anEndpoint()
    const files: Files = {
      ...systemFiles,
      open: async (path, mode) => {
        if (path.includes(broken.id)) throw Object.assign(new Error('EIO: open'), { code: 'EIO' })
        return await systemFiles.open(path, mode)
      },
    }
    await using node = await IngestNode.start({ snapshot: { ...snapshot, endpoints: [endpoint, broken] }, files })
    expect(await post(node, '1', { query: `?endpoint=${broken.id}` })).toMatchObject({ status: 503, body: { retry: true } })
    expect(await post(node, '1', { query: `?endpoint=${endpoint.id}` })).toMatchObject({ status: 202 })
    await expect
      .poll(() => node.control.heartbeats.at(-1), { timeout: 5_000 })
      .toMatchObject({
        healthy: true,
        blocked: [{ endpoint_id: broken.id, reason: 'new data is refused: the disk failed (EIO)' }],
      })
    expect((await fetch(`${node.url}/readyz`)).status).toBe(200)
    expect(await post(node, '1', { query: `?endpoint=${endpoint.id}` })).toMatchObject({ status: 202 })
  })
})

describe('pages', () => {
  const get = (node: IngestNode, path: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(node.url + path, { method, headers })

  test('/ says what this is and where to send', async () => {
    const node = running()
    const page = await get(node, '/', { accept: 'text/html' })
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    const text = await page.text()
    expect(text).toContain(`${node.url}/v1/ingest`)
    expect(text).toContain(`${node.url.replace('http', 'ws')}/mqtt`)
    const proxied = await (await get(node, '/', { 'x-forwarded-proto': 'https' })).text()
    expect(proxied).toContain(`${node.url.replace('http', 'https')}/v1/ingest`)
    const json = await get(node, '/', { accept: 'application/json' })
    expect(await json.json()).toMatchObject({ send: { method: 'POST', path: '/v1/ingest' }, mqtt: '/mqtt' })
  })

  test('links in problems begin with the base URL of control, or that of the node', async () => {
    const typeOf = async (started: Parameters<typeof IngestNode.start>[0]) => {
      await using node = await IngestNode.start(started)
      return JSON.parse(await (await get(node, '/none')).text()).type
    }
    expect(await typeOf({ snapshot })).toBe('http://control.test/errors/not_found')
    const environment = { INLET_BASE_URL: 'https://own.test/' }
    expect(await typeOf({ snapshot, environment })).toBe('https://own.test/errors/not_found')
    expect(await typeOf({ snapshot: undefined })).toBe('http://127.0.0.1:8080/errors/not_found')
  })

  test('/errors/<code> explains the error of a response', async () => {
    const node = running()
    const { body } = await post(node, '', {})
    const page = await get(node, new URL(String(body['type'])).pathname)
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('validation_error')])
    for (const path of ['/errors', '/errors/']) expect((await get(node, path)).status).toBe(200)
    expect((await get(node, '/errors/none')).status).toBe(404)
  })

  test('405 for data sent to a page, naming the right address', async () => {
    const node = running()
    const sent = await get(node, '/', {}, 'POST')
    expect([sent.status, sent.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect(await sent.json()).toMatchObject({ detail: expect.stringContaining('POST /v1/ingest') })
    const head = await get(node, '/', {}, 'HEAD')
    expect([head.status, Number(head.headers.get('content-length')) > 500, await head.text()]).toEqual([200, true, ''])
  })

  test('a Host header cannot add markup to the page', async () => {
    const node = running()
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    request(`${node.url}/`, { headers: { host: '"><script>' }, agent: false })
      .on('response', resolve)
      .on('error', reject)
      .end()
    expect(await streamText(await promise)).not.toContain('<script>')
  })
})

describe('Idempotency-Key', () => {
  const once = (node: IngestNode, key: string, body: string) => post(node, body, { headers: { 'idempotency-key': key } })

  test('a repetition is stored once and has the first receipt, also after a restart', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'inlet-once-'))
    const first = await IngestNode.start({ snapshot, directory })
    const sent = await once(first, '8e03978e', '{"a":1}\n{"a":2}')
    expect(sent).toMatchObject({ status: 202, body: { accepted_records: 2, accepted_bytes: 15 } })
    expect(sent.headers['idempotent-replayed']).toBeUndefined()
    const again = await once(first, '"8e03978e"', '{"a":1}\n{"a":2}')
    expect(again).toMatchObject({ status: 202, body: sent.body, headers: { 'idempotent-replayed': 'true' } })
    await first[Symbol.asyncDispose]()
    await using second = await IngestNode.start({ snapshot, directory })
    expect(await once(second, '8e03978e', '{"a":1}\n{"a":2}')).toMatchObject({
      body: sent.body,
      headers: { 'idempotent-replayed': 'true' },
    })
    expect(await (await fetch(`${second.url}/metrics`)).text()).toContain('inlet_ingest_idempotency_keys{process="ingest"} 1\n')
    expect(await second.stored(endpoint.id)).toHaveLength(1)
    expect((await second.frames(endpoint.id))[0]).toMatchObject({ idempotency_key: '8e03978e' })
    await second[Symbol.asyncDispose]()
    await rm(directory, { recursive: true, force: true })
  })

  test('many at once are one', async () => {
    await using node = await IngestNode.start({ snapshot })
    const sent = await Promise.all(Array.from({ length: 20 }, () => once(node, 'k', '1\n')))
    expect(new Set(sent.map(({ status }) => status))).toEqual(new Set([202]))
    expect(sent.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).toHaveLength(1)
    expect(await node.metric('inlet_ingest_records_total')).toBe(1)
    expect(await node.stored(endpoint.id)).toHaveLength(1)
  })

  test('other records under the same key are 422, a bad key 400; nothing is stored', async () => {
    await using node = await IngestNode.start({ snapshot })
    await once(node, 'k', '1\n')
    expect(await once(node, 'k', '2\n')).toMatchObject({
      status: 422,
      body: { error: 'idempotency_key_reused', detail: expect.stringContaining('a key of its own') },
    })
    expect(await once(node, 'two words', '3\n')).toMatchObject({ status: 400, body: { error: 'bad_request' } })
    expect(await node.stored(endpoint.id)).toHaveLength(1)
  })
})
