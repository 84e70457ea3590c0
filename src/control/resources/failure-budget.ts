import { LRUCache } from 'lru-cache'
import type { Clock } from '#lib/clock.ts'
import { auditLimits } from '#model/limits.ts'
import { controlLimits } from '../limits.ts'

type Bucket = { tokens: number; filledAtMs: number; unrecorded: number }

/**
 * Limits the failed calls of an account that are recorded, so that nobody can fill the disk with them.
 *
 * A token bucket per account. Calls beyond it are counted.
 */
export class FailureBudget {
  readonly #clock: Clock
  readonly #buckets = new LRUCache<string, Bucket>({ max: controlLimits.auditedAccountsMax })

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether one more failure may be recorded. Counts it if not. */
  take(account: string): boolean {
    const { failuresBurst, failuresPerMinute } = auditLimits
    const now = this.#clock.monotonic()
    const bucket = this.#buckets.get(account) ?? { tokens: failuresBurst, filledAtMs: now, unrecorded: 0 }
    bucket.tokens = Math.min(failuresBurst, bucket.tokens + ((now - bucket.filledAtMs) / 60_000) * failuresPerMinute)
    bucket.filledAtMs = now
    this.#buckets.set(account, bucket)
    const isRecorded = bucket.tokens >= 1
    if (isRecorded) bucket.tokens -= 1
    else bucket.unrecorded += 1
    return isRecorded
  }

  /** Returns the number of failures since the last call that were not recorded. */
  takeUnrecorded(account: string): number {
    const bucket = this.#buckets.get(account)
    if (bucket === undefined) return 0
    const { unrecorded } = bucket
    bucket.unrecorded = 0
    return unrecorded
  }
}
