/**
 * Paces requests to destinations whose last request failed.
 *
 * Owns: which destinations are failing, the reason, and when the next request may be sent. Does not own: the requests.
 * Law: however many segments wait for a failing destination, one request at a time is sent to it, after the destination's own back-off.
 * One success of the access that failed (read or write) ends the outage, and all waiters resume at once.
 */
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Random } from '#lib/random.ts'
import { Backoff } from '#lib/retry.ts'
import { Semaphore } from '#lib/semaphore.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { deliveryLimits } from '../segments/limits.ts'
import type { Access, Bucket } from './bucket.ts'

export type Outage = {
  /** The message of the last failure. */
  readonly reason: string
  /** Aborts when the outage is over. */
  readonly over: AbortSignal
  /** Waits until the caller alone may send a request, or until the outage is over. Throws the signal's reason if it aborts first. */
  readonly acquire: (signal: AbortSignal) => Promise<Disposable>
}

type Entry = {
  readonly access: Access
  reason: string
  /** On the monotonic clock. */
  notBefore: number
  readonly backoff: Backoff
  readonly queue: Semaphore
  readonly over: AbortController
}

export class DestinationBackoff {
  readonly #clock: Clock
  readonly #random: Random
  readonly #entries = new Map<string, Entry>()

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = clock
    this.#random = random
  }

  find(destinationId: string): Outage | undefined {
    const entry = this.#entries.get(destinationId)
    if (entry === undefined) return undefined
    return { reason: entry.reason, over: entry.over.signal, acquire: (signal) => this.#acquire(entry, signal) }
  }

  recordFailure(destinationId: string, access: Access, error: unknown): void {
    const { retryDelayMsMin: delayMsMin, retryDelayMsMax: delayMsMax } = deliveryLimits
    const backoff = new Backoff({ delayMsMin, delayMsMax, random: this.#random })
    const fresh = { access, reason: '', notBefore: 0, backoff, queue: new Semaphore(1), over: new AbortController() }
    const entry = this.#entries.get(destinationId) ?? fresh
    entry.reason = errorMessage(error)
    const now = this.#clock.monotonic()
    // Requests that were in flight when the outage began count as one failure with it.
    if (entry.notBefore <= now) entry.notBefore = now + entry.backoff.next()
    this.#entries.set(destinationId, entry)
  }

  recordSuccess(destinationId: string, access: Access): void {
    const entry = this.#entries.get(destinationId)
    if (entry?.access !== access) return
    this.#entries.delete(destinationId)
    entry.over.abort()
  }

  /** Opens a bucket whose requests wait for a permit during an outage, report its reason, and record their outcome. */
  pace(
    destinationId: string,
    open: () => ObjectStore,
    { report, signal }: { readonly report: (reason: string) => void; readonly signal: AbortSignal },
  ): Bucket {
    return {
      request: async (access, send) => {
        const outage = this.find(destinationId)
        if (outage !== undefined) report(outage.reason)
        using _permit = await outage?.acquire(signal)
        try {
          const result = await send(open())
          this.recordSuccess(destinationId, access)
          return result
        } catch (error) {
          if (!signal.aborted) this.recordFailure(destinationId, access, error)
          throw error
        }
      },
    }
  }

  async #acquire(entry: Entry, signal: AbortSignal): Promise<Disposable> {
    const held = await entry.queue.acquire(1, signal)
    const waitMs = entry.notBefore - this.#clock.monotonic()
    if (waitMs > 0) await sleep(this.#clock, waitMs, AbortSignal.any([signal, entry.over.signal]))
    if (!signal.aborted) return held
    held[Symbol.dispose]()
    throw signal.reason
  }
}
