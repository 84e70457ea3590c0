/** Source of time, passed in so that tests control it. Nothing else reads the system clock. */
export interface Clock {
  /** Wall clock, milliseconds since 1970 UTC. May jump. */
  now(): number
  /** Milliseconds that never go back. Only differences are meaningful. */
  monotonic(): number
  /** Calls back once after `delayMs`. Returns a function that cancels it. A pending timer does not keep the process alive. */
  setTimer(callback: () => void, delayMs: number): () => void
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

/** Returns a signal that aborts after `delayMs`, as `AbortSignal.timeout` of the system's clock. */
export function timeout(clock: Clock, delayMs: number): AbortSignal {
  const late = new AbortController()
  clock.setTimer(() => late.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')), delayMs)
  return late.signal
}

/** Formats a time as every timestamp of the API: ISO 8601 in UTC with milliseconds and `Z`. */
export function isoTimestamp(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
