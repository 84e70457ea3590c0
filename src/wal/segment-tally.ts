/** What a footer says about the frames before it, counted frame by frame. */
import { Buffer } from 'node:buffer'
import { crc32c } from '@node-rs/crc32'
import type { FooterRecord } from './segment-file.ts'

export class SegmentTally {
  readonly #crc = Buffer.alloc(4)
  #frames = 0
  #records = 0
  #payloadBytes = 0
  #firstReceivedAtMicros = Number.POSITIVE_INFINITY
  #lastReceivedAtMicros = 0
  #chain: number

  constructor(salt: number) {
    this.#chain = salt
  }

  get frames(): number {
    return this.#frames
  }

  add(frame: { readonly recordCount: number; readonly receivedAtMicros: number }, payloadBytes: number, crc: number): void {
    this.#frames += 1
    this.#records += frame.recordCount
    this.#payloadBytes += payloadBytes
    this.#firstReceivedAtMicros = Math.min(this.#firstReceivedAtMicros, frame.receivedAtMicros)
    this.#lastReceivedAtMicros = Math.max(this.#lastReceivedAtMicros, frame.receivedAtMicros)
    this.#crc.writeUInt32LE(crc, 0)
    this.#chain = crc32c(this.#crc, this.#chain)
  }

  footer(offset: number, sealedAtMicros: number): FooterRecord {
    return {
      frames: this.#frames,
      records: this.#records,
      payloadBytes: this.#payloadBytes,
      firstReceivedAtMicros: this.#frames === 0 ? 0 : this.#firstReceivedAtMicros,
      lastReceivedAtMicros: this.#lastReceivedAtMicros,
      sealedAtMicros,
      offset,
      chain: this.#chain,
    }
  }

  /** Whether the footer tells of exactly these frames, ending at `offset`. */
  matches(footer: FooterRecord, offset: number): boolean {
    const own = this.footer(offset, footer.sealedAtMicros)
    return (Object.keys(own) as (keyof FooterRecord)[]).every((field) => own[field] === footer[field])
  }
}
