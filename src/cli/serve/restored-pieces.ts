/**
 * Writes what was in the copies of a lost node: segments to its log, and idempotency keys to their files.
 *
 * Law: a restore may be repeated, and begins anew.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { keysLogName } from '#copies/key-copies.ts'
import { RequestFile } from '#ingest/idempotency/request-file.ts'
import { decodeStoredRequest, STORED_REQUEST_BYTES, type StoredRequest } from '#ingest/idempotency/stored-request.ts'
import type { Files } from '#lib/files.ts'
import { PieceWriter } from '#log/local/piece-writer.ts'
import { type PieceSink, pieceBytes, type SegmentPiece } from '#log/segment-piece.ts'

export type RestoredPiecesOptions = { readonly files: Files; readonly wal: string; readonly storedRequests: string }

export class RestoredPieces implements PieceSink {
  readonly #options: RestoredPiecesOptions
  readonly #log: PieceWriter
  readonly #keys = new Map<number, RequestFile>()

  private constructor(options: RestoredPiecesOptions) {
    this.#options = options
    this.#log = new PieceWriter(options.files, options.wal)
  }

  static async open(options: RestoredPiecesOptions): Promise<RestoredPieces> {
    await options.files.removeTree(options.storedRequests)
    await options.files.makeDirectory(options.storedRequests)
    return new RestoredPieces(options)
  }

  async write(piece: SegmentPiece): Promise<number> {
    if (piece.logName !== keysLogName) return await this.#log.write(piece)
    const requests = requestsIn(Buffer.concat(piece.chunks))
    if (requests.length > 0) await (await this.#fileOf(piece.seq)).append(requests)
    return pieceBytes(piece)
  }

  async close(): Promise<void> {
    await this.#log.close()
    for (const file of this.#keys.values()) {
      await file.sync()
      await file.close()
    }
    this.#keys.clear()
  }

  async #fileOf(hour: number): Promise<RequestFile> {
    const { files, storedRequests } = this.#options
    const path = join(storedRequests, `${hour}.requests`)
    const file = this.#keys.get(hour) ?? (await RequestFile.open(files, path, `${path}.damaged`))
    this.#keys.set(hour, file)
    return file
  }
}

/** They come from a store: what is no request is left out. */
function requestsIn(bytes: Buffer): readonly StoredRequest[] {
  const requests: StoredRequest[] = []
  for (let at = 0; at + STORED_REQUEST_BYTES <= bytes.length; at += STORED_REQUEST_BYTES) {
    const request = decodeStoredRequest(bytes, at)
    if (request !== undefined) requests.push(request)
  }
  return requests
}
