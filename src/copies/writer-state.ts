/**
 * The word of a node about its own objects, in one object that nobody else writes. So they are found without a listing, which may be old.
 *
 * Law: an incarnation is in `below` before its first object is put, and until after its last one is removed. A number is in `below` before
 * the object of a lower one is removed. So from there on numbers have no gap, up to the first that was never stored.
 */
import { Buffer } from 'node:buffer'
import { z } from 'zod'
import type { ObjectStore } from '#objects/object-store.ts'
import { writerName } from './copy-names.ts'

const WriterState = z.object({
  version: z.literal(1),
  /** How many fences there were when control accepted the node. */
  fences: z.int().min(0),
  /** By incarnation. */
  below: z.record(z.string().regex(/^[a-z0-9]{10}$/), z.int().min(0)),
})
export type WriterState = z.infer<typeof WriterState>

/** Throws if the object is damaged, or of another version. */
export async function readWriterState(store: ObjectStore, folder: string, signal?: AbortSignal): Promise<WriterState> {
  const object = await store.get(writerName(folder), signal)
  return object === undefined
    ? { version: 1, fences: 0, below: {} }
    : WriterState.parse(JSON.parse(Buffer.from(object).toString()))
}

export async function putWriterState(store: ObjectStore, folder: string, state: WriterState, signal: AbortSignal): Promise<void> {
  const object = Buffer.from(`${JSON.stringify(state)}\n`)
  await store.put(writerName(folder), object, { contentType: 'application/json', metadata: {}, signal })
}
