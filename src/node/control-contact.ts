/**
 * Whether this process has every change of the configuration, as far as it can know.
 *
 * Law: it may lack changes from the moment when a poll fails, or control stops to answer, until a poll has succeeded.
 */
import type { Clock } from '#lib/clock.ts'

/** A heartbeat is sent every two seconds: if none was answered for this long, a poll that waits for changes may wait in vain. */
const silenceMsMax = 5_000

export class ControlContact {
  readonly #clock: Clock
  #heardAt: number
  #isFollowing = false

  constructor(clock: Clock) {
    this.#clock = clock
    this.#heardAt = clock.monotonic()
  }

  /** A poll succeeded: every change that control had by then is applied. */
  polled(): void {
    this.#isFollowing = true
    this.#heardAt = this.#clock.monotonic()
  }

  /** A poll failed. */
  lost(): void {
    this.#isFollowing = false
  }

  /** Control answered another call. A poll that is waiting would have ended if there was a change. */
  answered(): void {
    if (this.#isFollowing) this.#heardAt = this.#clock.monotonic()
  }

  /** How long changes may have been missed; since the start of the process before the first poll. */
  get ageMs(): number {
    return this.#clock.monotonic() - this.#heardAt
  }

  get mayLackChanges(): boolean {
    return !this.#isFollowing || this.ageMs > silenceMsMax
  }
}
