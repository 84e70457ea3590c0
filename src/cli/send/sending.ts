/** Sends batches of lines, several at a time, and counts what is stored. */
import { createHash } from 'node:crypto'
import type { Delivery, DeliveryError, Part, Receipt } from '#client/delivery.ts'
import { UserError } from '#lib/user-error.ts'
import type { LineBatch } from './batches.ts'

type SendingOptions = {
  readonly parallel: number
  readonly timeoutMs: number
  readonly salt: string
  /** Called with the first failure. */
  readonly onFailure?: (failure: Error) => void
}

/** Told after each batch that is stored: the bytes of the stream up to its end, and all records so far. */
export type SendProgress = { readonly advance: (end: number, records: number) => void }

export class Sending {
  stored = 0
  replayed = 0
  readonly #segments = new Map<string, Receipt>()
  readonly #delivery: Delivery
  readonly #progress: SendProgress
  readonly #options: SendingOptions
  readonly #stopping = new AbortController()
  #failure: Error | undefined

  constructor(delivery: Delivery, progress: SendProgress, options: SendingOptions) {
    this.#delivery = delivery
    this.#progress = progress
    this.#options = options
  }

  get summary() {
    const segments = [...this.#segments.values()]
    return { records: this.stored, replayed_records: this.replayed, bytes_sent: this.#delivery.counters.bytesSent, segments }
  }

  stop(reason: UserError): void {
    this.#stopping.abort(reason)
  }

  /** Sends all batches. Throws the first failure, after the batches on their way have ended. */
  async run(batches: AsyncIterable<LineBatch>): Promise<void> {
    const inFlight = new Set<Promise<void>>()
    let digest = createHash('sha256').update(this.#options.salt).digest()
    try {
      for await (const batch of batches) {
        // The key follows from everything up to here, so equal batches at different places have different keys.
        const hash = createHash('sha256').update(digest)
        for (const line of batch.lines) hash.update(line)
        digest = hash.digest()
        while (inFlight.size >= this.#options.parallel) await Promise.race(inFlight)
        if (this.#failure !== undefined || this.#stopping.signal.aborted) break
        const delivering = this.#deliver(batch, digest.toString('base64url')).finally(() => inFlight.delete(delivering))
        inFlight.add(delivering)
      }
    } finally {
      await Promise.all(inFlight)
    }
    if (this.#failure !== undefined) throw this.#failure
    this.#stopping.signal.throwIfAborted()
  }

  async #deliver({ lines, firstLine, end }: LineBatch, idempotencyKey: string): Promise<void> {
    const { timeoutMs } = this.#options
    const parts = await this.#delivery.deliver({ idempotencyKey, lines, timeoutMs, signal: this.#stopping.signal })
    let line = firstLine
    for (const part of parts) {
      this.#count(part, line)
      line += part.count
    }
    if (this.#failure === undefined) this.#progress.advance(end, this.stored)
  }

  #count(part: Part, line: number): void {
    if ('error' in part) {
      if (this.#failure !== undefined) return
      this.#failure = failureOf(part.error, line)
      this.#options.onFailure?.(this.#failure)
      return
    }
    const { node_id, segment_seq } = part.receipt
    this.stored += part.count
    if (part.isReplay) this.replayed += part.count
    this.#segments.set(`${node_id} ${segment_seq}`, part.receipt)
  }
}

function failureOf(error: DeliveryError, line: number): UserError {
  if (error.cause instanceof UserError) return error.cause
  return new UserError(`the records from line ${line} on were ${error.message}`)
}
