/**
 * The fences in the copy store of a node: `fence/1`, `fence/2` and so on, one for each time that another machine took the node over.
 *
 * Law: they have no gap, and stay. A writer knows how many there were when control accepted it. Before each acknowledgement it looks for one
 * more: then another machine has its place.
 */
import { Buffer } from 'node:buffer'
import type { ObjectStore } from '#objects/object-store.ts'
import { fenceName } from './copy-names.ts'

/** Returns how many there are, if there were so many before. */
export async function countFences(store: ObjectStore, folder: string, before: number, signal: AbortSignal): Promise<number> {
  let count = before
  while ((await store.head(fenceName(folder, count + 1), signal)) !== undefined) count += 1
  return count
}

/**
 * Adds a fence. From then on no writer of before acknowledges anything. `by` is the machine that takes over. It looks for earlier ones first: a
 * store that ignores conditions would replace one of them, and the writer would not notice.
 */
export async function addFence(store: ObjectStore, folder: string, by: string, signal: AbortSignal): Promise<void> {
  const object = Buffer.from(`${JSON.stringify({ version: 1, by })}\n`)
  for (let number = (await countFences(store, folder, 0, signal)) + 1; ; number += 1) {
    const isNew = await store.putIfAbsent(fenceName(folder, number), object, {
      contentType: 'application/json',
      metadata: {},
      signal,
    })
    if (isNew) return
  }
}
