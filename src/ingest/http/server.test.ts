/** Outcomes of the append, as clients see them. Everything else about the server is tested with a real node in test/contract. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { createMetrics } from '#lib/metrics.ts'
import { MetricsText } from '#lib/metrics-text.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { FrameInput } from '#log/frame.ts'
import { LogError, type LogErrorReason } from '#log/log-error.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import { decodeEnvelope } from '#model/record-envelope.ts'
import { aGate, manyConnections } from '../../../test/support/gate.ts'
import { anEndpoint } from '../../../test/support/ingest-node.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { RawClient } from '../../../test/support/raw-http.ts'
import { until } from '../../../test/support/until.ts'
import type { GateOptions } from '../gate/context.ts'
import { httpLimits } from './limits.ts'
import { HttpCounters } from './metrics.ts'
import { ExportConversions } from './otlp/export-conversions.ts'
import { startWorkerThread } from './otlp/worker-thread.ts'
import { HttpServer } from './server.ts'

type Append = (logName: string, frame: FrameInput) => Promise<{ readonly seq: number }>

async function serve(append: Append, clock: Clock = systemClock, commitWaits?: GateOptions['commitWaits']) {
  const reserved = { bytes: 0 }
  const counters = new HttpCounters()
  const principal: KeyPrincipal = { account_id: 'account', key_id: 'key', scopes: ['ingest'], endpoint_ids: null }
  const gate = aGate({
    verifyKey: () => principal,
    endpoints: [anEndpoint({ account_id: 'account' })],
    append,
    ...(commitWaits && { commitWaits }),
    room: {
      reserve: (bytes) => {
        reserved.bytes += bytes
      },
      release: (bytes) => {
        reserved.bytes -= bytes
      },
    },
  })
  const server = new HttpServer({
    listen: { host: '127.0.0.1', port: 0 },
    connections: manyConnections(),
    requestTimeoutSeconds: 10,
    certificate: undefined,
    cors: undefined,
    upgrade: {
      path: '/upgrade',
      hint: '',
      problemHeaders: [],
      problem: () => undefined,
      accept: () => undefined,
    },
    operator: {
      notReadyReasons: () => [],
      readyNotes: () => [],
      metrics: new MetricsText(createMetrics('test', '1', systemClock), systemClock),
      metricsToken: null,
    },
    exchange: {
      conversions: new ExportConversions({ startThread: startWorkerThread, clock: systemClock }),
      nodeId: 'node',
      baseUrl: () => 'http://control.test',
      maxRequestBytes: 1_000,
      gate,
      counters,
      clock,
    },
    logger: createLogger('test', 'silent'),
  })
  await server.start()
  const post = () =>
    fetch(`http://127.0.0.1:${server.address.port}/v1/ingest`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson', 'x-api-key': 'any' },
      body: '1\n2\n',
    })
  const url = `http://127.0.0.1:${server.address.port}`
  return { url, post, reserved, counters, [Symbol.asyncDispose]: () => server.stop(AbortSignal.timeout(2_000)) }
}

describe('POST /v1/ingest', () => {
  test('responds only after the append', async () => {
    const durable = Promise.withResolvers<{ seq: number }>()
    const appended = Promise.withResolvers<FrameInput>()
    await using server = await serve((_, frame) => {
      appended.resolve(frame)
      return durable.promise
    })
    let isAnswered = false
    const answer = server.post().then((response) => {
      isAnswered = true
      return response
    })
    const frame = await appended.promise
    expect(frame).toMatchObject({ layout: 'lines', recordCount: 2 })
    expect(decodeEnvelope(frame.envelope)).toEqual({ protocol: 'http' })
    expect(server.reserved.bytes).toBeGreaterThan(0)
    expect(isAnswered).toBe(false)
    durable.resolve({ seq: 7 })
    expect(await (await answer).json()).toEqual({ accepted_records: 2, accepted_bytes: 4, node_id: 'node', segment_seq: 7 })
    expect(server.reserved.bytes).toBe(0)
  })

  test('no more is read of a connection while many of its requests have no response, and all are answered', async () => {
    const durable = Promise.withResolvers<{ seq: number }>()
    let appends = 0
    await using server = await serve(() => {
      appends += 1
      return durable.promise
    })
    await using client = await RawClient.connect(server.url)
    const head = 'Host: x\r\nContent-Type: application/x-ndjson\r\nX-API-Key: any\r\nContent-Length: 2\r\n\r\n'
    const requests = 5_000
    void client.send(`POST /v1/ingest HTTP/1.1\r\n${head}1\n`.repeat(requests))
    await until('the bound', () => appends >= httpLimits.unansweredMax)
    // In as many turns of the event loop it would have read all.
    for (let turn = 0; turn < 100; turn += 1) await fetch(`${server.url}/healthz`)
    // Bytes that were read already are parsed.
    expect(appends).toBeLessThan(requests / 2)
    durable.resolve({ seq: 7 })
    for (let n = 0; n < requests; n += 1) expect((await client.answer()).status).toBe(202)
  })

  test('nobody waits for the commit of a client that left while its records were stored', async () => {
    const [durable, ended] = [Promise.withResolvers<{ seq: number }>(), Promise.withResolvers<void>()]
    const wait = () => ({ delivered: new Promise<undefined>(() => undefined), end: ended.resolve })
    let appends = 0
    const append = () => {
      appends += 1
      return durable.promise
    }
    await using server = await serve(append, systemClock, { wait })
    await using client = await RawClient.connect(server.url)
    const head = 'Host: x\r\nContent-Type: application/x-ndjson\r\nX-API-Key: any\r\nContent-Length: 2\r\n'
    await client.send(`POST /v1/ingest HTTP/1.1\r\n${head}Inlet-Ack: committed\r\n\r\n1\n`)
    await until('the append', () => appends === 1)
    client.socket.resetAndDestroy()
    // By then the server has noticed.
    for (let turn = 0; turn < 10; turn += 1) await fetch(`${server.url}/healthz`)
    durable.resolve({ seq: 7 })
    await ended.promise
  })

  test.each<[LogErrorReason, string]>([
    ['disk_full', 'the disk of this node is full'],
    ['io_error', 'could not be stored (io_error)'],
    ['stopping', 'could not be stored (stopping)'],
    ['overloaded', 'could not be stored (overloaded)'],
  ])('503 when the WAL reports %s, without its cause', async (reason, detail) => {
    await using server = await serve(() => Promise.reject(new LogError(reason, 'secret path /var/lib')))
    const response = await server.post()
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '2'])
    const body = await response.text()
    expect(JSON.parse(body)).toMatchObject({ error: 'unavailable', retry: true, detail: expect.stringContaining(detail) })
    expect(body).not.toContain('/var/lib')
    expect(server.reserved.bytes).toBe(0)
    expect(server.counters.requestsByStatus).toEqual(new Map([[503, 1]]))
  })

  test('500 for records that are stored, and that another writer of the log may deliver or not', async () => {
    await using server = await serve(() => Promise.reject(new LogError('unacknowledged', 'taken over')))
    const response = await server.post()
    expect(response.status).toBe(500)
    const detail = expect.stringContaining('may be delivered, or not; send them again')
    expect(await response.json()).toMatchObject({ error: 'internal_error', retry: true, detail })
  })

  test('500 for an unexpected error; the server keeps serving', async () => {
    let calls = 0
    await using server = await serve(async () => {
      calls += 1
      if (calls === 1) throw new TypeError('a secret of the inside')
      return { seq: 0 }
    })
    const response = await server.post()
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('a secret')
    expect((await server.post()).status).toBe(202)
    expect(server.reserved.bytes).toBe(0)
  })

  test('a body that was rejected by its head is read in turns, and the client gets its response before', async () => {
    const clock = new ManualClock()
    await using server = await serve(() => Promise.resolve({ seq: 0 }), clock)
    await using client = await RawClient.connect(server.url, { allowHalfOpen: true })
    await client.send(
      `POST /v1/ingest HTTP/1.1\r\nHost: a\r\nX-API-Key: any\r\nContent-Type: application/x-ndjson\r\nContent-Length: ${32 * MiB}\r\n\r\n`,
    )
    let sent = 0
    void (async () => {
      for (; sent < 32; sent += 1) await client.send(new Uint8Array(MiB))
    })()
    expect(await client.answer()).toMatchObject({ status: 413, headers: { connection: 'close' } })
    // The kernel keeps a few MiB. A server that reads on takes all of it during these requests.
    for (let request = 0; request < 80 && sent < 32; request += 1) expect((await server.post()).status).toBe(202)
    expect(sent).toBeLessThan(16)
    const before = sent
    for (let turn = 0; turn < 2_000 && sent < before + 2; turn += 1) {
      clock.advance(httpLimits.discardTurnMs)
      await setImmediate()
    }
    expect(sent).toBeGreaterThanOrEqual(before + 2)
  })

  test('connections full of pipelined requests are read in turns, so others are served in between', async () => {
    await using server = await serve(() => Promise.resolve({ seq: 0 }))
    await using clients = new AsyncDisposableStack()
    const floods: RawClient[] = []
    for (let count = 0; count < 8; count += 1) floods.push(clients.use(await RawClient.connect(server.url)))
    await using other = await RawClient.connect(server.url)
    const request =
      'POST /v1/ingest HTTP/1.1\r\nHost: a\r\nX-API-Key: any\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n1'
    await other.send(request)
    expect((await other.answer()).status).toBe(202)
    const count = 4_000
    for (const flood of floods) void flood.send(request.repeat(count))
    void other.send(request)
    expect((await other.answer()).status).toBe(202)
    // One read of each has 600.
    expect(server.counters.records).toBeLessThan(8_000)
    await until('all requests to be stored', () => server.counters.records === floods.length * count + 2)
  })
})
