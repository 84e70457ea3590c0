/**
 * Malformed, slow and interrupted requests on the socket.
 *
 * Law: the WAL never holds part of a request, and responses are always in order.
 */
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { httpLimits } from '#ingest/http/limits.ts'
import { KiB, MiB } from '#lib/bytes.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { requestLimits } from '#model/limits.ts'
import { anEndpoint, aSnapshot, IngestNode, type IngestNodeOptions, secretOf } from '../support/ingest-node.ts'
import { RawClient } from '../support/raw-http.ts'
import { until } from '../support/until.ts'

const endpoint = anEndpoint()
const snapshot = aSnapshot({ endpoints: [endpoint] })
const start = (options: IngestNodeOptions = {}) => IngestNode.start({ snapshot, ...options })

function head(headers: Readonly<Record<string, string | number | null>> = {}, line = 'POST /v1/ingest HTTP/1.1'): string {
  const all = { Host: 'ingest.test', 'X-API-Key': secretOf('a'), 'Content-Type': 'application/x-ndjson', ...headers }
  const lines = Object.entries(all).flatMap(([name, value]) => (value === null ? [] : [`${name}: ${value}\r\n`]))
  return `${line}\r\n${lines.join('')}\r\n`
}

const whole = (body: string, headers = {}) => head({ 'Content-Length': Buffer.byteLength(body), ...headers }) + body
const chunk = (body: string) => `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n`
const payloads = async (node: IngestNode) => (await node.stored(endpoint.id)).map(({ payload }) => payload.toString())

const steered: ReadonlySet<number> = new Set([requestLimits.rateWindowMs, httpLimits.drainBodyMs, httpLimits.lingerMsMax])

/** Real time, except that the test fires the rate, drain and linger timers itself. */
function aClock(): Clock & { fire(delayMs: number): void } {
  const timers = new Map<number, Set<() => void>>()
  return {
    ...systemClock,
    setTimer(callback, delayMs) {
      if (!steered.has(delayMs)) return systemClock.setTimer(callback, delayMs)
      const due = timers.get(delayMs) ?? new Set()
      timers.set(delayMs, due.add(callback))
      return () => due.delete(callback)
    },
    fire(delayMs) {
      const due = [...(timers.get(delayMs) ?? [])]
      timers.delete(delayMs)
      for (const callback of due) callback()
    },
  }
}

describe('bodies', () => {
  test('chunked ones are joined; chunk extensions and trailers are ignored', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    await client.send(head({ 'Transfer-Encoding': 'chunked' }))
    for (const part of ['{"a"', ':1}\n{', '"b":2}']) await client.send(chunk(part))
    await client.send('1;name=value\r\n\n\r\n0\r\nX-Trailer: 1\r\n\r\n')
    expect(await client.answer()).toMatchObject({ status: 202, json: { accepted_records: 2, accepted_bytes: 16 } })
    expect(await payloads(node)).toEqual(['{"a":1}\n{"b":2}\n'])
  })

  test.each([
    ['identity', (body: Buffer) => body],
    ['gzip', (body: Buffer) => gzipSync(body, { level: 0 })],
  ])('cut into thousands of chunks are one request: %s', async (encoding, encode) => {
    const body = Buffer.from('{"a":1}\n'.repeat(40_000))
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    await client.send(head({ 'Transfer-Encoding': 'chunked', 'Content-Encoding': encoding }))
    const chunks =
      encode(body)
        .toString('latin1')
        .match(/.{1,20}/gs) ?? []
    const bytes = chunks.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`)
    await client.send(Buffer.from(`${bytes.join('')}0\r\n\r\n`, 'latin1'))
    expect(await client.answer()).toMatchObject({ status: 202, json: { accepted_records: 40_000, accepted_bytes: body.length } })
    expect(await payloads(node)).toEqual([body.toString()])
  })

  test('cut into tiny chunks: 400 says what to do, and the rest is not read', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    await client.send(head({ 'Transfer-Encoding': 'chunked' }))
    const tiny = chunk('1').repeat(100_000)
    let sent = 0
    void (async () => {
      for (; sent < 100; sent += 1) await client.send(tiny)
    })()
    expect(await client.answer()).toMatchObject({
      status: 400,
      headers: { connection: 'close' },
      json: { error: 'bad_request', detail: expect.stringContaining('send larger chunks, or a Content-Length') },
    })
    expect(sent).toBeLessThan(20)
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBe(0)
    expect(await payloads(node)).toEqual([])
  })

  test('may arrive one byte at a time', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    for (const byte of whole('{"a":1}\n')) await client.send(byte)
    expect(await client.answer()).toMatchObject({ status: 202, json: { accepted_records: 1 } })
  })

  test.each([
    ['announced', head({ 'Content-Length': 1000 }) + '{"a":1}\n'.repeat(10)],
    ['chunked', head({ 'Transfer-Encoding': 'chunked' }) + chunk('{"a":1}\n'.repeat(10))],
    ['within a chunk', `${head({ 'Transfer-Encoding': 'chunked' })}ff\r\n{"a":1}\n`],
    ['gzip', `${head({ 'Content-Length': 1000, 'Content-Encoding': 'gzip' })}\x1f\x8b\x08`],
  ])('cut off by the client (%s): nothing is kept, memory is released', async (_, bytes) => {
    await using node = await start()
    const client = await RawClient.connect(node.url)
    await client.send(Buffer.from(bytes, 'latin1'))
    await node.until('/metrics', (_response, text) => /inlet_ingest_received_bytes_total\{[^}]*\} [1-9]/.test(text))
    client.socket.resetAndDestroy()
    await node.until('/metrics', (_response, text) => text.includes('inlet_ingest_aborted_total{process="ingest"} 1'))
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBe(0)
    expect(await payloads(node)).toEqual([])
  })

  test('400 if the stream ends before the announced length', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url, { allowHalfOpen: true })
    await client.send(`${head({ 'Content-Length': 100 })}{"a":1}\n`)
    client.socket.end()
    expect(await client.answer()).toMatchObject({ status: 400, json: { error: 'bad_request' } })
    expect(await client.closed).toBe('end')
    expect(await payloads(node)).toEqual([])
  })

  test('longer than announced: the rest is not a request, and 400 follows the receipt', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    await client.send(`${whole('{"a":1}\n')}{"b":2}\n`)
    expect(await client.answer()).toMatchObject({ status: 202, json: { accepted_bytes: 8 } })
    expect(await client.answer()).toMatchObject({ status: 400, headers: { connection: 'close' } })
    expect(await payloads(node)).toEqual(['{"a":1}\n'])
  })

  test('a client that ends its side after the request still gets its receipt', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url, { allowHalfOpen: true })
    client.socket.end(whole('{"a":1}\n'))
    expect(await client.answer()).toMatchObject({ status: 202 })
    expect(await client.closed).toBe('end')
  })
})

describe('pipelining', () => {
  test('responses are in the order of the requests, accepted or not', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    const requests = [
      whole('1\n'),
      whole('', {}),
      whole('1\n2\n'),
      whole('1', { 'X-API-Key': 'wrong' }),
      'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n',
      whole('1\n2\n3\n'),
    ]
    await client.send(requests.join(''))
    const statuses: number[] = []
    for (const _ of requests) statuses.push((await client.answer()).status)
    expect(statuses).toEqual([202, 422, 202, 401, 200, 202])
    expect(await payloads(node)).toEqual(['1\n', '1\n2\n', '1\n2\n3\n'])
  })

  test('500 requests at once', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    await client.send(Array.from({ length: 500 }, (_, n) => whole(`${n}\n`)).join(''))
    for (let n = 0; n < 500; n += 1) expect((await client.answer()).json['accepted_bytes']).toBe(`${n}\n`.length)
    expect(await payloads(node)).toEqual(Array.from({ length: 500 }, (_, n) => `${n}\n`))
  })

  test('nothing after a request with Connection: close is read', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    await client.send(whole('1\n', { Connection: 'close' }) + whole('2\n'))
    expect(await client.answer()).toMatchObject({ status: 202, headers: { connection: 'close' } })
    expect(await client.closed).toBe('end')
    expect(client.unread).toBe('')
    expect(await payloads(node)).toEqual(['1\n'])
  })
})

describe('Expect: 100-continue', () => {
  test('gets 100, then its receipt', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    await client.send(head({ 'Content-Length': 8, Expect: '100-continue' }))
    expect(await client.answer()).toMatchObject({ status: 100 })
    await client.send('{"a":1}\n')
    expect(await client.answer()).toMatchObject({ status: 202 })
  })

  test.each([
    [401, { 'X-API-Key': 'wrong' }, {}],
    [413, { 'Content-Length': 100 * MiB }, {}],
    [415, { 'Content-Type': 'text/plain' }, {}],
    [503, {}, { environment: { INLET_DISK_RESERVE_BYTES: '1024GiB' }, snapshot: undefined }],
  ])('%i is sent before the body, and the connection ends', async (status, headers, options: IngestNodeOptions) => {
    await using node = await start(options)
    if ('snapshot' in options) await node.publish(snapshot)
    await using client = await RawClient.connect(node.url)
    await client.send(head({ 'Content-Length': 8, Expect: '100-continue', ...headers }))
    expect(await client.answer()).toMatchObject({ status, headers: { connection: 'close' } })
    expect(await client.closed).toBe('end')
  })

  test('another expectation is 417', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    await client.send(whole('1', { Expect: 'the-unexpected' }))
    expect(await client.answer()).toMatchObject({ status: 417, json: { error: 'expectation_failed' } })
  })
})

describe('a response before the end of the body', () => {
  test.each([
    [401, 30 * MiB, { 'X-API-Key': 'wrong' }],
    [413, 30 * MiB, {}],
    [415, 2 * MiB, { 'Content-Encoding': 'rot13' }],
  ])('%i reaches a client that first sends all %i bytes', async (status, bytes, headers) => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    await client.send(head({ 'Content-Length': bytes, ...headers }))
    const part = Buffer.alloc(256 * KiB, '{}\n')
    for (let sent = 0; sent < bytes; sent += part.length) await client.send(part.subarray(0, Math.min(part.length, bytes - sent)))
    expect(await client.answer()).toMatchObject({ status, headers: { connection: 'close' } })
    expect(await client.closed).toBe('end')
    expect(await payloads(node)).toEqual([])
  })

  test('reaches a client that sends an endless chunked body', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    await client.send(head({ 'Transfer-Encoding': 'chunked' }))
    const part = chunk('{}\n'.repeat(50_000))
    for (let sent = 0; sent < 15 * MiB; sent += part.length) await client.send(part)
    expect(await client.answer()).toMatchObject({ status: 413 })
  })

  test('keeps the connection open if the rest of the body is small', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    await client.send(head({ 'Content-Length': 4, 'X-API-Key': 'wrong' }))
    expect(await client.answer()).toMatchObject({ status: 401, headers: { connection: 'keep-alive' } })
    await client.send(`{}\n\n${whole('{"b":2}\n')}`)
    expect(await client.answer()).toMatchObject({ status: 202 })
    expect(await payloads(node)).toEqual(['{"b":2}\n'])
  })
})

describe('malformed requests', () => {
  test.each([
    ['both lengths', `${head({ 'Content-Length': 5, 'Transfer-Encoding': 'chunked' })}0\r\n\r\n`, 400],
    ['both lengths, the other way round', `${head({ 'Transfer-Encoding': 'chunked', 'Content-Length': 5 })}0\r\n\r\n`, 400],
    ['two lengths', `${head({ 'Content-Length': 1 }).slice(0, -2)}Content-Length: 2\r\n\r\n12`, 400],
    ['a length that is not a number', head({ 'Content-Length': '5x' }), 400],
    ['a negative length', head({ 'Content-Length': -1 }), 400],
    ['an unknown transfer coding', `${head({ 'Transfer-Encoding': 'gzip, chunked' })}0\r\n\r\n`, 400],
    ['chunked that is not last', `${head({ 'Transfer-Encoding': 'chunked, identity' })}0\r\n\r\n`, 400],
    ['a space before the colon', head().replace('Host:', 'Host :'), 400],
    ['a folded header', head({ 'X-Fold': 'a\r\n b' }), 400],
    ['a bare line feed in the head', head().replaceAll('\r\n', '\n'), 400],
    ['no host', `${head({ Host: null, 'Content-Length': 1 })}1`, 400],
    ['two hosts', `${head({ 'Content-Length': 1 }).slice(0, -2)}Host: other\r\n\r\n1`, 400],
    ['a bad chunk size', `${head({ 'Transfer-Encoding': 'chunked' })}zz\r\n{}\r\n0\r\n\r\n`, 400],
    ['a chunk that is longer than announced', `${head({ 'Transfer-Encoding': 'chunked' })}2\r\n{}{}\r\n0\r\n\r\n`, 400],
    ['chunked in HTTP/1.0', `${head({ 'Transfer-Encoding': 'chunked' }, 'POST /v1/ingest HTTP/1.0') + chunk('1')}0\r\n\r\n`, 400],
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['TLS', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]).toString('latin1'), 400],
    ['a NUL in a header', head({ 'X-Nul': 'a\0b' }), 400],
    ['a huge header', head({ 'X-Huge': 'x'.repeat(20 * KiB) }), 431],
    ['thousands of headers', `${head().slice(0, -2)}${'a:b\r\n'.repeat(5_000)}\r\n`, 431],
    ['a huge target', `POST /${'x'.repeat(20 * KiB)} HTTP/1.1\r\n`, 431],
    ['CONNECT', 'CONNECT example.test:443 HTTP/1.1\r\nHost: example.test\r\n\r\n', 405],
  ])('%s: a problem, the connection ends, nothing is kept', async (_, bytes, status) => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    await client.send(Buffer.from(bytes, 'latin1'))
    const answer = await client.answer()
    expect(answer).toMatchObject({ status, headers: { 'content-type': 'application/problem+json' }, json: { status } })
    if (answer.headers['connection'] === 'close') expect(await client.closed).toBe('end')
    await client[Symbol.asyncDispose]()
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBe(0)
    expect(await payloads(node)).toEqual([])
  })

  test('a second request hidden in ambiguous framing is not read (request smuggling)', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    const inner = whole('{"smuggled":1}\n')
    await client.send(`${head({ 'Content-Length': 5, 'Transfer-Encoding': 'chunked' })}0\r\n\r\n${inner}`)
    expect(await client.answer()).toMatchObject({ status: 400 })
    expect(await client.closed).toBe('end')
    expect(await payloads(node)).toEqual([])
  })

  test('the response to malformed bytes follows those to earlier valid requests', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    await client.send(`${whole('1\n')}${whole('2\n')}rubbish\r\n\r\n`)
    expect([(await client.answer()).status, (await client.answer()).status, (await client.answer()).status]).toEqual([
      202, 202, 400,
    ])
    expect(await client.closed).toBe('end')
  })

  test('an absolute request target, and HTTP/1.0 without Host, are accepted', async () => {
    await using node = await start()
    await using absolute = await RawClient.connect(node.url)
    await absolute.send(`${head({ 'Content-Length': 1 }, `POST http://other.test/v1/ingest?endpoint=${endpoint.id} HTTP/1.1`)}1`)
    expect(await absolute.answer()).toMatchObject({ status: 202 })
    await using old = await RawClient.connect(node.url)
    await old.send(`${head({ 'Content-Length': 1, Host: null }, 'POST /v1/ingest HTTP/1.0')}2`)
    expect(await old.answer()).toMatchObject({ status: 202 })
    expect(await old.closed).toBe('end')
  })
})

describe('slow clients', () => {
  test('408 for a head that does not arrive', async () => {
    await using node = await start({ environment: { INLET_REQUEST_TIMEOUT_SECONDS: '1' } })
    await using client = await RawClient.connect(node.url)
    await client.send('POST /v1/ingest HTTP/1.1\r\nHost:')
    expect(await client.answer()).toMatchObject({ status: 408, json: { error: 'request_timeout', retry: true } })
    expect(await client.closed).toBe('end')
  })

  test('a connection that never sends anything is closed without a response', async () => {
    await using node = await start({ environment: { INLET_REQUEST_TIMEOUT_SECONDS: '1' } })
    await using client = await RawClient.connect(node.url)
    await client.closed
    expect(client.unread).toBe('')
  })

  test('408 for a body that takes longer than a request may', async () => {
    await using node = await start({ environment: { INLET_REQUEST_TIMEOUT_SECONDS: '1' } })
    await using client = await RawClient.connect(node.url)
    await client.send(`${head({ 'Content-Length': 100 })}{"a":1}\n`)
    expect(await client.answer()).toMatchObject({ status: 408, headers: { connection: 'close' } })
    expect(await payloads(node)).toEqual([])
  })

  test.each([
    ['CONNECT', 'CONNECT ingest.test:443 HTTP/1.1\r\nHost: ingest.test\r\n\r\n'],
    ['an upgrade that is refused', head({ Connection: 'Upgrade', Upgrade: 'websocket' }, 'GET /mqtt HTTP/1.1')],
  ])('a connection does not stay open after %s because its client does not close it', async (_, request) => {
    const clock = aClock()
    await using node = await start({ clock })
    await using client = await RawClient.connect(node.url, { allowHalfOpen: true })
    await client.send(whole('1\n'))
    expect(await client.answer()).toMatchObject({ status: 202 })
    await client.send(request)
    expect((await client.answer()).status).toBeGreaterThanOrEqual(400)
    await client.closed
    expect(await node.metric('inlet_ingest_connections')).toBe(2)
    clock.fire(httpLimits.lingerMsMax)
    await until('the connection to be closed', async () => (await node.metric('inlet_ingest_connections')) === 1)
  })

  test('408 for a body below the minimum rate; a faster one completes', async () => {
    const clock = aClock()
    await using node = await start({ clock })
    await using slow = await RawClient.connect(node.url)
    await using fast = await RawClient.connect(node.url)
    const part = `${'1'.repeat(requestLimits.rateWindowBytesMin - 1)}\n`
    const received = (bytes: number) =>
      node.until('/metrics', (_, text) => text.includes(`received_bytes_total{process="ingest"} ${bytes}\n`))
    await slow.send(head({ 'Content-Length': 3 * part.length }) + part)
    await fast.send(head({ 'Content-Length': 3 * part.length }) + part)
    await received(2 * part.length)
    clock.fire(requestLimits.rateWindowMs)
    await slow.send('2')
    await fast.send(part)
    await received(3 * part.length + 1)
    clock.fire(requestLimits.rateWindowMs)
    expect(await slow.answer()).toMatchObject({ status: 408, json: { detail: expect.stringContaining('slower') } })
    await fast.send(part)
    expect(await fast.answer()).toMatchObject({ status: 202, json: { accepted_records: 3 } })
    expect(await payloads(node)).toEqual([part.repeat(3)])
  })
})

describe('bounds', () => {
  test('bytes in flight: bytes are reserved as they arrive, 503 above the bound, and room is released', async () => {
    await using node = await start({ environment: { INLET_MAX_IN_FLIGHT_BYTES: '15MiB' } })
    await using first = await RawClient.connect(node.url)
    await using second = await RawClient.connect(node.url)
    await first.send(head({ 'Content-Length': 10 * MiB }) + '1\n'.repeat(4.9 * MiB))
    await node.until('/metrics', (_, text) => /inlet_ingest_in_flight_bytes\{[^}]*\} 102[0-9]{5}/.test(text))
    await second.send(`${head({ 'Content-Length': 10 * MiB })}1`)
    const refused = await second.answer()
    expect(refused).toMatchObject({ status: 503, json: { error: 'unavailable', retry: true }, headers: { 'retry-after': '1' } })
    await first[Symbol.asyncDispose]()
    await node.until('/metrics', (_, text) => text.includes('inlet_ingest_in_flight_bytes{process="ingest"} 0\n'))
    await using third = await RawClient.connect(node.url)
    await third.send(whole('1\n'))
    expect(await third.answer()).toMatchObject({ status: 202 })
  })

  test('bytes in flight: a chunked body is counted as it arrives', async () => {
    await using node = await start({ environment: { INLET_MAX_IN_FLIGHT_BYTES: '1MiB' } })
    await using client = await RawClient.connect(node.url)
    await client.send(head({ 'Transfer-Encoding': 'chunked' }))
    for (let sent = 0; sent < 8; sent += 1) await client.send(chunk('{}\n'.repeat(60_000)))
    expect(await client.answer()).toMatchObject({ status: 503 })
    expect(await node.metric('inlet_ingest_in_flight_bytes')).toBe(0)
  })

  test('connections: one above the limit is closed; slots are free again when others close', async () => {
    await using node = await start({ environment: { INLET_MAX_UNAUTHENTICATED_CONNECTIONS: '5' } })
    const open: RawClient[] = []
    for (let n = 0; n < 8; n += 1) open.push(await RawClient.connect(node.url))
    await Promise.any(open.map(({ closed }) => closed))
    await Promise.all(open.map((client) => client[Symbol.asyncDispose]()))
    const dropped = () => node.metric('inlet_ingest_dropped_connections_total').catch(() => 0)
    await until('free slots', async () => (await dropped()) >= 3)
  })
})

describe('SIGTERM', () => {
  test('requests in progress finish, idle connections close, the log is sealed', async () => {
    const clock = aClock()
    await using node = await start({ clock })
    await using idle = await RawClient.connect(node.url)
    await idle.send(whole('1\n'))
    await idle.answer()
    await using silent = await RawClient.connect(node.url)
    await using busy = await RawClient.connect(node.url)
    await using stuck = await RawClient.connect(node.url)
    await busy.send(`${head({ 'Content-Length': 4 })}2\n`)
    await stuck.send(`${head({ 'Content-Length': 4 })}3\n`)
    await node.until('/metrics', (_, text) => text.includes('received_bytes_total{process="ingest"} 6\n'))
    const stopped = node.stop()
    await Promise.all([idle.closed, silent.closed])
    await expect(RawClient.connect(node.url)).rejects.toThrow('ECONNREFUSED')
    await busy.send('2\n')
    expect(await busy.answer()).toMatchObject({ status: 202, headers: { connection: 'close' } })
    clock.fire(httpLimits.drainBodyMs)
    expect(await stuck.answer()).toMatchObject({ status: 503, json: { detail: expect.stringContaining('shutting down') } })
    await stopped
    expect(await payloads(node)).toEqual(['1\n', '2\n2\n'])
  })

  test('at the deadline all connections are cut; acknowledged records are kept', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    await client.send(whole('1\n'))
    await client.answer()
    await client.send(`${head({ 'Content-Length': 4 })}2\n`)
    await node.until('/metrics', (_, text) => text.includes('received_bytes_total{process="ingest"} 4\n'))
    await node.stop(AbortSignal.abort())
    await client.closed
    await using again = await start({ directory: node.directory })
    expect(await payloads(again)).toEqual(['1\n'])
  })
})
