/**
 * Sends spans to a receiver of OpenTelemetry, as JSON over HTTP.
 *
 * Owns: which requests are traced, the spans that wait, and their sending. Does not own: what a span says.
 * Law: it never delays or fails what it traces. Spans that wait are bounded: while the receiver is slow or away, spans are dropped and
 * counted in the log, and no request is traced while there is no room.
 */
import type { Clock } from '../clock.ts'
import { Periodic } from '../periodic.ts'
import type { Random } from '../random.ts'
import type { Service } from '../service.ts'
import type { Logger } from '../telemetry.ts'
import { ThrottledWarnings } from '../throttled-warnings.ts'
import { createSampler, type Sampler } from './sampler.ts'
import { type Attributes, encodeSpans, type Span } from './span.ts'
import { newSpanId, newTraceId, parseTraceparent, type SpanContext } from './trace-context.ts'

const limits = {
  spansWaitingMax: 4_096,
  spansInRequestMax: 512,
  /** Requests of which a process begins a trace. More would cost more than they tell. */
  tracesPerSecondMax: 200,
  sendIntervalMs: 1_000,
  sendTimeoutMs: 5_000,
  stopTimeoutMs: 1_000,
  retryMsMax: 30_000,
  warnIntervalMs: 60_000,
} as const

export type TracerOptions = {
  /** URL of the receiver; spans go to `/v1/traces` below it. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly sampler: Sampler
  readonly ratio: number
  readonly serviceName: string
  readonly version: string
  readonly nodeId: string
  readonly process: string
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

/** A new span of a traced request. */
export type TracedSpan = SpanContext & { readonly parentSpanId: string | undefined }

export class Tracer implements Service {
  readonly name = 'traces'
  readonly #options: TracerOptions
  readonly #url: string
  readonly #resource: Attributes
  readonly #isSampled: ReturnType<typeof createSampler>
  readonly #warnings: ThrottledWarnings
  readonly #sends: Periodic
  #waiting: Span[] = []
  #dropped = 0
  #second = Number.NEGATIVE_INFINITY
  #begunInSecond = 0

  constructor(options: TracerOptions) {
    const { url, sampler, ratio, serviceName, version, nodeId, process, clock, random, logger } = options
    this.#options = options
    this.#url = `${url.replace(/\/+$/, '')}/v1/traces`
    this.#resource = {
      'service.name': serviceName,
      'service.version': version,
      'service.instance.id': `${nodeId}/${process}`,
      'inlet.process': process,
    }
    this.#isSampled = createSampler(sampler, ratio, random)
    this.#warnings = new ThrottledWarnings({ clock, logger, intervalMs: limits.warnIntervalMs })
    this.#sends = new Periodic({
      name: this.name,
      intervalMs: limits.sendIntervalMs,
      run: (signal) => this.#sendWaiting(signal),
      failureDelay: { msMax: limits.retryMsMax, random },
      failure: 'spans not sent to the receiver of traces',
      recovery: 'spans sent again',
      level: 'warn',
      clock,
      logger,
    })
  }

  start(): Promise<void> {
    return this.#sends.start()
  }

  /** Sends what waits, if the receiver takes it at once. */
  async stop(signal: AbortSignal): Promise<void> {
    await this.#sends.stop()
    const soon = AbortSignal.any([signal, this.#options.clock.timeout(limits.stopTimeoutMs)])
    await this.#sendWaiting(soon).catch(() => undefined)
  }

  /** Returns a span for a request with this `traceparent`, undefined if it is not traced. */
  begin(traceparent: unknown): TracedSpan | undefined {
    const parent = parseTraceparent(traceparent)
    if (!this.#isSampled(parent) || !this.#takeTurn()) return undefined
    return { traceId: parent?.traceId ?? newTraceId(), spanId: newSpanId(), parentSpanId: parent?.spanId }
  }

  record(...spans: readonly Span[]): void {
    if (this.#waiting.length + spans.length > limits.spansWaitingMax) this.#dropped += spans.length
    else this.#waiting.push(...spans)
  }

  #takeTurn(): boolean {
    if (this.#waiting.length >= limits.spansWaitingMax) return false
    const second = Math.floor(this.#options.clock.monotonic() / 1_000)
    if (second !== this.#second) this.#begunInSecond = 0
    this.#second = second
    this.#begunInSecond += 1
    return this.#begunInSecond <= limits.tracesPerSecondMax
  }

  /** Throws if the receiver does not take spans. Those that were sent are not sent again: it may have some of them. */
  async #sendWaiting(signal: AbortSignal): Promise<void> {
    if (this.#dropped > 0) this.#warnings.warn('dropped', { dropped: this.#dropped }, 'spans dropped, too many waited')
    this.#dropped = 0
    while (this.#waiting.length > 0) {
      const spans = this.#waiting.slice(0, limits.spansInRequestMax)
      this.#waiting = this.#waiting.slice(spans.length)
      await this.#send(spans, signal)
    }
  }

  async #send(spans: readonly Span[], signal: AbortSignal): Promise<void> {
    const { headers, version, clock } = this.#options
    const response = await fetch(this.#url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: encodeSpans(spans, this.#resource, version),
      redirect: 'error',
      signal: AbortSignal.any([signal, clock.timeout(limits.sendTimeoutMs)]),
    })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`the receiver of traces returned HTTP ${response.status}`)
  }
}
