/**
 * Finds the stored requests of a segment, for segments that are copied.
 *
 * Owns: where in the files they are. Does not own: the files (request-files.ts), when their keys are put into the copy store (copies/key-copies.ts).
 * Law: a request is found here once it is in a file, which it is before its segment is sealed, until its segment is let go.
 */
import { Buffer } from 'node:buffer'
import { type KeyPart, type KeySource, type SegmentSeq, seqNameOf } from '#copies/key-copies.ts'
import { storedRequestLimits } from './limits.ts'
import type { RequestFile } from './request-file.ts'
import type { RequestFiles } from './request-files.ts'
import { encodeStoredRequest, type RequestSegment, STORED_REQUEST_BYTES } from './stored-request.ts'

const { readAtOnce } = storedRequestLimits

/** By the hour of their file, in ascending order. */
type Places = Map<number, number[]>

export class KeysBySegment implements KeySource {
  readonly #written: Pick<RequestFiles, 'hours' | 'isReadable'>
  /** Throws while requests of sealed segments may be in no file. */
  readonly #requireWritten: () => void
  /** Up to where each file was read. */
  readonly #read = new Map<number, number>()
  readonly #places = new Map<string, Places>()
  /** The segments that were copied at the last look. */
  #copied: ReadonlySet<string> = new Set()
  /** The highest seq of each log whose requests were looked through. */
  readonly #lastSeqs = new Map<string, number>()

  constructor(written: Pick<RequestFiles, 'hours' | 'isReadable'>, requireWritten: () => void) {
    this.#written = written
    this.#requireWritten = requireWritten
  }

  async refresh(copied: ReadonlySet<string>): Promise<void> {
    for (const name of this.#places.keys()) if (!copied.has(name)) this.#places.delete(name)
    if (copied.size === 0) return
    this.#requireWritten()
    if (!this.#written.isReadable) throw new Error('not all idempotency keys can be read')
    // All at once: a segment that begins from now on has its requests behind these ends.
    const ends = [...this.#written.hours].map(([hour, file]) => ({ hour, file, end: file.places }))
    if (this.#mayHaveMissed(copied)) {
      this.#read.clear()
      this.#places.clear()
    }
    this.#copied = copied
    for (const hour of this.#read.keys()) if (!this.#written.hours.has(hour)) this.#read.delete(hour)
    for (const { hour, file, end } of ends) {
      const from = this.#read.get(hour) ?? 0
      if (from >= end) continue
      await this.#look(hour, file, from, end)
      this.#read.set(hour, end)
    }
  }

  has(segment: SegmentSeq): boolean {
    return this.#places.has(seqNameOf(segment))
  }

  async *read(segments: readonly SegmentSeq[]): AsyncGenerator<KeyPart> {
    const wanted = new Map<number, number[][]>()
    for (const segment of segments)
      for (const [hour, places] of this.#places.get(seqNameOf(segment)) ?? []) {
        const ofHour = wanted.get(hour)
        if (ofHour === undefined) wanted.set(hour, [places])
        else ofHour.push(places)
      }
    for (const [hour, places] of wanted) {
      const file = this.#written.hours.get(hour)
      // Without a file, it is too old to be remembered.
      if (file === undefined) continue
      for await (const bytes of readPlaces(file, Uint32Array.from(places.flat()).sort())) yield { hour, bytes }
    }
  }

  letGo(segments: readonly SegmentSeq[]): void {
    for (const segment of segments) this.#places.delete(seqNameOf(segment))
  }

  knows(hour: number): boolean {
    return this.#written.hours.has(hour) || !this.#written.isReadable
  }

  /** Whether requests of a segment that was not copied before were looked through. Its log may have been unreadable, or had one copy. */
  #mayHaveMissed(copied: ReadonlySet<string>): boolean {
    for (const name of copied) {
      const at = name.lastIndexOf('/')
      if (!this.#copied.has(name) && Number(name.slice(at + 1)) <= (this.#lastSeqs.get(name.slice(0, at)) ?? -1)) return true
    }
    return false
  }

  async #look(hour: number, file: RequestFile, from: number, end: number): Promise<void> {
    let last: RequestSegment | undefined
    let name: string | undefined
    await file.scan(from, end, (segment, place) => {
      if (segment !== last) {
        last = segment
        const { endpointId: logName, seq } = segment
        name = seqNameOf({ logName, seq })
        if (!this.#copied.has(name)) name = undefined
        if (seq > (this.#lastSeqs.get(logName) ?? -1)) this.#lastSeqs.set(logName, seq)
      }
      if (name !== undefined) this.#note(name, hour, place)
    })
  }

  #note(name: string, hour: number, place: number): void {
    const places: Places = this.#places.get(name) ?? new Map()
    this.#places.set(name, places)
    const ofHour = places.get(hour)
    if (ofHour === undefined) places.set(hour, [place])
    else ofHour.push(place)
  }
}

/** Yields the requests at these places, encoded, in parts of `readAtOnce`. The places ascend. */
async function* readPlaces(file: RequestFile, places: Uint32Array): AsyncGenerator<Uint8Array> {
  let bytes = Buffer.alloc(readAtOnce * STORED_REQUEST_BYTES)
  let end = 0
  for (let next = 0; next < places.length; ) {
    const from = places[next] ?? 0
    const until = Math.min(from + readAtOnce, file.places)
    for await (const [place, request] of file.requests(from, until)) {
      while ((places[next] ?? until) < place) next += 1
      if (places[next] !== place) continue
      encodeStoredRequest(request, bytes, end)
      end += STORED_REQUEST_BYTES
      if (end < bytes.length) continue
      yield bytes
      bytes = Buffer.alloc(readAtOnce * STORED_REQUEST_BYTES)
      end = 0
    }
    while (next < places.length && (places[next] ?? until) < until) next += 1
    if (until <= from) break
  }
  if (end > 0) yield bytes.subarray(0, end)
}
