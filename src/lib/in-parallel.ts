/** Calls `work` with each item in order, so many at a time. Starts no more once the signal aborts, and rejects with the first error. */
export async function inParallel<T>(
  parallel: number,
  items: Iterable<T>,
  work: (item: T) => Promise<unknown>,
  signal?: AbortSignal,
): Promise<void> {
  const left = Iterator.from(items)
  const worker = async () => {
    for (const item of left) {
      if (signal?.aborted === true) return
      await work(item)
    }
  }
  await Promise.all(Array.from({ length: parallel }, worker))
}
