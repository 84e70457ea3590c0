/**
 * Spans of segments that have records of traced requests: one trace for each, from the conversion to the commit, linked to the requests.
 *
 * Owns: what these spans say, and when a trace is complete. Does not own: the links (node/trace-links.ts), the stages.
 * Law: a segment without such requests has no spans. The links are read at the end: by then ingest has written them.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '#lib/clock.ts'
import type { Span } from '#lib/tracing/span.ts'
import { newSpanId, newTraceId } from '#lib/tracing/trace-context.ts'
import type { Tracer } from '#lib/tracing/tracer.ts'
import type { TraceLinks } from '#node/trace-links.ts'
import type { SegmentFacts } from './segments/delivery-run.ts'

/** Segments whose commits are not recorded yet. Those above are not traced. */
const segmentsMax = 1_000
/** Stages of a segment, attempts that failed included. */
const stagesMax = 64

type Stage = { readonly name: string; readonly startMs: number; readonly endMs: number; readonly failed: boolean }

export type SegmentTracesOptions = {
  readonly tracer: Pick<Tracer, 'record'>
  readonly links: Pick<TraceLinks, 'take'>
  readonly clock: Clock
}

export class SegmentTraces {
  readonly #options: SegmentTracesOptions
  /** By the id of the commit. */
  readonly #traces = new LRUCache<string, SegmentTrace>({ max: segmentsMax })

  constructor(options: SegmentTracesOptions) {
    this.#options = options
  }

  /** Begins a trace, or continues that of an earlier attempt. */
  begin(facts: SegmentFacts): SegmentTrace {
    const trace = this.#traces.get(facts.id) ?? new SegmentTrace(facts, this.#options.clock)
    this.#traces.set(facts.id, trace)
    return trace
  }

  /** Control has recorded the commit: the trace is complete. Never throws. */
  async recorded(id: string): Promise<void> {
    const trace = this.#traces.get(id)
    if (trace === undefined) return
    this.#traces.delete(id)
    const { tracer, links } = this.#options
    const { endpointId, incarnation, seq } = trace.facts.name
    const requests = await links.take({ logName: endpointId, incarnation, seq }).catch(() => [])
    if (requests.length > 0) tracer.record(...trace.end(requests))
  }
}

export class SegmentTrace {
  readonly facts: SegmentFacts
  readonly #clock: Clock
  readonly #startMs: number
  readonly #stages: Stage[] = []
  #committedMs: number | undefined

  constructor(facts: SegmentFacts, clock: Clock) {
    this.facts = facts
    this.#clock = clock
    this.#startMs = clock.monotonic()
  }

  /** Measures a stage that has just begun. */
  async measure<T>(name: string, work: Promise<T>): Promise<T> {
    const startMs = this.#clock.monotonic()
    let failed = true
    try {
      const result = await work
      failed = false
      return result
    } finally {
      const endMs = this.#clock.monotonic()
      if (this.#stages.length < stagesMax) this.#stages.push({ name, startMs, endMs, failed })
      this.#committedMs = endMs
    }
  }

  /** Returns the spans. */
  end(links: Span['links'] & object): Span[] {
    const { id, name, records, walBytes } = this.facts
    const now = this.#clock.monotonic()
    const epochMs = this.#clock.now() - now
    const [traceId, spanId] = [newTraceId(), newSpanId()]
    const stages = [...this.#stages, { name: 'record', startMs: this.#committedMs ?? now, endMs: now, failed: false }]
    const children = stages.map(
      ({ name, startMs, endMs, failed }): Span => ({
        ...{ traceId, spanId: newSpanId(), parentSpanId: spanId, name, kind: 'internal' },
        ...{ startMs: epochMs + startMs, endMs: epochMs + endMs, error: failed ? `${name} failed` : undefined },
      }),
    )
    const attributes = {
      'inlet.endpoint_id': name.endpointId,
      'inlet.node_id': name.nodeId,
      'inlet.segment_seq': name.seq,
      'inlet.commit_id': id,
      'inlet.records': records,
      'inlet.bytes': walBytes,
    }
    const whole: Span = {
      ...{ traceId, spanId, name: 'deliver segment', kind: 'internal', attributes, links },
      ...{ startMs: epochMs + this.#startMs, endMs: epochMs + now },
    }
    return [whole, ...children]
  }
}
