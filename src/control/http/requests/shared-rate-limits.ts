/**
 * Counts requests over all control processes, as a store of @fastify/rate-limit.
 *
 * Owns: the parts of allowances that this process was granted. Does not own: the windows (store/accounts/rate-windows.ts), who is limited
 * (http/server.ts).
 * Law: this process admits a request only against a grant, so all processes together never exceed a limit. A caller that has used up its
 * window costs no query until the window ends.
 */
import { LRUCache } from 'lru-cache'
import { must } from '#lib/assert.ts'
import type { Clock } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import { type Allowance, type Grant, removeEndedWindows, takeAllowances } from '#store/accounts/rate-windows.ts'
import type { Store } from '#store/store.ts'
import type { ControlContext } from '../../context.ts'
import { controlLimits } from '../../limits.ts'

export type SharedRateLimitsOptions = {
  readonly take: (allowances: readonly Allowance[]) => Promise<readonly Grant[]>
  readonly clock: Pick<Clock, 'monotonic'>
}

type Counted = { readonly current: number; readonly ttl: number }

/** Rest of the last grant for a caller. */
type Allotment = { left: number; taken: number; endsAt: number; filling: Promise<void> | undefined }

type Waiting = {
  readonly allowance: Allowance
  readonly resolve: (grant: Grant) => void
  readonly reject: (reason: unknown) => void
}

export class SharedRateLimits {
  readonly #options: SharedRateLimitsOptions
  readonly #allotments = new LRUCache<string, Allotment>({ max: controlLimits.rateLimitedCallersMax })
  /** Callers awaiting a grant, kept even if the LRU evicts them: no caller is asked for twice at once. */
  readonly #filling = new Map<string, Allotment>()
  #waiting: Waiting[] = []
  #isTaking = false

  constructor(options: SharedRateLimitsOptions) {
    this.#options = options
  }

  /** Counts a request. `current` is above `max` if it must be refused. Throws if the database fails. */
  async count(allowance: Allowance): Promise<Counted> {
    const { caller, max } = allowance
    const allotment = this.#filling.get(caller) ??
      this.#allotments.get(caller) ?? { left: 0, taken: 0, endsAt: 0, filling: undefined }
    this.#allotments.set(caller, allotment)
    for (;;) {
      const ttl = allotment.endsAt - this.#options.clock.monotonic()
      if (ttl > 0 && allotment.left > 0) {
        allotment.left -= 1
        return { current: allotment.taken - allotment.left, ttl }
      }
      if (ttl > 0 && allotment.taken >= max) return { current: max + 1, ttl }
      allotment.filling ??= this.#fill(allotment, allowance)
      await allotment.filling
    }
  }

  async #fill(allotment: Allotment, allowance: Allowance): Promise<void> {
    this.#filling.set(allowance.caller, allotment)
    try {
      // Before the query, so that the window ends here no later than in the database.
      const askedAt = this.#options.clock.monotonic()
      const { granted, taken, endsInMs } = await this.#ask(allowance)
      Object.assign(allotment, { left: granted, taken, endsAt: askedAt + endsInMs })
    } finally {
      allotment.filling = undefined
      this.#filling.delete(allowance.caller)
    }
  }

  #ask(allowance: Allowance): Promise<Grant> {
    const { promise, resolve, reject } = Promise.withResolvers<Grant>()
    this.#waiting.push({ allowance, resolve, reject })
    if (!this.#isTaking) void this.#takeAll()
    return promise
  }

  /** One query at a time, for all callers that wait: a flood from many addresses takes one connection, and few round trips. */
  async #takeAll(): Promise<void> {
    this.#isTaking = true
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, controlLimits.allowancesTakenAtOnce)
      this.#waiting = this.#waiting.slice(batch.length)
      try {
        const grants = await this.#options.take(batch.map(({ allowance }) => allowance))
        const byCaller = new Map(grants.map((grant) => [grant.caller, grant]))
        for (const { allowance, resolve } of batch) resolve(must(byCaller.get(allowance.caller), 'the grant of a caller'))
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    this.#isTaking = false
  }
}

/** Returns the class of a store, which is what the plugin takes. All limits share one: the names of their callers differ. */
export function rateLimitStore({ db }: Store, clock: Clock) {
  const limits = new SharedRateLimits({ take: (allowances) => takeAllowances(db, allowances, controlLimits.rateWindowMs), clock })
  return class RateLimitStore {
    incr(caller: string, done: (error: Error | null, counted?: Counted) => void, _windowMs: number, max: number): void {
      limits.count({ caller, max }).then((counted) => done(null, counted), done)
    }
    child(): RateLimitStore {
      return this
    }
  }
}

export type WindowRemovalOptions = Pick<ControlContext, 'store' | 'leadership' | 'clock' | 'logger'>

/** Removes windows that are over: each caller leaves one. */
export function createWindowRemoval({ store, leadership, clock, logger }: WindowRemovalOptions): Periodic {
  return new Periodic({
    name: 'rate windows',
    intervalMs: controlLimits.rateWindowMs,
    run: leadership.whileLeading(async () => void (await removeEndedWindows(store.db))),
    failure: 'removal of rate windows failed',
    clock,
    logger,
  })
}
