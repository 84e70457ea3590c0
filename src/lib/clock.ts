/** Source of time, passed in so that tests control it. Nothing else reads the system clock. */
export interface Clock {
  /** Wall clock, milliseconds since 1970 UTC. May jump. */
  now(): number
  /** Milliseconds that never go back. Only differences are meaningful. */
  monotonic(): number
  /** Calls back once after `delayMs`. Returns a function that cancels it. A pending timer does not keep the process alive. */
  setTimer(callback: () => void, delayMs: number): () => void
  /** Returns a signal that aborts with a TimeoutError after `delayMs`. */
  timeout(delayMs: number): AbortSignal
  /** Calls back after the events that wait by now have been handled. */
  nextTurn(callback: () => void): void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(callback, delayMs) {
    const timer = setTimeout(callback, delayMs)
    timer.unref()
    return () => clearTimeout(timer)
  },
  // It takes whole numbers only, and differences of the monotonic clock have fractions.
  timeout: (delayMs) => AbortSignal.timeout(Math.ceil(delayMs)),
  nextTurn: (callback) => void setImmediate(callback),
}

/** Waits for `delayMs` or until the signal aborts, whichever comes first. Never throws. */
export async function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const onAbort = () => resolve()
  const cancel = clock.setTimer(resolve, delayMs)
  signal?.addEventListener('abort', onAbort, { once: true })
  await promise
  cancel()
  // A signal that may never abort would keep the listener, and with it a signal made by AbortSignal.any.
  signal?.removeEventListener('abort', onAbort)
}

/** Formats a time as every timestamp of the API: ISO 8601 in UTC with milliseconds and `Z`. */
export function isoTimestamp(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
