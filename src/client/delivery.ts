/**
 * Brings a batch of records to ingest.
 *
 * Owns: requests, compression, attempts under one idempotency key, how a batch that is too large is split.
 * Law: records are reported as stored only after a 202 that counts all of them. Every attempt of a batch has the same key and the same
 * bytes. A batch is split only if none of its attempts can have been stored.
 */
import { Backoff } from '#lib/retry.ts'
import { baseOf } from './address.ts'
import { isApiKey } from './api-key.ts'
import { Bound } from './bound.ts'
import { ApiError, errorOf, InletError, isTransient, noResponse, TimeoutError } from './errors.ts'
import type { Fetch } from './sender.ts'

/** Where records were stored: `listCommits(endpoint, { node_id, segment_seq })` finds their commit. */
export type Receipt = { readonly node_id: string; readonly segment_seq: number }

/** The records of a batch were not acknowledged. `cause` is the last failure. */
export class DeliveryError extends InletError {
  override readonly name = 'DeliveryError'
  /** Whether an attempt was stored although its response was lost. If so, sending the records again may store them twice. */
  readonly mayBeStored: boolean
  readonly idempotencyKey: string

  constructor(cause: unknown, { mayBeStored, idempotencyKey }: Pick<DeliveryError, 'mayBeStored' | 'idempotencyKey'>) {
    super(`not acknowledged: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.mayBeStored = mayBeStored
    this.idempotencyKey = idempotencyKey
  }
}

export type DeliveryOptions = {
  readonly url: string | URL
  readonly apiKey: string
  readonly endpoint?: string | undefined
  readonly compression: 'gzip' | 'none'
  readonly requestTimeoutMs: number
  /** Undefined: what the endpoint says. */
  readonly acknowledgement?: 'disk' | 'copied' | undefined
  readonly fetch: Fetch
  /** Called before each repetition. */
  readonly onRetry?: (failure: unknown, delayMs: number) => void
}

export type Batch = {
  readonly idempotencyKey: string
  /** Lines with their line feeds. They must not change. */
  readonly lines: readonly Uint8Array<ArrayBuffer>[]
  /** Until when attempts are made. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/** Consecutive records of a batch that had the same end. */
export type Part = { readonly count: number } & (Stored | { readonly error: DeliveryError })

/** `isReplay`: an earlier request with the same key had stored it. */
type Stored = { readonly receipt: Receipt; readonly isReplay: boolean }

export type DeliveryCounters = { requests: number; retries: number; replays: number; splits: number; bytesSent: number }

const delays = { delayMsMin: 100, delayMsMax: 10_000 } as const
/** Smaller bodies are not worth it. */
const compressedBytesMin = 512

export class Delivery {
  readonly counters: DeliveryCounters = { requests: 0, retries: 0, replays: 0, splits: 0, bytesSent: 0 }
  readonly #options: DeliveryOptions
  readonly #url: URL
  /** The server asked to send nothing before. */
  #notBefore = 0

  constructor(options: DeliveryOptions) {
    if (!isApiKey(options.apiKey))
      throw new InletError('this is no API key: it is empty, or has a space, a line break or a character outside ASCII')
    this.#options = options
    this.#url = new URL('v1/ingest', baseOf(options.url))
    if (options.endpoint !== undefined) this.#url.searchParams.set('endpoint', options.endpoint)
  }

  /** Returns how each part of the batch ended, in order. Never throws. */
  async deliver(batch: Batch): Promise<readonly Part[]> {
    if (batch.timeoutMs <= 0) return [{ count: batch.lines.length, error: tooLate(batch) }]
    const bound = new Bound('sending a batch', batch.timeoutMs, batch.signal)
    try {
      return await this.#deliverWithin(bound, batch.lines, batch.idempotencyKey)
    } finally {
      bound.release()
    }
  }

  async #deliverWithin(bound: Bound, lines: Batch['lines'], idempotencyKey: string): Promise<readonly Part[]> {
    try {
      if (this.#restMs > 0) await bound.pause(this.#restMs)
      return [{ count: lines.length, ...(await this.#send(bound, lines, idempotencyKey)) }]
    } catch (error) {
      const failure = error instanceof DeliveryError ? error : new DeliveryError(error, { mayBeStored: false, idempotencyKey })
      const isTooLarge = failure.cause instanceof ApiError && failure.cause.status === 413
      if (!isTooLarge || failure.mayBeStored || lines.length === 1) return [{ count: lines.length, error: failure }]
      this.counters.splits += 1
      const middle = lines.length >> 1
      return [
        ...(await this.#deliverWithin(bound, lines.slice(0, middle), `${idempotencyKey}.0`)),
        ...(await this.#deliverWithin(bound, lines.slice(middle), `${idempotencyKey}.1`)),
      ]
    }
  }

  /** Sends until there is a receipt. Throws a DeliveryError. */
  async #send(bound: Bound, lines: Batch['lines'], idempotencyKey: string): Promise<Stored> {
    const backoff = new Backoff(delays)
    const { body, encoding } = await this.#encode(lines)
    let mayBeStored = false
    let failure: unknown
    // If the time is over, the failure before it says more.
    const giveUp = (error: unknown) => {
      const cause = error instanceof TimeoutError ? (failure ?? error) : error
      return new DeliveryError(cause, { mayBeStored, idempotencyKey })
    }
    for (;;) {
      try {
        return await this.#attempt(bound, body, encoding, idempotencyKey, lines.length)
      } catch (error) {
        mayBeStored ||= isAmbiguous(error)
        if (bound.signal.aborted || !isTransient(error)) throw giveUp(error)
        this.counters.retries += 1
        const askedMs = error instanceof ApiError ? 1000 * (error.retryAfterSeconds ?? 0) : 0
        this.#notBefore = Math.max(this.#notBefore, performance.now() + askedMs)
        const delayMs = Math.max(backoff.next(), this.#restMs)
        if (delayMs >= bound.remainingMs) throw giveUp(error)
        failure = error
        this.#options.onRetry?.(error, delayMs)
        await bound.pause(delayMs).catch((reason: unknown) => Promise.reject(giveUp(reason)))
      }
    }
  }

  /** How long the server asked to send nothing. */
  get #restMs(): number {
    return Math.max(0, this.#notBefore - performance.now())
  }

  async #attempt(
    bound: Bound,
    body: Uint8Array<ArrayBuffer>,
    encoding: Readonly<Record<string, string>>,
    idempotencyKey: string,
    count: number,
  ): Promise<Stored> {
    const { apiKey, requestTimeoutMs, acknowledgement, fetch } = this.#options
    const attempt = new Bound('a request', Math.min(requestTimeoutMs, bound.remainingMs), bound.signal)
    const headers = {
      'x-api-key': apiKey,
      'content-type': 'application/x-ndjson',
      'idempotency-key': idempotencyKey,
      ...(acknowledgement === undefined ? {} : { 'inlet-ack': acknowledgement }),
      ...encoding,
    }
    this.counters.requests += 1
    this.counters.bytesSent += body.length
    try {
      const init = { method: 'POST', headers, body, signal: attempt.signal, redirect: 'manual' as const }
      const response = await fetch(this.#url.href, init)
      if (response.status !== 202) throw await errorOf(response)
      const receipt = await receiptOf(response, count)
      const isReplay = response.headers.get('idempotent-replayed') === 'true'
      if (isReplay) this.counters.replays += 1
      return { receipt, isReplay }
    } catch (error) {
      if (error instanceof ApiError) throw error
      bound.throwIfOver(error)
      attempt.throwIfOver(error)
      throw noResponse(this.#url, error)
    } finally {
      attempt.release()
    }
  }

  async #encode(lines: Batch['lines']) {
    const body = join(lines)
    if (this.#options.compression === 'none' || body.length < compressedBytesMin) return { body, encoding: {} }
    const compressed = new Response(new Blob([body]).stream().pipeThrough(new CompressionStream('gzip')))
    return { body: new Uint8Array(await compressed.arrayBuffer()), encoding: { 'content-encoding': 'gzip' } }
  }
}

function tooLate({ idempotencyKey }: Batch): DeliveryError {
  const cause = new TimeoutError('earlier batches took all the time for their delivery')
  return new DeliveryError(cause, { mayBeStored: false, idempotencyKey })
}

function join(lines: Batch['lines']): Uint8Array<ArrayBuffer> {
  const body = new Uint8Array(lines.reduce((sum, line) => sum + line.length, 0))
  let offset = 0
  for (const line of lines) {
    body.set(line, offset)
    offset += line.length
  }
  return body
}

/** Throws an ApiError for anything but a receipt for that many records: some other server responded. */
async function receiptOf(response: Response, count: number): Promise<Receipt> {
  const { node_id, segment_seq, accepted_records } = parseObject(await response.text())
  if (typeof node_id === 'string' && typeof segment_seq === 'number' && accepted_records === count)
    return { node_id, segment_seq }
  const detail = `the response is no receipt for ${count} records: check that the address is that of an Inlet node`
  throw new ApiError({ status: response.status, code: 'unexpected_response', detail })
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    return { ...JSON.parse(text) }
  } catch {
    return {}
  }
}

/** Whether the records may be stored all the same. */
function isAmbiguous(error: unknown): boolean {
  if (!(error instanceof ApiError)) return true
  return error.status < 300 || error.status === 408 || error.status >= 500
}
