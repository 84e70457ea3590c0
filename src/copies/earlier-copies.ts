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
import type { Segment, SegmentSource } from '#log/segment-source.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { CopyError } from './copy-error.ts'
import { copyName } from './copy-names.ts'
import { type CopyObject, DamagedCopyError, decodeCopy } from './copy-object.ts'
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

type Range = { at: number; end: number }

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
    const { store, folder, onObject } = this.#options
    for (let number = this.#next.get(incarnation) ?? from; ; number += 1) {
      this.#next.set(incarnation, number)
      const name = copyName(folder, incarnation, number)
      const object = await store.get(name, signal)
      if (object === undefined) return
      const { kind, pieces } = await this.#decode(name, object)
      if (kind === 'closing') return
      this.#note(pieces)
      onObject(incarnation, number, pieces)
    }
  }

  /** Copies a segment that is not in the objects as a whole. Returns false if it cannot be read. Rejects with a CopyError. */
  async complete(segment: Segment): Promise<boolean> {
    try {
      await this.#complete(segment)
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

  async #decode(name: string, object: Uint8Array): Promise<Pick<CopyObject, 'kind' | 'pieces'>> {
    try {
      return await decodeCopy(object)
    } catch (error) {
      if (!(error instanceof DamagedCopyError)) throw error
      // Its segments are copied again.
      this.#options.logger.error({ object: name, reason: error.message }, 'an object of copies is damaged')
      return { kind: 'pieces', pieces: [] }
    }
  }

  #note(pieces: CopyObject['pieces']): void {
    for (const piece of pieces) {
      const range = { at: piece.at, end: piece.at + pieceBytes(piece) }
      this.#copied.set(nameOf(piece), [...(this.#copied.get(nameOf(piece)) ?? []), range])
    }
  }

  async #complete(segment: Segment): Promise<void> {
    const opened = await this.#options.segments.open(segment)
    try {
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

/** Returns up to where the ranges have everything. */
function contiguous(ranges: readonly Range[]): number {
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
