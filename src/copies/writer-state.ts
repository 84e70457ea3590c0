/**
 * The word of a node about its own objects: `writer/0`, `writer/1` and so on, of which the newest counts. The node writes them, and a machine that
 * took it over, which forgets what it has removed.
 *
 * Law: an incarnation is in `below` before its first object is put, and until after its last one is removed. A number is in `below` before
 * the object of a lower one is removed. So from there on numbers have no gap, up to the first that was never stored. A state is never
 * replaced, so a put that arrives late changes nothing. The newest ones have no gap: a reader that finds one of them finds the newest.
 */
import { Buffer } from 'node:buffer'
import { z } from 'zod'
import type { ObjectStore } from '#objects/object-store.ts'
import { parseWriterName, writerName } from './copy-names.ts'
import { copyLimits } from './limits.ts'

const WriterState = z.object({
  version: z.literal(1),
  /** How many fences there were when control accepted the node. */
  fences: z.int().min(0),
  /** By incarnation. */
  below: z.record(z.string().regex(/^[a-z0-9]{10}$/), z.int().min(0)),
})
export type WriterState = Omit<z.infer<typeof WriterState>, 'version'>

export type NumberedState = { readonly number: number; readonly state: WriterState }

/** Returns undefined if the node has none. Throws while a listing of the store names only states that are gone, and for one of a later release. */
export async function findWriterState(
  store: ObjectStore,
  folder: string,
  signal: AbortSignal,
): Promise<NumberedState | undefined> {
  let listed = -1
  for await (const { key } of store.list(`${folder}writer/`, signal))
    listed = Math.max(listed, parseWriterName(folder, key) ?? -1)
  let newest: NumberedState | undefined
  // A listing may be old: those of a young node are found without it.
  for (let number = Math.max(0, listed); ; number += 1) {
    const object = await store.get(writerName(folder, number), signal)
    if (object === undefined) break
    newest = { number, state: WriterState.parse(JSON.parse(Buffer.from(object).toString())) }
  }
  if (newest === undefined && listed >= 0) throw new Error('the list of the copy store is old: it names what is gone')
  return newest
}

/** Puts a state behind these, and returns it with its number. May be repeated: an attempt whose answer was lost stays before it. */
export async function putWriterState(
  store: ObjectStore,
  folder: string,
  { number, state }: NumberedState,
  signal: AbortSignal,
): Promise<NumberedState> {
  let next = number
  while (!(await putAt(store, folder, { number: next, state }, signal))) next += 1
  return { number: next, state }
}

/** Leaves these incarnations out of the newest state. The node may have its place again, and put a state meanwhile: that one stays. */
export async function forgetIncarnations(
  store: ObjectStore,
  folder: string,
  incarnations: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const found = await findWriterState(store, folder, signal)
    if (found === undefined) return
    const { number, state } = found
    const kept = Object.entries(state.below).filter(([incarnation]) => !incarnations.includes(incarnation))
    const next = { number: number + 1, state: { ...state, below: Object.fromEntries(kept) } }
    if (await putAt(store, folder, next, signal)) return
  }
}

/** Returns false if the store has a state of this number. Each one that is put takes the place of an old one. */
async function putAt(
  store: ObjectStore,
  folder: string,
  { number, state }: NumberedState,
  signal: AbortSignal,
): Promise<boolean> {
  const object = Buffer.from(`${JSON.stringify({ version: 1, ...state })}\n`)
  const options = { contentType: 'application/json', metadata: {}, signal }
  if (!(await store.putIfAbsent(writerName(folder, number), object, options))) return false
  const old = number - copyLimits.writerStatesKept
  if (old >= 0) await store.remove(writerName(folder, old), signal)
  return true
}
