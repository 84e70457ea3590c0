import { basename } from 'node:path'
import { isoTimestamp } from '#lib/clock.ts'
import { Semaphore } from '#lib/semaphore.ts'
import { type ArtifactKind, contentTypeOf, objectKey, printArtifactKind, type SegmentName } from '#model/artifact.ts'
import type { ArtifactFile } from '#model/commit.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import type { BuiltFile } from './artifacts/file.ts'
import type { DestinationBackoff } from './destination-backoff.ts'

export type UploaderOptions = {
  /** Files on their way at the same time, over all segments. */
  readonly parallel: number
  /** Of these, to one place: one that falls silent leaves some for others until that is noticed. */
  readonly parallelPerDestination: number
  /** And beside them, to places whose last upload failed. */
  readonly parallelBackingOff: number
  readonly backoff: DestinationBackoff
}

export type UploadOptions = {
  /** What shares its fate: a destination. */
  readonly place: string
  readonly store: ObjectStore
  /** The destination's. */
  readonly prefix: string
  readonly segment: SegmentName
  readonly files: readonly BuiltFile[]
  /** Told why others failed at that place, while this waits for its turn there. */
  readonly report: (reason: string) => void
  readonly signal: AbortSignal
}

/**
 * Puts artifacts into buckets. One attempt a call: who calls tries again.
 *
 * Law: a bucket that doesn't answer takes no slot from one that does. Who failed last is tried with one file at a time until one succeeds.
 */
export class Uploader {
  readonly #slots: Semaphore
  readonly #parallelPerDestination: number
  readonly #slotsOfPlaces = new Map<string, Semaphore>()
  readonly #slotsInTrouble: Semaphore
  readonly #backoff: DestinationBackoff

  constructor({ parallel, parallelPerDestination, parallelBackingOff, backoff }: UploaderOptions) {
    this.#slots = new Semaphore(parallel)
    this.#parallelPerDestination = parallelPerDestination
    this.#slotsInTrouble = new Semaphore(parallelBackingOff)
    this.#backoff = backoff
  }

  /** The artifacts by kind, as a commit lists them. If one fails the others are cut off and the first error is thrown. */
  async upload(options: UploadOptions): Promise<Readonly<Record<string, ArtifactFile>>> {
    const { place, store, prefix, segment, files, report, signal } = options
    const failed = new AbortController()
    const either = AbortSignal.any([signal, failed.signal])
    const uploads = files.map(async (file): Promise<[string, ArtifactFile]> => {
      const { kind, path, bytes, rows, sha256, view } = file
      try {
        using _slot = await this.#acquire(place, report, either)
        const key = objectKey(prefix, segment, kind)
        const contentType = contentTypeOf(kind)
        await store.putFile(key, path, { contentType, metadata: metadataOf(segment, kind, file), sha256, signal: either })
        this.#backoff.recordSuccess(place, 'write')
        const ofView = view === undefined ? {} : { view_id: view.id, view_version: view.version }
        return [printArtifactKind(kind), { key, bytes, rows, sha256, ...ofView }]
      } catch (error) {
        if (!either.aborted) this.#backoff.recordFailure(place, 'write', error)
        failed.abort(error)
        throw new Error(`upload of ${basename(path)} failed`, { cause: error })
      }
    })
    // All are awaited, so that nothing still writes when the caller tries again or removes the files.
    const results = await Promise.allSettled(uploads)
    if (failed.signal.aborted) throw failed.signal.reason
    return Object.fromEntries(results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])))
  }

  #slotsOf(place: string): Semaphore {
    const slots = this.#slotsOfPlaces.get(place) ?? new Semaphore(this.#parallelPerDestination)
    this.#slotsOfPlaces.set(place, slots)
    return slots
  }

  async #acquire(place: string, report: UploadOptions['report'], signal: AbortSignal): Promise<Disposable> {
    for (;;) {
      const outage = this.#backoff.find(place)
      using held = new DisposableStack()
      if (outage === undefined) {
        held.use(await this.#slotsOf(place).acquire(1, signal))
        held.use(await this.#slots.acquire(1, signal))
        if (this.#backoff.find(place) === undefined) return held.move()
        // Another file failed there while this one stood in line.
        continue
      }
      report(outage.reason)
      held.use(await outage.acquire(signal))
      if (outage.over.aborted) continue
      held.use(await this.#slotsInTrouble.acquire(1, signal))
      return held.move()
    }
  }
}

/**
 * User metadata of an object: what it is, of which segment, made by which view, without the marker. S3 keeps at most 2 KB of it, in
 * US-ASCII; all of this has far less.
 */
export function metadataOf(
  segment: SegmentName,
  kind: ArtifactKind,
  { sha256, rows, view }: Pick<BuiltFile, 'sha256' | 'rows' | 'view'>,
): Readonly<Record<string, string>> {
  return {
    kind: printArtifactKind(kind),
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
