import { Buffer, isUtf8 } from 'node:buffer'
import { KiB } from '#lib/bytes.ts'
import { qualityLimits } from '#model/limits.ts'
import type { Lines } from './record-runs.ts'

const LINE_FEED = 0x0a

/** Bytes of all samples of a segment, and of one. Larger records are skipped. */
export const SAMPLES_BYTES_MAX = 256 * KiB
export const SAMPLE_BYTES_MAX = 64 * KiB

/**
 * Keeps a sample of the records, spread evenly over all of them, however many there are.
 *
 * Law: it keeps every n-th record except for large ones; when there are too many, every other one is removed and n doubles.
 */
export class RecordSampler {
  #kept: { readonly index: number; readonly bytes: Buffer }[] = []
  #bytes = 0
  #every = 1
  #next = 0

  /** Copies the bytes of the record if it is sampled. Other records cost almost nothing. */
  offer(index: number, payload: Buffer, start: number, end: number): void {
    if (index < this.#next) return
    this.#next = index + this.#every
    if (end - start > SAMPLE_BYTES_MAX) return
    this.#kept.push({ index, bytes: Buffer.from(payload.subarray(start, end)) })
    this.#bytes += end - start
    while (this.#kept.length > qualityLimits.samplesMax || this.#bytes > SAMPLES_BYTES_MAX) this.#thin()
  }

  /** Offers records that are joined by line feeds. `first` is the index of the first one. */
  offerLines(first: number, payload: Buffer, { start, end, records }: Lines): void {
    let at = start
    for (let index = first; index < first + records && this.#next < first + records; index += 1) {
      const feed = payload.indexOf(LINE_FEED, at)
      const stop = feed === -1 || feed > end ? end : feed
      this.offer(index, payload, at, stop)
      at = stop + 1
    }
  }

  /** Returns the samples that are UTF-8, in order. */
  texts(): readonly string[] {
    return this.#kept.filter(({ bytes }) => isUtf8(bytes)).map(({ bytes }) => bytes.toString('utf8'))
  }

  #thin(): void {
    this.#every *= 2
    this.#kept = this.#kept.filter(({ index }) => index % this.#every === 0)
    this.#bytes = this.#kept.reduce((sum, { bytes }) => sum + bytes.length, 0)
    this.#next = Math.ceil(this.#next / this.#every) * this.#every
  }
}
