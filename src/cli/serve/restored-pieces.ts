/**
 * Writes what was in the copies of a lost node: segments to its log, and idempotency keys to their files.
 *
 * Law: a restore may be repeated, and begins anew. Whatever the store has, only keys that a node can have written become files.
 */
import { Buffer } from 'node:buffer'
import { dirname, join } from 'node:path'
import { keysLogName } from '#copies/key-copies.ts'
import { HOUR_MS } from '#ingest/idempotency/request-files.ts'
import { decodeStoredRequest, STORED_REQUEST_BYTES, type StoredRequest } from '#ingest/idempotency/stored-request.ts'
import type { Files, OpenFile } from '#lib/files.ts'
import { PieceWriter } from '#log/local/piece-writer.ts'
import { type PieceSink, pieceBytes, type SegmentPiece } from '#log/segment-piece.ts'
import type { SegmentRef } from '#log/segment-source.ts'

export type RestoredPiecesOptions = { readonly files: Files; readonly wal: string; readonly storedRequests: string }

/** Keys of more hours are left out: each has a file, which the node that takes over keeps open. A node has those of about 26. */
const hoursMax = 100

export class RestoredPieces implements PieceSink {
  readonly #options: RestoredPiecesOptions
  readonly #log: PieceWriter
  /** The size of the file of each hour. */
  readonly #ends = new Map<number, number>()
  /** The file that was written to last. */
  #open: OpenFile | undefined

  private constructor(options: RestoredPiecesOptions) {
    this.#options = options
    this.#log = new PieceWriter(options.files, options.wal)
  }

  static async open(options: RestoredPiecesOptions): Promise<RestoredPieces> {
    await options.files.removeTree(options.wal)
    await options.files.removeTree(options.storedRequests)
    await options.files.makeDirectory(options.storedRequests)
    return new RestoredPieces(options)
  }

  async write(piece: SegmentPiece): Promise<number> {
    if (piece.logName !== keysLogName) return await this.#log.write(piece)
    const requests = requestsIn(Buffer.concat(piece.chunks), piece.seq)
    if (requests.length > 0 && (this.#ends.has(piece.seq) || this.#ends.size < hoursMax))
      await this.#append(piece.seq, Buffer.concat(requests))
    return pieceBytes(piece)
  }

  /** Segments of keys are never removed. */
  async remove(segment: SegmentRef): Promise<void> {
    await this.#log.remove(segment)
  }

  async close(): Promise<void> {
    await this.#log.close()
    await this.#closeFile()
  }

  async #append(hour: number, bytes: Uint8Array): Promise<void> {
    const { files, storedRequests } = this.#options
    const path = join(storedRequests, `${hour}.requests`)
    const end = this.#ends.get(hour)
    if (this.#open?.path !== path) {
      await this.#closeFile()
      this.#open = await files.open(path, end === undefined ? 'create' : 'update')
    }
    await this.#open.write([bytes], end ?? 0)
    this.#ends.set(hour, (end ?? 0) + bytes.byteLength)
  }

  async #closeFile(): Promise<void> {
    const open = this.#open
    this.#open = undefined
    if (open === undefined) return
    await open.sync()
    await open.close()
    await this.#options.files.syncDirectory(dirname(open.path))
  }
}

/** Returns the bytes of each. They come from a store: what is no request of that hour is left out. */
function requestsIn(bytes: Buffer, hour: number): readonly Buffer[] {
  const requests: Buffer[] = []
  for (let at = 0; at + STORED_REQUEST_BYTES <= bytes.length; at += STORED_REQUEST_BYTES) {
    const request = decodeStoredRequest(bytes, at)
    if (request !== undefined && isOf(hour, request)) requests.push(bytes.subarray(at, at + STORED_REQUEST_BYTES))
  }
  return requests
}

function isOf(hour: number, { storedAtMs, seq, bytes }: StoredRequest): boolean {
  return Math.floor(storedAtMs / HOUR_MS) === hour && [seq, bytes].every((number) => Number.isSafeInteger(number) && number >= 0)
}
