/**
 * Restores the log of a node from its copies, on another machine.
 *
 * Owns: that the node acknowledges nothing more with a copy before its objects are read, and the files that are written. Does not own: who may
 * take the node over, which control decides, and the delivery of the log.
 * Law: what the node acknowledged with a copy is restored. The fence is there before the first object is read, so an acknowledgement that was
 * made before has its object, and none is made later. A number that is missing ends an incarnation only if the node has not removed it.
 */
import type { Clock } from '#lib/clock.ts'
import type { System } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { PieceSink } from '#log/segment-piece.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { copyName, writerName } from './copy-names.ts'
import { type CopyObject, DamagedCopyError, decodeCopy, encodeCopy } from './copy-object.ts'
import { addFence } from './fences.ts'
import { readWriterState } from './writer-state.ts'

export type RestoreOptions = Pick<System, 'random'> & {
  readonly nodeId: string
  /** The id of the node that takes over. */
  readonly by: string
  readonly store: ObjectStore
  /** The folder of the node in the store, with a slash at its end. */
  readonly folder: string
  /** Takes what is restored. */
  readonly pieces: PieceSink
  readonly clock: Clock
  readonly logger: Logger
  readonly signal: AbortSignal
}

export type Restored = { readonly objects: number; readonly bytes: number; readonly damaged: number }

/** May be repeated after a failure. */
export async function restoreLog(options: RestoreOptions): Promise<Restored> {
  const { store, folder, by, pieces, signal } = options
  await addFence(store, folder, by, signal)
  const restored = { objects: 0, bytes: 0, damaged: 0 }
  try {
    for (const incarnation of Object.keys((await readWriterState(store, folder, signal)).below))
      for await (const object of objectsOf(options, incarnation)) {
        restored.objects += 1
        if (object === 'damaged') restored.damaged += 1
        else for (const piece of object.pieces) restored.bytes += await pieces.write(piece)
      }
  } finally {
    await pieces.close()
  }
  return restored
}

/** Removes the objects of a node once all of its log is delivered. Its fences stay, and the objects that close its incarnations. */
export async function removeRestored(
  { store, folder }: Pick<RestoreOptions, 'store' | 'folder'>,
  signal: AbortSignal,
): Promise<void> {
  for (const [incarnation, below] of Object.entries((await readWriterState(store, folder, signal)).below))
    for (let number = below; ; number += 1) {
      const name = copyName(folder, incarnation, number)
      const object = await store.get(name, signal)
      if (object === undefined || (await decodeOrDamaged(object)) === 'closing') break
      await store.remove(name, signal)
    }
  await store.remove(writerName(folder), signal)
}

/** Yields the objects up to the first number that was never stored, and takes that number, so that a late put of the node finds it. */
async function* objectsOf(options: RestoreOptions, incarnation: string): AsyncGenerator<CopyObject | 'damaged'> {
  const { nodeId, store, folder, clock, random, logger, signal } = options
  const belowOf = async () => (await readWriterState(store, folder, signal)).below[incarnation] ?? Number.POSITIVE_INFINITY
  for (let number = await belowOf(); ; number += 1) {
    const name = copyName(folder, incarnation, number)
    const object = await store.get(name, signal)
    if (object === undefined) {
      // The node may have delivered and removed it meanwhile.
      const below = await belowOf()
      if (below === Number.POSITIVE_INFINITY) return
      if (below > number) {
        number = below - 1
        continue
      }
      const writer = random.bytes(16).toString('hex')
      const closing = { kind: 'closing', nodeId, incarnation, number, writer, createdAtMicros: clock.now() * 1_000 } as const
      const options = { contentType: 'application/octet-stream', metadata: {}, signal }
      if (await store.putIfAbsent(name, await encodeCopy(closing, []), options)) return
      number -= 1
      continue
    }
    const decoded = await decodeOrDamaged(object)
    if (decoded === 'closing') return
    if (decoded === 'damaged')
      logger.error({ object: name }, 'an object of copies is damaged, and its records are not restored from it')
    yield decoded
  }
}

async function decodeOrDamaged(object: Uint8Array): Promise<CopyObject | 'damaged' | 'closing'> {
  try {
    const decoded = await decodeCopy(object)
    return decoded.kind === 'closing' ? 'closing' : decoded
  } catch (error) {
    if (error instanceof DamagedCopyError) return 'damaged'
    throw error
  }
}
