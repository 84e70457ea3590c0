/**
 * Stage 3 of a delivery: uploads the files of a segment.
 *
 * Owns: how many files are uploaded at a time, over all segments and to one destination. Does not own: retries (the caller).
 * Law: a destination that hangs or fails leaves slots for the others. During an outage one file at a time is uploaded to it.
 */
import { basename } from 'node:path'
import { Semaphore } from '#lib/semaphore.ts'
import type { SegmentName } from '#model/artifact.ts'
import type { ArtifactFile, ArtifactFiles } from '#model/commit.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import type { BuiltFile } from '../convert/build/built-file.ts'
import type { DestinationBackoff } from './destination-backoff.ts'
import { putArtifact } from './put-artifact.ts'

export type UploaderOptions = {
  /** Files uploaded at the same time, over all segments. */
  readonly parallel: number
  /** How many of them may go to one destination. */
  readonly parallelPerDestination: number
  /** In addition, files to destinations that are backing off, one to each. */
  readonly parallelBackingOff: number
  readonly backoff: DestinationBackoff
}

export type UploadOptions = {
  readonly destinationId: string
  readonly store: ObjectStore
  /** The destination's. */
  readonly prefix: string
  readonly segment: SegmentName
  readonly files: readonly BuiltFile[]
  /** Reports why the destination failed, while this upload waits for the outage to end. */
  readonly report: (reason: string) => void
  readonly signal: AbortSignal
}

export class Uploader {
  readonly #slots: Semaphore
  readonly #parallelPerDestination: number
  readonly #slotsByDestination = new Map<string, Semaphore>()
  readonly #slotsBackingOff: Semaphore
  readonly #backoff: DestinationBackoff

  constructor({ parallel, parallelPerDestination, parallelBackingOff, backoff }: UploaderOptions) {
    this.#slots = new Semaphore(parallel)
    this.#parallelPerDestination = parallelPerDestination
    this.#slotsBackingOff = new Semaphore(parallelBackingOff)
    this.#backoff = backoff
  }

  /** Returns the files as a commit lists them. If one upload fails, the others are aborted and the first error is thrown. */
  async upload(options: UploadOptions): Promise<ArtifactFiles> {
    const { destinationId, store, prefix, segment, files, report, signal } = options
    const failed = new AbortController()
    const either = AbortSignal.any([signal, failed.signal])
    const uploads = files.map(async (file): Promise<readonly [string, ArtifactFile]> => {
      try {
        using _slot = await this.#acquire(destinationId, report, either)
        const entry = await putArtifact(store, { prefix, segment, file, signal: either })
        this.#backoff.recordSuccess(destinationId, 'write')
        return entry
      } catch (error) {
        if (!either.aborted) this.#backoff.recordFailure(destinationId, 'write', error)
        failed.abort(error)
        throw new Error(`upload of ${basename(file.path)} failed`, { cause: error })
      }
    })
    // Wait for all, so that no upload is still reading when the caller retries or removes the files.
    const results = await Promise.allSettled(uploads)
    if (failed.signal.aborted) throw failed.signal.reason
    return Object.fromEntries(results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])))
  }

  #slotsOf(destinationId: string): Semaphore {
    const slots = this.#slotsByDestination.get(destinationId) ?? new Semaphore(this.#parallelPerDestination)
    this.#slotsByDestination.set(destinationId, slots)
    return slots
  }

  async #acquire(destinationId: string, report: UploadOptions['report'], signal: AbortSignal): Promise<Disposable> {
    for (;;) {
      const outage = this.#backoff.find(destinationId)
      using held = new DisposableStack()
      if (outage === undefined) {
        held.use(await this.#slotsOf(destinationId).acquire(1, signal))
        held.use(await this.#slots.acquire(1, signal))
        if (this.#backoff.find(destinationId) === undefined) return held.move()
        // Another file failed there while this one waited for its slot.
        continue
      }
      report(outage.reason)
      held.use(await outage.acquire(signal))
      if (outage.over.aborted) continue
      held.use(await this.#slotsBackingOff.acquire(1, signal))
      return held.move()
    }
  }
}
