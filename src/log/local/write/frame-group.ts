/**
 * Frames that become durable together: laid out as in the file while they gather, completed when they are written.
 *
 * Owns: their bytes. Does not own: the file, and the salt of its segment, which is known when they are written.
 * Law: of a frame with a small payload only its bytes are kept, here. Objects that live until the disk has synced cost the garbage
 * collector more than all other work on a small frame (measured).
 */
import { Buffer } from 'node:buffer'
import { type FrameInput, payloadBytes } from '../../frame.ts'
import {
  completeFrame,
  crcAt,
  encodedBytes,
  laidOutFrameBytes,
  layOutFrame,
  readLaidOutFrame,
  type Salt,
} from '../format/frame.ts'
import type { SegmentTally } from '../format/segment-tally.ts'

export type FrameGroupOptions = {
  /** Larger payloads are not copied. */
  readonly copiedPayloadBytesMax: number
  /** Memory to start with. It grows as needed. */
  readonly initialBytes: number
}

/** A frame whose payload is written without a copy, behind the rest of the frame, which is laid out from `at` to `end`. */
type Uncopied = { readonly at: number; readonly end: number; readonly pieces: readonly Uint8Array[] }

const initialBytesMin = 512
const noPieces: readonly Uint8Array[] = []

export class FrameGroup {
  /** Frames that the observer of the log waits for. */
  readonly observed: FrameInput[] = []
  readonly #copiedPayloadBytesMax: number
  readonly #uncopied: Uncopied[] = []
  #laidOut: Buffer
  #laidOutBytes = 0
  #frames = 0
  #bytes = 0

  constructor({ copiedPayloadBytesMax, initialBytes }: FrameGroupOptions) {
    this.#copiedPayloadBytesMax = copiedPayloadBytesMax
    this.#laidOut = Buffer.allocUnsafe(Math.max(initialBytesMin, initialBytes))
  }

  get frames(): number {
    return this.#frames
  }

  /** Size in a segment. */
  get bytes(): number {
    return this.#bytes
  }

  /** Size without the payloads that are not copied. */
  get laidOutBytes(): number {
    return this.#laidOutBytes
  }

  /** A payload that is not copied must not change until the group is written. */
  add(frame: FrameInput): void {
    const bytes = encodedBytes(frame)
    const payload = payloadBytes(frame)
    const isCopied = payload <= this.#copiedPayloadBytesMax
    const at = this.#laidOutBytes
    const end = at + (isCopied ? bytes : bytes - payload)
    if (end > this.#laidOut.length) this.#grow(end)
    layOutFrame(this.#laidOut, at, frame, isCopied)
    if (!isCopied) this.#uncopied.push({ at, end, pieces: frame.payload })
    this.#laidOutBytes = end
    this.#bytes += bytes
    this.#frames += 1
  }

  /** Completes the frames for the segment with this salt. Returns what to write. */
  complete(salt: Salt): Uint8Array[] {
    const chunks: Uint8Array[] = []
    let flushed = 0
    this.#visit((at, end, pieces) => {
      completeFrame(this.#laidOut, at, end, { salt, startsGroup: at === 0, pieces })
      if (pieces === noPieces) return
      chunks.push(this.#laidOut.subarray(flushed, end))
      // Not as arguments of one call, which have a limit: a payload may have very many pieces.
      for (const piece of pieces) chunks.push(piece)
      flushed = end
    })
    if (flushed < this.#laidOutBytes) chunks.push(this.#laidOut.subarray(flushed, this.#laidOutBytes))
    return chunks
  }

  /** Adds the frames, which must be complete. */
  tally(tally: SegmentTally): void {
    this.#visit((at) => {
      const frame = readLaidOutFrame(this.#laidOut, at)
      tally.add(frame, frame.payloadBytes, crcAt(this.#laidOut, at))
    })
  }

  #visit(visit: (at: number, end: number, pieces: readonly Uint8Array[]) => void): void {
    let next = 0
    for (let at = 0; at < this.#laidOutBytes; ) {
      const uncopied = this.#uncopied[next]
      if (uncopied?.at === at) {
        visit(at, uncopied.end, uncopied.pieces)
        at = uncopied.end
        next += 1
      } else {
        const end = at + laidOutFrameBytes(this.#laidOut, at)
        visit(at, end, noPieces)
        at = end
      }
    }
  }

  #grow(bytes: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.max(bytes, 2 * this.#laidOut.length))
    this.#laidOut.copy(grown, 0, 0, this.#laidOutBytes)
    this.#laidOut = grown
  }
}
