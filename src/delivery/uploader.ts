import { basename } from 'node:path'
import { isoTimestamp } from '#lib/clock.ts'
import { Semaphore } from '#lib/semaphore.ts'
import type { Artifact } from '#model/commit.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import type { BuiltFile } from './artifacts/file.ts'
import { objectKey, type SegmentName } from './object-key.ts'

export type UploaderOptions = {
  /** Files on their way at the same time, over all segments. */
  readonly parallel: number
  /** And beside them, to places whose last upload failed. */
  readonly parallelInTrouble: number
}

/**
 * Puts artifacts into buckets. One attempt a call: who calls tries again.
 *
 * Law: a bucket that doesn't answer takes no slot from one that does. Who failed last waits in a line of its own until it succeeds.
 */
export class Uploader {
  readonly #slots: Semaphore
  readonly #slotsInTrouble: Semaphore
  readonly #inTrouble = new Set<string>()

  constructor({ parallel, parallelInTrouble }: UploaderOptions) {
    this.#slots = new Semaphore(parallel)
    this.#slotsInTrouble = new Semaphore(parallelInTrouble)
  }

  /**
   * The artifacts by kind, as a commit lists them. If one fails the others are cut off and the first error is thrown.
   * `place` is what shares its fate: a destination.
   */
  async upload(
    place: string,
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
        using _slot = await this.#acquire(place, either)
        const key = objectKey(segment, kind)
        await store.putFile(key, path, { contentType, metadata: metadataOf(segment, kind, file), sha256, signal: either })
        this.#inTrouble.delete(place)
        const ofView = view === undefined ? {} : { view_id: view.id, view_version: view.version }
        return [kind, { key, bytes, rows, sha256, ...ofView }]
      } catch (error) {
        if (!either.aborted) this.#inTrouble.add(place)
        failed.abort(error)
        throw new Error(`upload of ${basename(path)} failed`, { cause: error })
      }
    })
    // All are awaited, so that nothing still writes when the caller tries again or removes the files.
    const results = await Promise.allSettled(uploads)
    if (failed.signal.aborted) throw failed.signal.reason
    return Object.fromEntries(results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])))
  }

  async #acquire(place: string, signal: AbortSignal): Promise<Disposable> {
    if (!this.#inTrouble.has(place)) {
      const slot = await this.#slots.acquire(1, signal)
      if (!this.#inTrouble.has(place)) return slot
      // Another of its files failed while this one stood in line.
      slot[Symbol.dispose]()
    }
    return this.#slotsInTrouble.acquire(1, signal)
  }
}

/**
 * User metadata of an object: what it is, of which segment, made by which view, without the marker. S3 keeps at most 2 KB of it, in
 * US-ASCII; all of this has far less.
 */
export function metadataOf(
  segment: Omit<SegmentName, 'prefix'>,
  kind: string,
  { sha256, rows, view }: Pick<BuiltFile, 'sha256' | 'rows' | 'view'>,
): Readonly<Record<string, string>> {
  return {
    kind,
    sha256,
    rows: String(rows),
    'endpoint-id': segment.endpointId,
    'node-id': segment.nodeId,
    log: segment.log,
    seq: String(segment.seq),
    'sealed-at': isoTimestamp(Math.floor(segment.sealedAtMicros / 1000)),
    ...(view === undefined ? {} : { 'view-id': view.id, 'view-version': String(view.version) }),
  }
}
