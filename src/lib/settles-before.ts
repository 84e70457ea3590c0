/** Waits for the promise or the signal's abort. Returns whether the promise was first. A rejection is thrown. */
export async function settlesBefore(promise: Promise<unknown>, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false
  const { promise: first, resolve, reject } = Promise.withResolvers<boolean>()
  const onAbort = () => resolve(false)
  signal.addEventListener('abort', onAbort, { once: true })
  promise.then(() => resolve(true), reject)
  try {
    return await first
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
