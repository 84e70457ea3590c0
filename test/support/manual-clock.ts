import { type Clock, systemClock } from '#lib/clock.ts'

type Timer = { readonly at: number; readonly callback: () => void }

/** A clock that stands still until a test advances it. */
export class ManualClock implements Clock {
  #now: number
  readonly #start: number
  #timers: readonly Timer[] = []
  /** How far the wall clock has jumped. */
  #jumpedMs = 0

  constructor(startMs = Date.UTC(2026, 10, 20)) {
    this.#now = startMs
    this.#start = startMs
  }

  now(): number {
    return this.#now + this.#jumpedMs
  }

  monotonic(): number {
    return this.#now - this.#start
  }

  setTimer(callback: () => void, delayMs: number): () => void {
    const timer = { at: this.#now + delayMs, callback }
    this.#timers = [...this.#timers, timer]
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }

  timeout(delayMs: number): AbortSignal {
    const late = new AbortController()
    this.setTimer(() => late.abort(new DOMException('The operation timed out', 'TimeoutError')), delayMs)
    return late.signal
  }

  readonly nextTurn = systemClock.nextTurn

  /** Sets the wall clock forward, or back if negative. No time passes. */
  jump(ms: number): void {
    this.#jumpedMs += ms
  }

  /** Advances the time and runs the timers that fall due, in order. */
  advance(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      const due = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
      if (due === undefined) break
      this.#timers = this.#timers.filter((other) => other !== due)
      this.#now = Math.max(this.#now, due.at)
      due.callback()
    }
    this.#now = end
  }
}
