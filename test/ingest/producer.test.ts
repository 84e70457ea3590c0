import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  BufferFullError,
  ClosedError,
  ConnectionError,
  createProducer,
  DeliveryError,
  type Producer,
  type ProducerOptions,
  RecordError,
  TimeoutError,
} from '#client/index.ts'
import { anEndpoint, aSnapshot, IngestNode, type IngestNodeOptions, secretOf } from '../support/ingest-node.ts'
import { type Fault, ScriptedProxy } from '../support/scripted-proxy.ts'
import { aCommit } from '../support/test-node.ts'
import { runs } from '../support/thorough.ts'
import { until } from '../support/until.ts'

/** A node with one endpoint behind a proxy, and a producer that sends through it. */
class Rig implements AsyncDisposable {
  readonly node: IngestNode
  readonly proxy: ScriptedProxy
  readonly endpointId: string
  readonly producer: Producer

  private constructor(node: IngestNode, proxy: ScriptedProxy, endpointId: string, options: Partial<ProducerOptions>) {
    this.node = node
    this.proxy = proxy
    this.endpointId = endpointId
    this.producer = createProducer({ url: proxy.url, apiKey: secretOf('a'), endpoint: endpointId, lingerMs: 5, ...options })
  }

  static async start(options: Partial<ProducerOptions> = {}, nodeOptions: IngestNodeOptions = {}): Promise<Rig> {
    const endpoint = anEndpoint()
    const node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }), ...nodeOptions })
    return new Rig(node, await ScriptedProxy.start(node.url), endpoint.id, options)
  }

  /** Stops the node and returns the records that it stored, in order. */
  async stored(): Promise<readonly string[]> {
    const frames = await this.node.stored(this.endpointId)
    return frames.flatMap(({ payload }) => payload.toString().trimEnd().split('\n'))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.producer.close({ timeoutMs: 1 }).catch(() => undefined)
    await this.proxy[Symbol.asyncDispose]()
    await this.node[Symbol.asyncDispose]()
  }
}

/** Stores one more record, and returns its receipt. */
async function createReceipt({ node, endpointId }: Rig) {
  const producer = createProducer({ url: node.url, apiKey: secretOf('a'), endpoint: endpointId })
  const receipt = await producer.send({ n: 0 })
  await producer.close()
  return receipt
}

const refusal = (status: number, error: string, retryAfter?: string): Fault => ({
  status,
  body: { type: 'x', title: 'x', status, error, detail: `refused: ${error}` },
  ...(retryAfter === undefined ? {} : { headers: { 'retry-after': retryAfter } }),
})

describe('send', () => {
  test('resolves with the segment that holds the record, which keeps its bytes', async () => {
    await using rig = await Rig.start()
    const records = [
      { text: 'ü 😀' },
      ['a'],
      '{"as": "text"}',
      '{"crlf":1}\r\n',
      new TextEncoder().encode('{"bytes":1}\n'),
      ' x ',
    ]
    const receipts = await Promise.all(records.map((record) => rig.producer.send(record)))
    expect(receipts[0]).toEqual({ node_id: expect.stringMatching(/./), segment_seq: 0 })
    expect(rig.producer.stats).toMatchObject({ recordsStored: 6, recordsPending: 0, bytesBuffered: 0, requests: 1 })
    const [frame] = await rig.node.stored(rig.endpointId)
    expect(frame?.recordCount).toBe(6)
    expect(frame?.payload.toString()).toContain('{"text":"ü 😀"}\n["a"]\n{"as": "text"}\n{"crlf":1}')
  })

  test('that waits for commits resolves with the objects, and holds back no other batch meanwhile', async () => {
    await using rig = await Rig.start({ acknowledgement: 'committed', batchRecordsMax: 1 })
    const sends = [rig.producer.send({ n: 1 }), rig.producer.send({ n: 2 })]
    await until('both to be stored', () => rig.producer.stats.requests === 2 && rig.node.control.deliveredLookups > 0)
    expect(rig.producer.stats).toMatchObject({ recordsStored: 0, recordsPending: 2 })
    const { node_id } = await createReceipt(rig)
    const commit = aCommit(node_id, rig.endpointId, 0)
    rig.node.control.commits.push(commit)
    const committed = { node_id, segment_seq: 0, commit_id: commit.id, keys: [commit.artifacts['parquet']?.key] }
    expect(await Promise.all(sends)).toEqual([committed, committed])
    expect(rig.producer.stats).toMatchObject({ recordsStored: 2, recordsPending: 0, bytesBuffered: 0 })
  })

  test('that waits for commits asks again if a question fails, or has no answer', async () => {
    await using rig = await Rig.start({ acknowledgement: 'committed', deliveryTimeoutMs: 10_000, requestTimeoutMs: 500 })
    const { node_id } = await createReceipt(rig)
    rig.node.control.commits.push(aCommit(node_id, rig.endpointId, 0))
    rig.proxy.script('pass', { status: 502, body: '<h1>Bad Gateway</h1>' }, 'hang')
    expect(await rig.producer.send({ n: 1 })).toMatchObject({ node_id, commit_id: expect.any(String) })
    expect(rig.proxy.seen.filter((request) => request.startsWith('GET'))).toHaveLength(3)
  })

  test('that waits for commits rejects once it took too long, or the producer ends', async () => {
    await using rig = await Rig.start({ acknowledgement: 'committed', deliveryTimeoutMs: 1_500 })
    await expect(rig.producer.send({ n: 1 })).rejects.toThrow(TimeoutError)
    const last = rig.producer.send({ n: 2 }).catch((error: unknown) => error)
    await until('it to be stored', () => rig.producer.stats.requests === 2)
    await expect(rig.producer.close({ timeoutMs: 50 })).rejects.toThrow(TimeoutError)
    expect(await last).toBeInstanceOf(ClosedError)
    expect(rig.producer.stats).toMatchObject({ recordsFailed: 2, recordsPending: 0, bytesBuffered: 0 })
  })

  test('rejects what is no record, and nothing else', async () => {
    await using rig = await Rig.start()
    const bad = ['', ' \t\r', 'two\nlines', new Uint8Array(), '\n', 'x'.repeat(1024 * 1024 + 1), undefined, () => 1]
    const sends = bad.map((record) => rig.producer.send(record as string))
    const good = rig.producer.send('y'.repeat(1024 * 1024))
    const ends = await Promise.allSettled(sends)
    expect(ends.map((end) => end.status === 'rejected' && end.reason instanceof RecordError)).toEqual(bad.map(() => true))
    await good
  })

  test('bytes that change after the call are sent as they were', async () => {
    await using rig = await Rig.start()
    const bytes = new TextEncoder().encode('{"n":1}')
    const sending = rig.producer.send(bytes)
    bytes.fill(0x78)
    await sending
    expect(await rig.stored()).toEqual(['{"n":1}'])
  })

  test('gathers batches by number, size and age', async () => {
    await using rig = await Rig.start({ batchRecordsMax: 3, batchBytesMax: 100, lingerMs: 60_000 })
    const counted = [1, 2, 3].map((n) => rig.producer.send({ n }))
    await Promise.all(counted)
    const sized = [rig.producer.send('a'.repeat(60)), rig.producer.send('b'.repeat(60))]
    await sized[0]
    expect(rig.producer.stats).toMatchObject({ requests: 2, recordsPending: 1 })
    await rig.producer.flush()
    await sized[1]
    expect(rig.producer.stats).toMatchObject({ requests: 3, recordsStored: 5 })
    await using aged = await Rig.start({ lingerMs: 20 })
    await aged.producer.send('alone')
  })

  test.each(['gzip', 'none'] as const)('compression %s', async (compression) => {
    await using rig = await Rig.start({ compression, batchBytesMax: 4 * 1024 * 1024 })
    const records = Array.from({ length: 5000 }, (_, n) => JSON.stringify({ n, text: 'the same words again and again' }))
    expect(await rig.producer.sendAll(records)).toBe(5000)
    const { bytesSent } = rig.producer.stats
    const size = records.reduce((sum, record) => sum + record.length + 1, 0)
    expect(compression === 'gzip' ? bytesSent < size / 3 : bytesSent === size).toBe(true)
    expect(await rig.stored()).toEqual(records)
  })
})

describe('faults', () => {
  const faults = ['refuse', 'cut', 'lose-response', 'cut-response'] as const
  test.each(faults)('%s: each record is stored once', async (fault) => {
    // On a busy machine it takes a while to hand over all records. They are one batch.
    await using rig = await Rig.start({ lingerMs: 500 })
    rig.proxy.script(fault, fault, fault)
    const records = Array.from({ length: 200 }, (_, n) => JSON.stringify({ n, noise: randomBytes(20).toString('hex') }))
    await Promise.all(records.map((record) => rig.producer.send(record)))
    const { requests, retries, replays } = rig.producer.stats
    const isStored = fault === 'lose-response' || fault === 'cut-response'
    expect({ requests, retries, replays }).toEqual({ requests: 4, retries: 3, replays: isStored ? 1 : 0 })
    expect(await rig.stored()).toEqual(records)
  })

  test('503 with Retry-After holds back all requests', async () => {
    await using rig = await Rig.start({ concurrency: 4, batchRecordsMax: 1 })
    rig.proxy.script(refusal(503, 'unavailable', '1'))
    const began = performance.now()
    const first = rig.producer.send('first')
    await until('the refusal', () => rig.producer.stats.retries === 1)
    await Promise.all([first, rig.producer.send('second')])
    expect(performance.now() - began).toBeGreaterThanOrEqual(990)
    expect(rig.proxy.seen).toHaveLength(3)
  })

  test.each([408, 429, 500, 502])('status %i is repeated', async (status) => {
    await using rig = await Rig.start()
    rig.proxy.script(status === 502 ? { status, body: '<h1>Bad Gateway</h1>' } : refusal(status, 'internal_error'))
    await rig.producer.send('again')
    expect(await rig.stored()).toEqual(['again'])
  })

  test.each([
    [401, 'unauthorized'],
    [403, 'account_suspended'],
    [404, 'not_found'],
    [422, 'validation_error'],
  ])('status %i rejects at once, and says that nothing is stored', async (status, error) => {
    await using rig = await Rig.start()
    rig.proxy.script(refusal(status, error))
    const failure = await rig.producer.send('no').catch((thrown: unknown) => thrown)
    expect(failure).toBeInstanceOf(DeliveryError)
    expect(failure).toMatchObject({ mayBeStored: false, cause: { status, code: error } })
    await rig.producer.send('yes')
    expect(rig.producer.stats).toMatchObject({ recordsFailed: 1, recordsStored: 1 })
    expect(await rig.stored()).toEqual(['yes'])
  })

  test('a wrong key is named', async () => {
    await using rig = await Rig.start({ apiKey: secretOf('f') })
    await expect(rig.producer.send('no')).rejects.toMatchObject({ cause: { status: 401 }, mayBeStored: false })
  })

  test('a success that is no receipt never resolves a send', async () => {
    await using rig = await Rig.start()
    for (const body of ['<h1>Welcome</h1>', {}, { node_id: 'n', segment_seq: 1, accepted_records: 2 }]) {
      rig.proxy.script({ status: 202, body })
      await expect(rig.producer.send('x')).rejects.toMatchObject({ mayBeStored: true, cause: { code: 'unexpected_response' } })
    }
    rig.proxy.script({ status: 200, body: { node_id: 'n', segment_seq: 1, accepted_records: 1 } })
    await expect(rig.producer.send('x')).rejects.toMatchObject({ mayBeStored: true })
  })

  test('a batch above the size of a request is split, and only a record that is too large rejects', async () => {
    await using rig = await Rig.start({ compression: 'none' }, { environment: { INLET_MAX_REQUEST_BYTES: '64KiB' } })
    const records = Array.from({ length: 100 }, (_, n) => String(n).padStart(5, '0').repeat(400))
    const large = 'L'.repeat(70_000)
    const sends = [...records.slice(0, 50), large, ...records.slice(50)].map((record) => rig.producer.send(record))
    const ends = await Promise.allSettled(sends)
    expect(ends.flatMap((end, index) => (end.status === 'rejected' ? [index] : []))).toEqual([50])
    expect(ends[50]).toMatchObject({ reason: { mayBeStored: false, cause: { status: 413 } } })
    expect(rig.producer.stats.splits).toBeGreaterThan(2)
    expect(await rig.stored()).toEqual(records)
  })

  test('an attempt that takes too long is repeated, until the time for the delivery is over', async () => {
    await using rig = await Rig.start({ requestTimeoutMs: 50, deliveryTimeoutMs: 3_000 })
    rig.proxy.script('hang')
    await rig.producer.send('late')
    expect(rig.producer.stats.recordsStored).toBe(1)
    // One that is answered late on a busy machine is repeated too.
    expect(rig.producer.stats.requests).toBeGreaterThanOrEqual(2)
    rig.proxy.script(...Array.from({ length: 200 }, () => 'hang' as const))
    const began = performance.now()
    await expect(rig.producer.send('never')).rejects.toMatchObject({ mayBeStored: true, cause: { name: 'TimeoutError' } })
    expect(performance.now() - began).toBeLessThan(6_000)
  })

  test('nobody listens: rejects after its time, and says why', async () => {
    const producer = createProducer({ url: await unusedUrl(), apiKey: 'x', lingerMs: 0, deliveryTimeoutMs: 2_000 })
    const failure = await producer.send('x').catch((thrown: DeliveryError) => thrown)
    expect((failure as DeliveryError).cause).toBeInstanceOf(ConnectionError)
    expect((failure as DeliveryError).message).toContain('ECONNREFUSED')
  })
})

describe('memory', () => {
  /** Holds the first request until `release`. */
  async function stuck(options: Partial<ProducerOptions>) {
    const rig = await Rig.start({ lingerMs: 0, batchRecordsMax: 1, ...options })
    const { promise, resolve: release } = Promise.withResolvers<void>()
    const held = createServer((request, response) => {
      request.resume().on('end', () => {
        const body = JSON.stringify({ node_id: 'n', segment_seq: 1, accepted_records: 1, accepted_bytes: 1 })
        promise.then(() => response.writeHead(202).end(body))
      })
    })
    held.listen(0, '127.0.0.1')
    await once(held, 'listening')
    rig.proxy.target = `http://127.0.0.1:${(held.address() as AddressInfo).port}`
    return { rig, release, [Symbol.dispose]: () => held.close() }
  }

  test('sends wait for room, in order, and `ready` tells', async () => {
    using world = await stuck({ bufferBytesMax: 3_000 })
    await using rig = world.rig
    const ended: number[] = []
    const sends = Array.from({ length: 10 }, (_, n) => rig.producer.send('x'.repeat(1_000)).then(() => ended.push(n)))
    expect(rig.producer.stats).toMatchObject({ recordsPending: 10 })
    expect(rig.producer.stats.bytesBuffered).toBeLessThanOrEqual(3_000)
    let isReady = false
    const ready = rig.producer.ready().then(() => {
      isReady = true
    })
    await until('a request', () => rig.proxy.seen.length === 1)
    expect(isReady).toBe(false)
    world.release()
    await Promise.all(sends)
    await ready
    expect(ended).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(rig.producer.stats).toMatchObject({ bytesBuffered: 0, recordsPending: 0 })
  })

  test('or reject, and a record above the bound goes alone', async () => {
    using world = await stuck({ bufferBytesMax: 3_000, whenFull: 'reject' })
    await using rig = world.rig
    const large = rig.producer.send('x'.repeat(10_000))
    await expect(rig.producer.send('y')).rejects.toBeInstanceOf(BufferFullError)
    world.release()
    await large
    await rig.producer.send('y')
  })

  test('sendAll reads no faster than records are stored, and stops at the first failure', async () => {
    using world = await stuck({ bufferBytesMax: 3_000 })
    await using rig = world.rig
    let read = 0
    async function* records() {
      for (;;) {
        read += 1
        yield 'x'.repeat(1_000)
      }
    }
    const all = rig.producer.sendAll(records())
    await until('a request', () => rig.proxy.seen.length === 1)
    expect(read).toBeLessThan(6)
    rig.proxy.script(refusal(403, 'forbidden'))
    world.release()
    await expect(all).rejects.toMatchObject({ cause: { status: 403 } })
    expect(rig.producer.stats.recordsPending).toBe(0)
  })

  test('close gives up after its time: what was not sent rejects', async () => {
    using world = await stuck({ bufferBytesMax: 3_000 })
    await using rig = world.rig
    const sends = Array.from({ length: 5 }, () => rig.producer.send('x'.repeat(1_000)))
    const ends = Promise.allSettled(sends)
    await until('a request', () => rig.proxy.seen.length === 1)
    await expect(rig.producer.close({ timeoutMs: 50 })).rejects.toBeInstanceOf(TimeoutError)
    const reasons = (await ends).map((end) => end.status === 'rejected' && end.reason)
    expect(reasons[0]).toBeInstanceOf(DeliveryError)
    expect(reasons[0]).toMatchObject({ mayBeStored: true })
    for (const reason of reasons.slice(1)) expect(reason).toBeInstanceOf(ClosedError)
    expect(rig.producer.stats).toMatchObject({ recordsPending: 0, recordsFailed: 5, bytesBuffered: 0 })
    await expect(rig.producer.send('z')).rejects.toBeInstanceOf(ClosedError)
    await rig.producer.ready()
  })
})

test('flush waits for what was sent before it, close for everything', async () => {
  await using rig = await Rig.start({ lingerMs: 60_000 })
  await rig.producer.flush()
  const before = rig.producer.send('before')
  await rig.producer.flush()
  await before
  expect(rig.producer.stats).toMatchObject({ recordsStored: 1 })
  rig.proxy.script('hang')
  const late = rig.producer.send('late')
  await expect(rig.producer.flush({ timeoutMs: 50 })).rejects.toBeInstanceOf(TimeoutError)
  late.catch(() => undefined)
  await using second = await Rig.start({ lingerMs: 60_000 })
  const last = second.producer.send('last')
  await Promise.all([second.producer.close(), second.producer.close()])
  await last
  expect(await second.stored()).toEqual(['last'])
})

test('close waits as long as it takes, if asked to', async () => {
  await using rig = await Rig.start({ lingerMs: 60_000, deliveryTimeoutMs: 10_000 })
  rig.proxy.script(refusal(503, 'unavailable', '0'))
  const sending = rig.producer.send('last')
  await rig.producer.close({ timeoutMs: Number.POSITIVE_INFINITY })
  await sending
  expect(await rig.stored()).toEqual(['last'])
})

test.each([
  [{ url: 'nowhere' }, 'url must be an address'],
  [{ url: 'http://user:secret@x' }, 'url must not have a user or a password'],
  [{ apiKey: 'ing_live_a\ning_live_b' }, 'this is no API key'],
  [{ batchBytesMax: 0 }, 'batchBytesMax must be from 1'],
  [{ concurrency: Number.NaN }, 'concurrency must be from 1 to 256'],
  [{ deliveryTimeoutMs: 86_400_000 }, 'deliveryTimeoutMs must be from 1'],
])('bad options: %j', (options, message) => {
  expect(() => createProducer({ url: 'http://x', apiKey: 'x', ...options })).toThrow(message)
})

const seed = Number(process.env['INLET_TEST_SEED'] ?? randomInt(2 ** 31))

const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.constantFrom<Fault[]>('refuse', 'cut', 'lose-response', 'cut-response', 'hang'),
  fc.constantFrom(
    refusal(503, 'unavailable', '0'),
    refusal(429, 'quota_exceeded', '0'),
    refusal(500, 'internal_error'),
    refusal(413, 'payload_too_large'),
    refusal(422, 'validation_error'),
  ),
)

test(`each record that resolves is stored once, and none that does not (INLET_TEST_SEED=${seed})`, {
  timeout: 600_000,
}, async () => {
  const world = fc.record({
    sizes: fc.array(fc.integer({ min: 1, max: 3_000 }), { minLength: 1, maxLength: 60 }),
    faults: fc.array(fc.option(fault, { freq: 2, nil: undefined }), { maxLength: 12 }),
    concurrency: fc.constantFrom(1, 1, 3),
    batchRecordsMax: fc.integer({ min: 1, max: 20 }),
    bufferBytesMax: fc.constantFrom(1, 5_000, 1_000_000),
    pauses: fc.array(fc.nat(59), { maxLength: 5 }),
  })
  const endpoint = anEndpoint()
  await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }) })
  const expected: string[] = []
  const inOrder: string[][] = []
  const unknown = new Set<string>()
  let run = 0
  await fc.assert(
    fc.asyncProperty(world, async ({ sizes, faults, pauses, ...options }) => {
      run += 1
      await using proxy = await ScriptedProxy.start(node.url)
      // A request without a fault between two faults is passed on.
      proxy.script(...faults.map((each) => each ?? 'pass'))
      const url = proxy.url
      const producer = createProducer({
        ...options,
        url,
        apiKey: secretOf('a'),
        endpoint: endpoint.id,
        lingerMs: 1,
        requestTimeoutMs: 300,
      })
      const records = sizes.map((size, index) => `r${run}-${index}-${'x'.repeat(size)}`)
      const ends: Promise<PromiseSettledResult<unknown>>[] = []
      for (const [index, record] of records.entries()) {
        if (pauses.includes(index)) await producer.flush()
        ends.push(Promise.allSettled([producer.send(record)]).then(([end]) => end))
      }
      await producer.close({ timeoutMs: 60_000 })
      const stored: string[] = []
      for (const [index, end] of (await Promise.all(ends)).entries()) {
        const record = records[index] ?? ''
        if (end.status === 'fulfilled') stored.push(record)
        else if (end.reason.mayBeStored) unknown.add(record)
      }
      expected.push(...stored)
      if (options.concurrency === 1) inOrder.push(stored)
      expect(producer.stats).toMatchObject({ recordsPending: 0, bytesBuffered: 0, recordsStored: stored.length })
    }),
    { numRuns: runs(8, 200), seed },
  )
  const found = (await node.stored(endpoint.id)).flatMap(({ payload }) => payload.toString().trimEnd().split('\n'))
  expect(new Set(found).size).toBe(found.length)
  expect(found.filter((record) => !unknown.has(record)).toSorted()).toEqual(expected.toSorted())
  const places = new Map(found.map((record, place) => [record, place]))
  for (const stored of inOrder) {
    const order = stored.map((record) => places.get(record) ?? -1)
    expect(order).toEqual(order.toSorted((a, b) => a - b))
  }
})

async function unusedUrl(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `http://127.0.0.1:${port}`
}
