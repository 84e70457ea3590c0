/**
 * Destinations that failed last.
 *
 * Owns: which they are, why, and how often one is tried. Does not own: what is asked of them.
 * Law: however much waits for a destination in trouble, one request at a time tries it, after a back-off of the destination's own. One
 * success of what had failed, reading or writing, ends the trouble, and all who wait for that learn it at once.
 */
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { Backoff } from '#lib/retry.ts'
import { Semaphore } from '#lib/semaphore.ts'
import { deliveryLimits } from '#model/limits.ts'

export type Trouble = {
  /** In words, of the last failure. */
  readonly reason: string
  /** Aborts when it is over. */
  readonly over: AbortSignal
  /** Waits until it may be tried, by this caller alone, or until it is over. Throws the signal's reason if it aborts first. */
  readonly turn: (signal: AbortSignal) => Promise<Disposable>
}

/** Roles and buckets may let one pass and not the other. */
export type Access = 'read' | 'write'

type Entry = {
  readonly access: Access
  reason: string
  /** Of the monotonic clock. */
  notBefore: number
  readonly backoff: Backoff
  readonly line: Semaphore
  readonly over: AbortController
}

export class Troubles {
  readonly #clock: Clock
  readonly #entries = new Map<string, Entry>()

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock
  }

  find(place: string): Trouble | undefined {
    const entry = this.#entries.get(place)
    if (entry === undefined) return undefined
    return { reason: entry.reason, over: entry.over.signal, turn: (signal) => this.#turn(entry, signal) }
  }

  failed(place: string, access: Access, error: unknown): void {
    const backoff = new Backoff({ delayMsMin: deliveryLimits.retryDelayMsMin, delayMsMax: deliveryLimits.retryDelayMsMax })
    const fresh = { access, reason: '', notBefore: 0, backoff, line: new Semaphore(1), over: new AbortController() }
    const entry = this.#entries.get(place) ?? fresh
    entry.reason = errorMessage(error)
    const now = this.#clock.monotonic()
    // What was on its way when it began fails with it, which is one failure.
    if (entry.notBefore <= now) entry.notBefore = now + entry.backoff.next()
    this.#entries.set(place, entry)
  }

  succeeded(place: string, access: Access): void {
    const entry = this.#entries.get(place)
    if (entry?.access !== access) return
    this.#entries.delete(place)
    entry.over.abort()
  }

  async #turn(entry: Entry, signal: AbortSignal): Promise<Disposable> {
    const held = await entry.line.acquire(1, signal)
    const waitMs = entry.notBefore - this.#clock.monotonic()
    if (waitMs > 0) await sleep(this.#clock, waitMs, AbortSignal.any([signal, entry.over.signal]))
    if (!signal.aborted) return held
    held[Symbol.dispose]()
    throw signal.reason
  }
}
