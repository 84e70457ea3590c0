import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { until } from '../../../test/support/until.ts'
import { systemClock } from '../clock.ts'
import { systemRandom } from '../random.ts'
import { createLogger } from '../telemetry.ts'
import { createSampler } from './sampler.ts'
import type { Span } from './span.ts'
import { newSpanId, newTraceId, parseTraceparent } from './trace-context.ts'
import { Tracer, type TracerOptions } from './tracer.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'

describe('traceparent', () => {
  test.each([
    [`00-${traceId}-${spanId}-01`, { traceId, spanId, isSampled: true }],
    [`00-${traceId}-${spanId}-00`, { traceId, spanId, isSampled: false }],
    [`cc-${traceId}-${spanId}-03-later`, { traceId, spanId, isSampled: true }],
    [`00-${traceId}-${spanId}-01-later`, undefined],
    [`ff-${traceId}-${spanId}-01`, undefined],
    [`00-${'0'.repeat(32)}-${spanId}-01`, undefined],
    [`00-${traceId}-${'0'.repeat(16)}-01`, undefined],
    [`00-${traceId.toUpperCase()}-${spanId}-01`, undefined],
    ['', undefined],
    [undefined, undefined],
    [[`00-${traceId}-${spanId}-01`], undefined],
  ])('%s', (header, expected) => {
    expect(parseTraceparent(header)).toEqual(expected)
  })
})

describe('the sampler', () => {
  const asked = { traceId, spanId, isSampled: true }
  const notAsked = { traceId, spanId, isSampled: false }

  test.each([
    ['always_on', 0, [true, true, true]],
    ['always_off', 1, [false, false, false]],
    ['parentbased_always_on', 0, [true, true, false]],
    ['parentbased_always_off', 1, [false, true, false]],
    ['parentbased_traceidratio', 0, [false, true, false]],
    ['traceidratio', 1, [true, true, true]],
    ['traceidratio', 0, [false, false, false]],
  ] as const)('%s of %d', (name, ratio, expected) => {
    const sample = createSampler(name, ratio, systemRandom)
    expect([sample(undefined), sample(asked), sample(notAsked)]).toEqual(expected)
  })

  test('a ratio chooses that share of the traces, and the same ones each time', () => {
    const sample = createSampler('traceidratio', 0.25, systemRandom)
    const parents = Array.from({ length: 8_000 }, () => ({ traceId: newTraceId(), spanId, isSampled: false }))
    const chosen = parents.filter(sample)
    expect(chosen.length / parents.length).toBeGreaterThan(0.2)
    expect(chosen.length / parents.length).toBeLessThan(0.3)
    expect(chosen.every(sample)).toBe(true)
  })
})

describe('the tracer', () => {
  let server: Server
  let bodies: string[]
  let respond: (body: string) => number | undefined
  let authorizations: (string | undefined)[]

  beforeEach(async () => {
    bodies = []
    authorizations = []
    respond = () => 200
    server = createServer((request, response) => {
      let body = ''
      request.on('data', (text: Buffer) => {
        body += text
      })
      request.on('end', () => {
        bodies.push(body)
        authorizations.push(request.headers.authorization)
        const status = respond(body)
        if (status !== undefined) response.writeHead(status).end('{}')
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })

  /** On this clock no request takes too long, however busy the machine is. */
  const noHurry = { clock: new ManualClock() }
  const tracerWith = (more: Partial<TracerOptions> = {}) =>
    new Tracer({
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
      headers: { authorization: 'Bearer x' },
      ...{ sampler: 'parentbased_always_on', ratio: 1, serviceName: 'inlet', version: '1', nodeId: 'n', process: 'ingest' },
      ...{ clock: systemClock, random: systemRandom, logger: createLogger('test', 'silent') },
      ...more,
    })
  const aSpan = (): Span => ({
    traceId,
    spanId: newSpanId(),
    name: 'a',
    kind: 'internal',
    startMs: 1_700_000_000_000.25,
    endMs: 0,
  })
  const spansIn = (body: string) => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans

  test('sends spans in the JSON of OTLP, with its headers', async () => {
    const tracer = tracerWith(noHurry)
    const links = [{ traceId, spanId }]
    tracer.record({ ...aSpan(), spanId, kind: 'server', attributes: { n: 7, x: 0.5, ok: true, s: 'a' }, links, error: 'failed' })
    await tracer.stop(AbortSignal.timeout(15_000))
    expect(authorizations).toEqual(['Bearer x'])
    const { resource, scopeSpans } = JSON.parse(bodies[0] ?? '').resourceSpans[0]
    expect(resource.attributes).toContainEqual({ key: 'service.instance.id', value: { stringValue: 'n/ingest' } })
    expect(scopeSpans[0].spans).toEqual([
      {
        ...{ traceId, spanId, name: 'a', kind: 2, links, status: { code: 2, message: 'failed' } },
        ...{ startTimeUnixNano: '1700000000000250000', endTimeUnixNano: '1700000000000250000' },
        attributes: [
          { key: 'n', value: { intValue: '7' } },
          { key: 'x', value: { doubleValue: 0.5 } },
          { key: 'ok', value: { boolValue: true } },
          { key: 's', value: { stringValue: 'a' } },
        ],
      },
    ])
  })

  test('holds a bounded number of spans while nobody takes them, and begins no trace without room', async () => {
    const tracer = tracerWith(noHurry)
    for (let count = 0; count < 10_000; count += 1) tracer.record(aSpan())
    expect(tracer.begin(`00-${traceId}-${spanId}-01`)).toBeUndefined()
    await tracer.stop(AbortSignal.timeout(15_000))
    expect(bodies.flatMap(spansIn)).toHaveLength(4_096)
    expect(Math.max(...bodies.map((body) => spansIn(body).length))).toBe(512)
    expect(tracer.begin(`00-${traceId}-${spanId}-01`)).toMatchObject({ traceId, parentSpanId: spanId })
  })

  test('a receiver that fails costs the spans that it was sent, and the next ones are sent', async () => {
    respond = () => (bodies.length === 1 ? 503 : 200)
    const tracer = tracerWith()
    await tracer.start()
    tracer.record(aSpan())
    await until('the request that fails', () => bodies.length === 1)
    tracer.record(aSpan())
    await until('the next one', () => bodies.length === 2)
    expect(spansIn(bodies[1] ?? '')).toHaveLength(1)
    await tracer.stop(AbortSignal.timeout(5_000))
  })

  test('a receiver that never responds does not hold a stop', async () => {
    respond = () => undefined
    const tracer = tracerWith()
    tracer.record(aSpan())
    const signal = AbortSignal.timeout(15_000)
    await tracer.stop(signal)
    expect([bodies.length, signal.aborted]).toEqual([1, false])
  })

  test('begins a bounded number of traces in a second', () => {
    const clock = new ManualClock()
    const tracer = tracerWith({ clock })
    const begin = () => Array.from({ length: 500 }, () => tracer.begin(undefined)).filter((span) => span !== undefined)
    expect(begin()).toHaveLength(200)
    clock.advance(1_000)
    const spans = begin()
    expect(spans).toHaveLength(200)
    expect(new Set(spans.map((span) => span.traceId)).size).toBe(200)
  })
})
