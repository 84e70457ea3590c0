/**
 * Spans of traced requests: the acknowledgement, with the append and its fdatasync.
 *
 * Owns: what these spans say, and the links of a segment until it is sealed. Does not own: which requests are traced (lib/tracing).
 * Law: spans have ids, counts and times, and nothing that a client sent but its trace id.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Span } from '#lib/tracing/span.ts'
import { newSpanId, type SpanContext } from '#lib/tracing/trace-context.ts'
import type { TracedSpan, Tracer } from '#lib/tracing/tracer.ts'
import type { Appended } from '#log/log-writer.ts'
import { type LinkedSegment, linksMax, type TraceLinks } from '#node/trace-links.ts'

/** Open segments whose requests are remembered. */
const segmentsMax = 10_000

export type TracedRequest = {
  readonly endpointId: string
  /** When its head arrived, on the monotonic clock. */
  readonly startedAtMs: number
  readonly records: number
  readonly bytes: number
}

export type RequestTracesOptions = {
  readonly tracer: Pick<Tracer, 'begin' | 'record'>
  readonly links: Pick<TraceLinks, 'write'>
  readonly nodeId: string
  readonly clock: Clock
  readonly logger: Logger
}

export class RequestTraces {
  readonly #options: RequestTracesOptions
  /** By log and seq. */
  readonly #requests = new LRUCache<string, SpanContext[]>({ max: segmentsMax })

  constructor(options: RequestTracesOptions) {
    this.#options = options
  }

  /** Call it when the records of a request are about to be appended. Returns undefined if the request is not traced. */
  begin(traceparent: unknown, request: TracedRequest): RequestTrace | undefined {
    const { tracer, nodeId, clock } = this.#options
    const span = tracer.begin(traceparent)
    if (span === undefined) return undefined
    return new RequestTrace(span, request, {
      ...{ nodeId, clock },
      record: (spans) => tracer.record(...spans),
      link: ({ seq }) => this.#link(`${request.endpointId}/${seq}`, { traceId: span.traceId, spanId: span.spanId }),
    })
  }

  /** Hands the links of a sealed segment to delivery. */
  sealed(segment: LinkedSegment): void {
    const { links, clock, logger } = this.#options
    const key = `${segment.logName}/${segment.seq}`
    const requests = this.#requests.get(key)
    if (requests === undefined) return
    this.#requests.delete(key)
    links
      .write(segment, requests, clock.now())
      .catch((error: unknown) => logger.debug({ err: error }, 'links of a segment not written'))
  }

  #link(key: string, request: SpanContext): void {
    const requests = this.#requests.get(key)
    if (requests === undefined) this.#requests.set(key, [request])
    else if (requests.length < linksMax) requests.push(request)
  }
}

type RequestTraceOptions = {
  readonly nodeId: string
  readonly record: (spans: readonly Span[]) => void
  readonly link: (appended: Appended) => void
  readonly clock: Clock
}

export class RequestTrace {
  readonly #span: TracedSpan
  readonly #request: TracedRequest
  readonly #options: RequestTraceOptions
  readonly #appendedAtMs: number
  #endedAtMs: number | undefined
  #sync: Appended['sync']
  #seq: number | undefined

  constructor(span: TracedSpan, request: TracedRequest, options: RequestTraceOptions) {
    this.#span = span
    this.#request = request
    this.#options = options
    this.#appendedAtMs = options.clock.monotonic()
  }

  /** The records are durable. */
  readonly appended = (appended: Appended): void => {
    if (this.#seq === undefined) this.#options.link(appended)
    this.#endedAtMs ??= this.#options.clock.monotonic()
    this.#seq = appended.seq
    this.#sync ??= appended.sync
  }

  /** The response was sent. */
  end(status: number): void {
    const { nodeId, record, clock } = this.#options
    const { endpointId, startedAtMs, records, bytes } = this.#request
    const { traceId, spanId } = this.#span
    const now = clock.monotonic()
    const epochMs = clock.now() - now
    const child = (name: string, parentSpanId: string, fromMs: number, toMs: number): Span => ({
      ...{ traceId, spanId: newSpanId(), parentSpanId, name, kind: 'internal' },
      ...{ startMs: epochMs + fromMs, endMs: epochMs + toMs },
    })
    const append = child('append', spanId, this.#appendedAtMs, this.#endedAtMs ?? now)
    const attributes = {
      'http.request.method': 'POST',
      'http.response.status_code': status,
      'inlet.endpoint_id': endpointId,
      'inlet.node_id': nodeId,
      'inlet.records': records,
      'inlet.bytes': bytes,
      // Without a seq it was not stored, or had been before.
      ...(this.#seq === undefined ? {} : { 'inlet.segment_seq': this.#seq }),
    }
    const whole: Span = {
      ...{ ...this.#span, name: 'ingest', kind: 'server', attributes },
      ...{
        startMs: epochMs + startedAtMs,
        endMs: epochMs + now,
        error: status < 400 ? undefined : 'the records were not stored',
      },
    }
    const sync = this.#sync && child('fsync', append.spanId, this.#sync.startedAtMs, this.#sync.endedAtMs)
    record(sync === undefined ? [whole, append] : [whole, append, sync])
  }
}
