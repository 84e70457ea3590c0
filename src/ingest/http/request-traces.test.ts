import { beforeEach, expect, test } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import type { Span } from '#lib/tracing/span.ts'
import { newSpanId, newTraceId } from '#lib/tracing/trace-context.ts'
import type { LinkedSegment } from '#node/trace-links.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { RequestTraces } from './request-traces.ts'

let spans: Span[]
let written: { readonly segment: LinkedSegment; readonly links: number }[]
let clock: ManualClock
let traces: RequestTraces
beforeEach(() => {
  spans = []
  written = []
  clock = new ManualClock()
  traces = new RequestTraces({
    tracer: {
      begin: (traceparent) =>
        traceparent === undefined ? undefined : { traceId: newTraceId(), spanId: newSpanId(), parentSpanId: undefined },
      record: (...recorded) => void spans.push(...recorded),
    },
    links: {
      write: async (segment, links) => void written.push({ segment, links: links.length }),
    },
    nodeId: 'node',
    ...{ clock, logger: createLogger('test', 'silent') },
  })
})

const begin = (traceparent?: string) =>
  traces.begin(traceparent, { endpointId: 'endpoint', startedAtMs: clock.monotonic(), records: 2, bytes: 9 })
const sealed = (seq: number) => traces.sealed({ logName: 'endpoint', incarnation: 'abcdefghij', seq })

test('a request that is not traced has no spans', () => {
  expect(begin()).toBeUndefined()
  expect(spans).toEqual([])
})

test('an append has the time until the records are durable, and not that of the response', () => {
  const trace = begin('any')
  const startedAtMs = clock.monotonic()
  clock.advance(5)
  trace?.appended({ seq: 3, sync: { startedAtMs: startedAtMs + 1, endedAtMs: startedAtMs + 4 } })
  clock.advance(7)
  trace?.end(202)
  expect(spans.map(({ name, startMs, endMs }) => [name, endMs - startMs])).toEqual([
    ['ingest', 12],
    ['append', 5],
    ['fsync', 3],
  ])
  expect(spans[0]).toMatchObject({ attributes: { 'inlet.segment_seq': 3 }, error: undefined })
})

test('a request that was not stored is an error, and links to no segment', () => {
  begin('any')?.end(503)
  sealed(0)
  expect(spans.map(({ name, error }) => [name, error !== undefined])).toEqual([
    ['ingest', true],
    ['append', false],
  ])
  expect(written).toEqual([])
})

test('a segment gets the links of its own requests once, and not more than it keeps', () => {
  for (let count = 0; count < 100; count += 1) begin('any')?.appended({ seq: 1 })
  begin('any')?.appended({ seq: 2 })
  for (const seq of [1, 2, 1]) sealed(seq)
  expect(written.map(({ segment, links }) => [segment.seq, links])).toEqual([
    [1, 32],
    [2, 1],
  ])
})
