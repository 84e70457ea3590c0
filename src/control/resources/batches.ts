import { setImmediate } from 'node:timers/promises'

/** Removes batches until nothing is left, or the signal aborts. SQLite blocks the thread for each, so other work runs in between. */
export async function removeAll(removeBatch: () => Promise<number>, signal?: AbortSignal): Promise<void> {
  do await setImmediate()
  while (signal?.aborted !== true && (await removeBatch()) > 0)
}
