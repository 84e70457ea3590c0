/**
 * Replaces `AbortSignal.any`: Node keeps what it returns for the life of the process if somebody listens, and with it the history. A process
 * that is killed in a simulation leaves its listeners.
 */
AbortSignal.any = (signals) => {
  const any = new AbortController()
  for (const signal of signals) {
    if (signal.aborted) any.abort(signal.reason)
    else signal.addEventListener('abort', () => any.abort(signal.reason), { once: true })
  }
  return any.signal
}
