/**
 * Finds the stored requests of a segment, for segments that are copied.
 *
 * Owns: where in the files they are. Does not own: the files (request-files.ts), when their keys are put into the copy store (copies/key-copies.ts).
 * Law: a request is found here once it is in a file, which it is before its segment is sealed, until its segment is let go.
 */
import { Buffer } from 'node:buffer'
import { type KeySource, type SegmentSeq, seqNameOf } from '#copies/key-copies.ts'
import { storedRequestLimits } from './limits.ts'
import type { RequestFile } from './request-file.ts'
import type { RequestFiles } from './request-files.ts'
import { encodeStoredRequest, STORED_REQUEST_BYTES, type StoredRequest } from './stored-request.ts'

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

  constructor(written: Pick<RequestFiles, 'hours' | 'isReadable'>, requireWritten: () => void) {
    this.#written = written
    this.#requireWritten = requireWritten
  }

  async refresh(copied: ReadonlySet<string>): Promise<void> {
    this.#requireWritten()
    if (copied.size === 0) return
    const { hours } = this.#written
    for (const hour of this.#read.keys()) if (!hours.has(hour)) this.#read.delete(hour)
    for (const [hour, file] of hours) {
      const end = file.places
      for await (const [place, { endpointId: logName, seq }] of file.requests(this.#read.get(hour) ?? 0, end))
        if (copied.has(seqNameOf({ logName, seq }))) this.#note({ logName, seq }, hour, place)
      this.#read.set(hour, end)
    }
  }

  has(segment: SegmentSeq): boolean {
    return this.#places.has(seqNameOf(segment))
  }

  async bytesOf(segments: readonly SegmentSeq[]): Promise<ReadonlyMap<number, Uint8Array>> {
    const wanted = new Map<number, Set<number>>()
    for (const segment of segments)
      for (const [hour, places] of this.#places.get(seqNameOf(segment)) ?? []) {
        const ofHour = wanted.get(hour) ?? new Set()
        wanted.set(hour, ofHour)
        for (const place of places) ofHour.add(place)
      }
    const found = new Map<number, Uint8Array>()
    for (const [hour, places] of wanted) {
      const file = this.#written.hours.get(hour)
      // It is too old to be remembered.
      if (file === undefined) continue
      const requests = await readPlaces(file, places)
      const bytes = Buffer.alloc(requests.length * STORED_REQUEST_BYTES)
      for (const [index, request] of requests.entries()) encodeStoredRequest(request, bytes, index * STORED_REQUEST_BYTES)
      if (bytes.length > 0) found.set(hour, bytes)
    }
    return found
  }

  letGo(segments: readonly SegmentSeq[]): void {
    for (const segment of segments) this.#places.delete(seqNameOf(segment))
  }

  knows(hour: number): boolean {
    return this.#written.hours.has(hour) || !this.#written.isReadable
  }

  #note(segment: SegmentSeq, hour: number, place: number): void {
    const name = seqNameOf(segment)
    const places: Places = this.#places.get(name) ?? new Map()
    this.#places.set(name, places)
    const ofHour = places.get(hour)
    if (ofHour === undefined) places.set(hour, [place])
    else ofHour.push(place)
  }
}

/** Reads each part of the file that has some of them once. */
async function readPlaces(file: RequestFile, places: ReadonlySet<number>): Promise<readonly StoredRequest[]> {
  const requests: StoredRequest[] = []
  const parts = new Set([...places].map((place) => Math.floor(place / readAtOnce)))
  for (const part of parts) {
    const from = part * readAtOnce
    for await (const [place, request] of file.requests(from, Math.min(from + readAtOnce, file.places)))
      if (places.has(place)) requests.push(request)
  }
  return requests
}
