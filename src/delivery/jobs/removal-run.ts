/**
 * Runs one unit that removes the files that a compaction merged.
 *
 * Owns: the checks before a removal. Does not own: when files are removed, and that Inlet itself no longer reads them (control).
 * Law: nothing is removed unless the marker in the bucket says where each row is, and the file that it names is there, with its SHA-256. A removal
 * that is repeated, or run by two nodes, removes the same files.
 */
import { join } from 'node:path'
import { digestFile } from '#lib/digest-file.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Files } from '#lib/files.ts'
import { Semaphore } from '#lib/semaphore.ts'
import { compactionMarkerKey, keyOfListed, parseArtifactKind } from '#model/artifact.ts'
import type { RemovalUnit } from '#model/job-protocol.ts'
import type { ObjectStore, ObjectStores } from '#objects/object-store.ts'
import { sessionName } from '#objects/session-name.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import { TransientError } from '../convert/build/transient-error.ts'
import { decodeCompactionMarker, listsAllSources } from './compaction-marker.ts'
import { jobWorkerLimits } from './limits.ts'
import { runInScratch, type UnitEnd, type UnitScratch } from './unit-scratch.ts'

/** Throws only the signal's reason. */
export function runRemoval(
  unit: RemovalUnit,
  options: UnitScratch & { readonly stores: ObjectStores },
  signal: AbortSignal,
): Promise<UnitEnd> {
  return runInScratch(options, signal, async (directory) => {
    const session = sessionName({ account_id: unit.account_id, endpoint_id: unit.removal.endpoint_id })
    const store = options.stores.open({ ...unit.target, session })
    await assertReadable(unit, { store, path: join(directory, 'merged'), files: options.files }, signal)
    await removeSources(unit, store, signal)
    return { outcome: 'removed' }
  })
}

/** Throws unless a reader that follows markers finds every row of the sources in the new file. */
async function assertReadable(
  { removal, target }: RemovalUnit,
  { store, path, files }: { readonly store: ObjectStore; readonly path: string; readonly files: Files },
  signal: AbortSignal,
): Promise<void> {
  const { id, endpoint_id: endpointId, date, file } = removal
  const key = compactionMarkerKey({ prefix: target.prefix, endpointId, date }, id)
  const body = await request(() => store.get(key, signal))
  if (body === undefined) throw new Error(`${key} is no longer in the bucket: the files that it merged stay`)
  const marker = decodeCompactionMarker(body)
  const isSame = marker?.compacted.key === file.key && marker.compacted.sha256 === file.sha256 && listsAllSources(marker, removal)
  if (!isSame) throw new Error(`${key} is not the marker that was written: the files that it merged stay`)
  // Anyone who can write to the bucket must not be able to fill our disk.
  const found = await request(() => store.getFile(file.key, path, signal, file.bytes))
  if (!found) throw new Error(`${file.key} is no longer in the bucket: the files that it merged stay`)
  if ((await digestFile(files, path, signal)).sha256 !== file.sha256)
    throw new Error(`${file.key} has changed since it was written, its SHA-256 differs: the files that it merged stay`)
}

async function removeSources({ removal, target }: RemovalUnit, store: ObjectStore, signal: AbortSignal): Promise<void> {
  const { endpoint_id: endpointId, date, sources } = removal
  const kind = parseArtifactKind(removal.kind)
  if (kind === undefined) throw new Error(`this node does not know files of the kind ${removal.kind}`)
  const folder = { prefix: target.prefix, endpointId, date }
  const slots = new Semaphore(jobWorkerLimits.removalsParallel)
  const failed = new AbortController()
  const ended = AbortSignal.any([signal, failed.signal])
  const attempts = sources.map(async ({ id }) => {
    using _slot = await slots.acquire(1, ended)
    await request(() => store.remove(keyOfListed(folder, id, kind), ended)).catch((error: unknown) => failed.abort(error))
  })
  await Promise.allSettled(attempts)
  if (failed.signal.aborted) throw failed.signal.reason
  signal.throwIfAborted()
}

/** A role that may not do it will not be allowed to by itself: that ends the unit, and the job says what to allow. */
async function request<T>(send: () => Promise<T>): Promise<T> {
  try {
    return await send()
  } catch (error) {
    if (error instanceof ObjectStoreError && error.reason.endsWith('_denied')) throw error
    throw new TransientError(errorMessage(error), { cause: error })
  }
}
