/** Computes a segment's footer, frame by frame. */
import { Buffer } from 'node:buffer'
import { crc32c } from '@node-rs/crc32'
import type { Salt } from './frame.ts'
import type { FooterRecord } from './segment-file.ts'

/** Number of frame crcs that are chained in one call: a call costs more than the four bytes of a crc. */
const CRCS_AT_ONCE = 256

export class SegmentTally {
  readonly #crcs = Buffer.allocUnsafe(CRCS_AT_ONCE * 4)
  #waitingBytes = 0
  #frames = 0
  #records = 0
  #payloadBytes = 0
  #firstReceivedAtMicros = Number.POSITIVE_INFINITY
  #lastReceivedAtMicros = 0
  #chain: number

  constructor(salt: Salt) {
    this.#chain = salt.crc
  }

  get frames(): number {
    return this.#frames
  }

  get records(): number {
    return this.#records
  }

  add(frame: { readonly recordCount: number; readonly receivedAtMicros: number }, payloadBytes: number, crc: number): void {
    this.#frames += 1
    this.#records += frame.recordCount
    this.#payloadBytes += payloadBytes
    this.#firstReceivedAtMicros = Math.min(this.#firstReceivedAtMicros, frame.receivedAtMicros)
    this.#lastReceivedAtMicros = Math.max(this.#lastReceivedAtMicros, frame.receivedAtMicros)
    this.#waitingBytes = this.#crcs.writeUInt32LE(crc, this.#waitingBytes)
    if (this.#waitingBytes === this.#crcs.length) this.#extendChain()
  }

  footer(offset: number, sealedAtMicros: number, damagedRecords = 0): FooterRecord {
    this.#extendChain()
    return {
      frames: this.#frames,
      records: this.#records,
      payloadBytes: this.#payloadBytes,
      firstReceivedAtMicros: this.#frames === 0 ? 0 : this.#firstReceivedAtMicros,
      lastReceivedAtMicros: this.#lastReceivedAtMicros,
      sealedAtMicros,
      damagedRecords,
      offset,
      chain: this.#chain,
    }
  }

  /** Whether the footer describes exactly these frames, ending at `offset`. */
  matches(footer: FooterRecord, offset: number): boolean {
    const own = this.footer(offset, footer.sealedAtMicros, footer.damagedRecords)
    return (Object.keys(own) as (keyof FooterRecord)[]).every((field) => own[field] === footer[field])
  }

  #extendChain(): void {
    this.#chain = crc32c(this.#crcs.subarray(0, this.#waitingBytes), this.#chain)
    this.#waitingBytes = 0
  }
}
