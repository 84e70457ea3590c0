/**
 * The requests of one hour, in a file that only grows.
 *
 * Owns: the file and where each request is in it. Does not own: for how long it is kept (stored-requests.ts).
 * Law: what `append` was given survives a crash once `sync` has resolved. A damaged request harms no other one: it is skipped, and its place
 * stays taken, as that of a forgotten one does, which loses its id. Only an end that was never written completely is cut, and the original of a damaged file is kept before.
 */
import { Buffer } from 'node:buffer'
import { dirname } from 'node:path'
import { copyBytes, type Files, type OpenFile, replaceDurably } from '#lib/files.ts'
import { DigestIndex } from './digest-index.ts'
import { storedRequestLimits } from './limits.ts'
import { DIGEST_BYTES } from './request-digests.ts'
import {
  decodeSegment,
  decodeStoredRequest,
  encodeStoredRequest,
  isOfSameSegment,
  type RequestSegment,
  STORED_REQUEST_BYTES,
  type StoredRequest,
} from './stored-request.ts'

const { readAtOnce } = storedRequestLimits
const SECTOR_BYTES = 512
const noBytes = Buffer.alloc(STORED_REQUEST_BYTES)
const noId = Buffer.alloc(DIGEST_BYTES)

export class RequestFile {
  readonly #file: OpenFile
  readonly #index = new DigestIndex()
  /** How many there are of each endpoint. */
  readonly counts = new Map<string, number>()
  /** Places of requests, damaged ones included. */
  #places = 0
  #damagedAtStart = 0
  /** Places whose request was whole when the file was opened. */
  readonly #damagedSince = new Set<number>()
  /** Places that are known to be durable. */
  #synced = 0
  #isSynced = true

  private constructor(file: OpenFile) {
    this.#file = file
  }

  /**
   * Keeps a copy of a damaged file as `quarantinePath`. At least `written` requests are known to have been durable. Throws if it cannot be
   * read, or not be copied.
   */
  static async open(files: Files, path: string, quarantinePath: string, written = 0): Promise<RequestFile> {
    const isNew = (await files.bytes(path)) === undefined
    const file = await files.open(path, isNew ? 'create' : 'update')
    try {
      const opened = new RequestFile(file)
      // Also for a file that exists: who created it may have died before its name was durable.
      await files.syncDirectory(dirname(path))
      if (!isNew) await opened.#load(files, quarantinePath, written)
      // A crash left them uncounted, and perhaps unsynced.
      const isDurable =
        opened.#places <= written ||
        (await file.sync().then(
          () => true,
          () => false,
        ))
      opened.#synced = isDurable ? opened.#places : written
      return opened
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** Requests that cannot be read any more. */
  get damaged(): number {
    return this.#damagedAtStart + this.#damagedSince.size
  }

  /** How many are durable for sure, damaged ones included. */
  get written(): number {
    return this.#synced
  }

  /** How many there are, damaged ones included, durable or not. */
  get places(): number {
    return this.#places
  }

  get indexBytes(): number {
    return this.#index.bytes
  }

  /** Throws if the file cannot be read. */
  async find(id: Buffer): Promise<StoredRequest | undefined> {
    for (const place of this.#index.find(id)) {
      const request = await this.#read(place)
      if (request === undefined) this.#damagedSince.add(place)
      else if (request.id.equals(id)) return request
    }
    return undefined
  }

  /** Throws if the file cannot be read. */
  async probe(): Promise<void> {
    const bytes = Buffer.alloc(readAtOnce * STORED_REQUEST_BYTES)
    for (let at = 0; at < this.#places; at += readAtOnce) await this.#file.read(bytes, at * STORED_REQUEST_BYTES)
  }

  /** Yields the requests that can be read and are not forgotten, with their places. Throws if the file cannot be read. */
  async *requests(from = 0, end = this.#places): AsyncGenerator<readonly [number, StoredRequest]> {
    for await (const { first, bytes } of this.#parts(from, end))
      for (let at = 0; at < bytes.length; at += STORED_REQUEST_BYTES) {
        const request = decodeStoredRequest(bytes, at)
        if (request !== undefined && !request.id.equals(noId)) yield [first + at / STORED_REQUEST_BYTES, request]
      }
  }

  /**
   * Calls with the segment of each request, and its place. Requests in a row have the same object, if their segment is the same. Some may be
   * damaged or forgotten. Throws if the file cannot be read.
   */
  async scan(from: number, end: number, onRequest: (segment: RequestSegment, place: number) => void): Promise<void> {
    for await (const { first, bytes } of this.#parts(from, end)) {
      let last = 0
      let segment: RequestSegment | undefined
      for (let at = 0; at < bytes.length; at += STORED_REQUEST_BYTES) {
        if (segment === undefined || !isOfSameSegment(bytes, at, last)) segment = decodeSegment(bytes, at)
        last = at
        if (segment !== undefined) onRequest(segment, first + at / STORED_REQUEST_BYTES)
      }
    }
  }

  /** Yields the bytes of whole requests. They change at the next step. */
  async *#parts(from: number, end: number): AsyncGenerator<{ readonly first: number; readonly bytes: Buffer }> {
    const bytes = Buffer.alloc(readAtOnce * STORED_REQUEST_BYTES)
    for (let first = from; first < end; first += readAtOnce) {
      const wanted = bytes.subarray(0, Math.min(readAtOnce, end - first) * STORED_REQUEST_BYTES)
      const got = await this.#file.read(wanted, first * STORED_REQUEST_BYTES)
      yield { first, bytes: wanted.subarray(0, got - (got % STORED_REQUEST_BYTES)) }
    }
  }

  /** After an error nothing was added. */
  async append(requests: readonly StoredRequest[]): Promise<void> {
    const bytes = Buffer.alloc(requests.length * STORED_REQUEST_BYTES)
    for (const [index, request] of requests.entries()) encodeStoredRequest(request, bytes, index * STORED_REQUEST_BYTES)
    await this.#file.write([bytes], this.#places * STORED_REQUEST_BYTES)
    this.#isSynced = false
    for (const request of requests) this.#add(request)
  }

  async sync(): Promise<void> {
    if (this.#isSynced) return
    const places = this.#places
    await this.#file.sync()
    this.#synced = places
    this.#isSynced = places === this.#places
  }

  /** Returns how many were forgotten, durably. Throws if the file cannot be read or written. */
  async forget(isForgotten: (request: StoredRequest) => boolean): Promise<number> {
    let forgotten = 0
    const bytes = Buffer.alloc(STORED_REQUEST_BYTES)
    for await (const [place, request] of this.requests()) {
      if (!isForgotten(request)) continue
      encodeStoredRequest({ ...request, id: noId }, bytes, 0)
      await this.#file.write([bytes], place * STORED_REQUEST_BYTES)
      forgotten += 1
    }
    if (forgotten > 0) await this.#file.sync()
    return forgotten
  }

  async close(): Promise<void> {
    await this.#file.close()
  }

  async #load(files: Files, quarantinePath: string, written: number): Promise<void> {
    const bytes = Buffer.alloc(readAtOnce * STORED_REQUEST_BYTES)
    /** Damaged requests at the end that look as if they had never been written completely. */
    let unwritten = 0
    for (let got = bytes.length; got === bytes.length; ) {
      got = await this.#file.read(bytes, this.#places * STORED_REQUEST_BYTES)
      for (let at = 0; at + STORED_REQUEST_BYTES <= got; at += STORED_REQUEST_BYTES) {
        const request = decodeStoredRequest(bytes, at)
        const isUnwritten = request === undefined && isPartlyWritten(bytes, at, this.#places * STORED_REQUEST_BYTES)
        unwritten = isUnwritten ? unwritten + 1 : 0
        if (request === undefined) this.#damagedAtStart += 1
        if (request === undefined || request.id.equals(noId)) this.#places += 1
        else this.#add(request)
      }
    }
    unwritten = Math.max(0, Math.min(unwritten, this.#places - written))
    this.#places -= unwritten
    this.#damagedAtStart -= unwritten
    if (this.#damagedAtStart > 0) await keepCopy(files, this.#file, quarantinePath)
    const end = this.#places * STORED_REQUEST_BYTES
    if ((await this.#file.bytes()) > end) await this.#file.truncate(end)
  }

  async #read(place: number): Promise<StoredRequest | undefined> {
    const bytes = Buffer.alloc(STORED_REQUEST_BYTES)
    await this.#file.read(bytes, place * STORED_REQUEST_BYTES)
    return decodeStoredRequest(bytes, 0)
  }

  #add({ id, endpointId }: StoredRequest): void {
    this.#index.add(id, this.#places)
    this.#places += 1
    this.counts.set(endpointId, (this.counts.get(endpointId) ?? 0) + 1)
  }
}

/** A power failure may leave a longer file whose new sectors were not written: they are zeros. Damage looks otherwise. */
function isPartlyWritten(bytes: Buffer, at: number, position: number): boolean {
  const isEmptyFrom = (start: number) =>
    start < STORED_REQUEST_BYTES &&
    bytes.subarray(at + start, at + STORED_REQUEST_BYTES).equals(noBytes.subarray(0, STORED_REQUEST_BYTES - start))
  return isEmptyFrom(0) || isEmptyFrom((SECTOR_BYTES - (position % SECTOR_BYTES)) % SECTOR_BYTES)
}

/** A copy that is kept already has more of the original. */
async function keepCopy(files: Files, from: OpenFile, path: string): Promise<void> {
  if ((await files.bytes(path)) !== undefined) return
  const range = { start: 0, end: await from.bytes() }
  await replaceDurably(files, path, (copy) => copyBytes(from, range, copy, 0, readAtOnce * STORED_REQUEST_BYTES))
}
