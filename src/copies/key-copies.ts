/**
 * Keeps the idempotency keys of what is delivered in the copy store, as long as this node remembers them: for the node that takes over.
 *
 * Owns: when they are put. Does not own: which requests are in which segment (a KeySource), and the removal of objects (held-objects.ts).
 * Law: an object with frames goes only once their keys are in the store on their own. Until then the frames are their copy. No key is there
 * without its records: they are delivered.
 */
import { Buffer } from 'node:buffer'
import type { Clock } from '#lib/clock.ts'
import type { SegmentPiece } from '#log/segment-piece.ts'
import type { SegmentRef } from '#log/segment-source.ts'
import { copyLimits } from './limits.ts'

export type SegmentSeq = Pick<SegmentRef, 'logName' | 'seq'>

/** Requests with a key that were stored in one hour, counted since 1970. */
export type KeyPart = { readonly hour: number; readonly bytes: Uint8Array }

/** The requests with a key that this node remembers, as bytes. */
export interface KeySource {
  /**
   * Learns of requests that were stored since, in segments with one of these names, and forgets where those of others are. Throws while some
   * cannot be written or read.
   */
  refresh(copied: ReadonlySet<string>): Promise<void>
  /** Whether a segment has requests with a key. */
  has(segment: SegmentSeq): boolean
  /** Yields the requests of these segments, in parts of whole ones that are smaller than an object. Throws if they cannot be read. */
  read(segments: readonly SegmentSeq[]): AsyncIterable<KeyPart>
  /** Forgets in which segments they are. */
  letGo(segments: readonly SegmentSeq[]): void
  /** Whether requests of that hour may still be remembered. */
  knows(hour: number): boolean
}

/**
 * Keys are pieces of a segment that no log has: its seq is the hour. They have an incarnation of their own, because they stay for longer than
 * what the objects of records hold.
 */
export const keysLogName = 'idempotency-keys'

export function seqNameOf({ logName, seq }: SegmentSeq): string {
  return `${logName}/${seq}`
}

export type KeyCopiesOptions = {
  readonly source: KeySource
  readonly incarnation: string
  /** Returns the names of the segments of which pieces are copied, or about to be. */
  readonly copied: () => ReadonlySet<string>
  readonly copy: (piece: SegmentPiece) => Promise<void>
  /** Rejects if it takes long. */
  readonly copyNow: (piece: SegmentPiece) => Promise<void>
  readonly clock: Clock
}

export class KeyCopies {
  readonly #options: KeyCopiesOptions
  /** By hour: where the next piece begins. */
  readonly #copiedBytes = new Map<number, number>()
  /** Keys that were put on their own. */
  readonly #alone = new Set<string>()
  #lastMs = Number.NEGATIVE_INFINITY

  constructor(options: KeyCopiesOptions) {
    this.#options = options
  }

  /** Returns those of the delivered segments whose keys are in the store. The others have their turn within a minute. */
  async keep<Ref extends SegmentRef>(delivered: readonly Ref[]): Promise<readonly Ref[]> {
    const { source, clock } = this.#options
    await source.refresh(this.#options.copied())
    if (clock.monotonic() - this.#lastMs < copyLimits.keysIntervalMs) return delivered.filter((segment) => !source.has(segment))
    const withKeys = delivered.filter((segment) => source.has(segment))
    if (withKeys.length > 0) {
      await this.#put(source.read(withKeys))
      this.#lastMs = clock.monotonic()
      source.letGo(withKeys)
    }
    return delivered
  }

  /** Puts one key, unless this was done lately. Rejects with a CopyError if it takes long. */
  async put(part: KeyPart): Promise<void> {
    const name = Buffer.from(part.bytes).toString('latin1')
    if (this.#alone.has(name)) return
    await this.#options.copyNow(this.#pieceOf(part))
    if (this.#alone.size >= copyLimits.keysAloneMax) this.#alone.clear()
    this.#alone.add(name)
  }

  /** About an object of them is in memory at a time: after an outage of a bucket, millions are delivered at once. */
  async #put(keys: AsyncIterable<KeyPart>): Promise<void> {
    let parts: KeyPart[] = []
    let bytes = 0
    for await (const part of keys) {
      parts.push(part)
      bytes += part.bytes.byteLength
      if (bytes < copyLimits.objectBytes) continue
      await this.#copy(parts)
      parts = []
      bytes = 0
    }
    await this.#copy(parts)
  }

  async #copy(parts: readonly KeyPart[]): Promise<void> {
    await Promise.all(parts.map((part) => this.#options.copy(this.#pieceOf(part))))
  }

  #pieceOf({ hour, bytes }: KeyPart): SegmentPiece {
    const at = this.#copiedBytes.get(hour) ?? 0
    this.#copiedBytes.set(hour, at + bytes.byteLength)
    return { logName: keysLogName, seq: hour, incarnation: this.#options.incarnation, at, chunks: [bytes] }
  }
}
