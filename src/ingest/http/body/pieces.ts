/**
 * The bytes of a body, in pieces.
 *
 * Owns: which pieces are kept as they arrived, and which are copied. Does not own: bounds on the bytes (intake.ts).
 * Law: the memory grows with the bytes that are held, and not with the number of pieces that they arrived in. A client chooses how it cuts
 * its body: a chunk of one byte would take a hundred for its object, or keep a whole read of 64 KiB that has nothing else of the body.
 */
import { Buffer } from 'node:buffer'
import { KiB } from '#lib/bytes.ts'

/** So many pieces are kept as they arrived, whatever their size. Most bodies have fewer. */
const PIECES_KEPT = 16
/** Later ones are copied if they are shorter than this, or than a quarter of the memory that they keep. */
const KEPT_BYTES_MIN = KiB
const KEPT_PART_MIN = 1 / 4
/** Copies are collected in blocks of this size. */
const BLOCK_BYTES = 16 * KiB

export class Pieces {
  #pieces: Buffer[] = []
  /** The block that is being filled. Once there is one, all further pieces are copied: so at most one block is not full. */
  #block: Buffer | undefined
  #blockBytes = 0

  push(piece: Buffer): void {
    if (this.#block !== undefined) this.#copy(piece, this.#block)
    else if (this.#pieces.length < PIECES_KEPT || isWorthKeeping(piece)) this.#pieces.push(piece)
    else this.#copy(piece, Buffer.allocUnsafeSlow(BLOCK_BYTES))
  }

  /** Returns all pieces, and holds none of them any longer. */
  take(): Buffer[] {
    const pieces = this.#pieces
    if (this.#block !== undefined && this.#blockBytes > 0) pieces.push(this.#block.subarray(0, this.#blockBytes))
    this.#pieces = []
    this.#block = undefined
    this.#blockBytes = 0
    return pieces
  }

  #copy(piece: Buffer, into: Buffer): void {
    let block = into
    for (let at = 0; at < piece.length; ) {
      const copied = piece.copy(block, this.#blockBytes, at)
      at += copied
      this.#blockBytes += copied
      if (this.#blockBytes < BLOCK_BYTES) continue
      this.#pieces.push(block)
      block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
      this.#blockBytes = 0
    }
    this.#block = block
  }
}

function isWorthKeeping({ byteLength, buffer }: Buffer): boolean {
  return byteLength >= KEPT_BYTES_MIN && byteLength >= buffer.byteLength * KEPT_PART_MIN
}
