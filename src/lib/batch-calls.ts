/**
 * Returns a function that hands items to `work` in batches, one batch at a time: everything that was added while the batch before was in
 * progress. Callers share the result of their batch. An item that is added alone starts at once.
 */
export function batchCalls<T, R>(work: (items: readonly T[]) => Promise<R>): (item: T) => Promise<R> {
  let items: T[] = []
  let next: Promise<R> | undefined
  let running: Promise<unknown> = Promise.resolve()
  return (item) => {
    items.push(item)
    if (next !== undefined) return next
    const batch = running.then(() => {
      const taken = items
      items = []
      next = undefined
      return work(taken)
    })
    next = batch
    running = batch.catch(() => undefined)
    return batch
  }
}
