import { basename } from 'node:path'
import { Semaphore } from '#lib/semaphore.ts'
import type { Artifact } from '#model/commit.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import type { BuiltFile } from './artifacts/file.ts'
import { objectKey, type SegmentName } from './object-key.ts'

/** Puts artifacts into the bucket, a bounded number at a time over all segments. One attempt a call: who calls tries again. */
export class Uploader {
  readonly #slots: Semaphore

  constructor({ parallel }: { readonly parallel: number }) {
    this.#slots = new Semaphore(parallel)
  }

  /** The artifacts by kind, as a commit lists them. If one fails the others are cut off and the first error is thrown. */
  async upload(
    store: ObjectStore,
    segment: SegmentName,
    files: readonly BuiltFile[],
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, Artifact>>> {
    const failed = new AbortController()
    const either = AbortSignal.any([signal, failed.signal])
    const uploads = files.map(async (file): Promise<[string, Artifact]> => {
      const { kind, path, contentType, bytes, rows, sha256, view } = file
      try {
        using _slot = await this.#slots.acquire(1, either)
        const key = objectKey(segment, kind)
        await store.putFile(key, path, { contentType, metadata: metadataOf(segment, file), signal: either })
        const ofView = view === undefined ? {} : { view_id: view.id, view_version: view.version }
        return [kind, { key, bytes, rows, sha256, ...ofView }]
      } catch (error) {
        failed.abort(error)
        throw new Error(`upload of ${basename(path)} failed`, { cause: error })
      }
    })
    // All are awaited, so that nothing still writes when the caller tries again or removes the files.
    const results = await Promise.allSettled(uploads)
    if (failed.signal.aborted) throw failed.signal.reason
    return Object.fromEntries(results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])))
  }
}

/** User metadata of an object: enough to know what it is without the marker. */
export function metadataOf(
  segment: SegmentName,
  { sha256, rows }: Pick<Artifact, 'sha256' | 'rows'>,
): Readonly<Record<string, string>> {
  return {
    sha256,
    rows: String(rows),
    'endpoint-id': segment.endpointId,
    'node-id': segment.nodeId,
    log: segment.log,
    seq: String(segment.seq),
  }
}
