/**
 * The copies of an earlier process of this node, and what they lack.
 *
 * Owns: reading its objects at the start, and copying segments that they lack. Does not own: their removal (held-objects.ts).
 * Law: after a crash the end of a segment may be on the disk alone, and its sender was told so. So nothing of a segment counts as copied that
 * was not found in an object, or put again.
 */
import { Buffer } from 'node:buffer'
import { errorMessage } from '#lib/error-message.ts'
import type { Logger } from '#lib/telemetry.ts'
import { pieceBytes, type SegmentPiece } from '#log/segment-piece.ts'
import type { Segment, SegmentRef, SegmentSource } from '#log/segment-source.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { CopyError } from './copy-error.ts'
import { copyName } from './copy-names.ts'
import { type CopyObject, readCopy } from './copy-object.ts'
import { nameOf, refOf } from './held-objects.ts'
import { copyLimits } from './limits.ts'

export type EarlierCopiesOptions = {
  readonly store: ObjectStore
  readonly folder: string
  readonly segments: Pick<SegmentSource, 'readLog' | 'open'>
  readonly onObject: (incarnation: string, number: number, pieces: readonly SegmentPiece[]) => void
  readonly copy: (piece: SegmentPiece) => Promise<void>
  readonly logger: Logger
}

/** Bytes of a segment: from `at` to before `end`. */
export type Range = { readonly at: number; readonly end: number }

export class EarlierCopies {
  readonly #options: EarlierCopiesOptions
  readonly #copied = new Map<string, Range[]>()
  /** The number from which an incarnation is read next. */
  readonly #next = new Map<string, number>()
  /** Segments of which it was said that they cannot be read. */
  readonly #failed = new Set<string>()

  constructor(options: EarlierCopiesOptions) {
    this.#options = options
  }

  /** Reads the objects of an incarnation, from a number up to the first that was never stored. Goes on where it failed before. */
  async read(incarnation: string, from: number, signal: AbortSignal): Promise<void> {
    const { store, folder, onObject, logger } = this.#options
    await this.#removeLeftBelow(incarnation, from, signal)
    for (let number = this.#next.get(incarnation) ?? from; ; number += 1) {
      this.#next.set(incarnation, number)
      const read = await readCopy(store, folder, { incarnation, number }, signal)
      if (read === undefined) return await this.#removeLeftAbove(incarnation, number, signal)
      if (read === 'damaged')
        logger.error(
          { object: copyName(folder, incarnation, number) },
          'an object of copies is damaged: its segments are copied again',
        )
      else if (read.kind === 'closing') return
      const pieces = read === 'damaged' ? [] : read.pieces
      this.#note(pieces)
      onObject(incarnation, number, pieces)
    }
  }

  /** A removal may have been interrupted: the boundary was raised, and the objects are still there. */
  async #removeLeftBelow(incarnation: string, below: number, signal: AbortSignal): Promise<void> {
    const { store, folder } = this.#options
    for (let number = below - 1; number >= 0; number -= 1) {
      const name = copyName(folder, incarnation, number)
      if ((await store.head(name, signal)) === undefined) return
      await store.remove(name, signal)
    }
  }

  /** Puts that were in flight beside the one that was never stored: none of them was acknowledged, and the disk has what they have. */
  async #removeLeftAbove(incarnation: string, gap: number, signal: AbortSignal): Promise<void> {
    const { store, folder } = this.#options
    for (let number = gap + 1; number < gap + copyLimits.putsParallel; number += 1)
      await store.remove(copyName(folder, incarnation, number), signal)
  }

  /** Nothing of the segment counts as found any more. */
  forget(segment: SegmentRef): void {
    this.#copied.delete(nameOf(segment))
  }

  /** Copies a segment that is not in the objects as a whole. Returns false if it cannot be read. Rejects with a CopyError. */
  async complete(segment: Segment): Promise<boolean> {
    try {
      await this.#complete(segment)
      this.#copied.delete(nameOf(segment))
      return true
    } catch (error) {
      if (error instanceof CopyError) throw error
      const name = nameOf(segment)
      if (!this.#failed.has(name))
        this.#options.logger.warn({ segment: name, reason: errorMessage(error) }, 'a segment cannot be copied')
      this.#failed.add(name)
      return false
    }
  }

  #note(pieces: CopyObject['pieces']): void {
    for (const piece of pieces) {
      const ranges = this.#copied.get(nameOf(piece)) ?? []
      ranges.push(rangeOf(piece))
      this.#copied.set(nameOf(piece), ranges)
    }
  }

  async #complete(segment: Segment): Promise<void> {
    const opened = await this.#options.segments.open(segment)
    try {
      // Its offsets are others than before. The objects may have what it has lost.
      if (opened.footer.damagedRecords > 0) throw new Error('it lost records to damage')
      if (contiguous(this.#copied.get(nameOf(segment)) ?? []) >= opened.framesEnd) return
      let at = 0
      for await (const chunks of partsOf(opened.content())) {
        const piece = { ...refOf(segment), at, chunks }
        await this.#options.copy(piece)
        at += pieceBytes(piece)
      }
    } finally {
      await opened.close()
    }
  }
}

export function rangeOf(piece: SegmentPiece): Range {
  return { at: piece.at, end: piece.at + pieceBytes(piece) }
}

/** Returns up to where the ranges have everything. */
export function contiguous(ranges: readonly Range[]): number {
  let end = 0
  for (const range of ranges.toSorted((a, b) => a.at - b.at)) if (range.at <= end) end = Math.max(end, range.end)
  return end
}

/** Yields chunks in parts of about the size of an object. Chunks may change at the next step. */
async function* partsOf(content: AsyncIterable<Uint8Array>): AsyncGenerator<readonly Uint8Array[]> {
  let chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of content) {
    chunks.push(Buffer.from(chunk))
    bytes += chunk.byteLength
    if (bytes < copyLimits.objectBytes) continue
    yield chunks
    chunks = []
    bytes = 0
  }
  if (bytes > 0) yield chunks
}
