import { type Buffer, isAscii, isUtf8 } from 'node:buffer'
import type { Connection, RowAppender } from '#duckdb/database.ts'
import { buildLimits } from './limits.ts'
import { type Piece, VECTOR_ROWS } from './pieces.ts'

/** Tables of some of the segment's records, in the order in which they arrived. */
type Slice = {
  /** The table of records: received_at, source (a row id of the table `sources`), payload, payload_bytes. */
  readonly records: string
  /** The table with the results of `extractionSql`. */
  readonly extracted: string
  /** The index of its first record in the segment. */
  readonly first: number
}

/** `piece` has all rows of the slice. */
export type LoadedSlice = Slice & { readonly rows: number; readonly piece: Piece }

export type LoadingFrame = {
  readonly receivedAt: bigint
  /** A row id of the table `sources`. */
  readonly source: number
  readonly payload: Buffer
  /** Encoding of the whole payload; undefined if it is not valid UTF-8. */
  readonly encoding: 'latin1' | 'utf8' | undefined
}

/** ASCII is decoded as latin1, which is faster. */
export function encodingOf(payload: Buffer): LoadingFrame['encoding'] {
  return isAscii(payload) ? 'latin1' : isUtf8(payload) ? 'utf8' : undefined
}

/** The slice that records are being appended to. */
export class LoadingSlice {
  readonly #slice: Slice
  readonly #records: RowAppender
  #rows = 0
  /** Size of the records that DuckDB will hold in memory at once. */
  #vectorBytes = 0
  #isFull = false

  private constructor(slice: Slice, records: RowAppender) {
    this.#slice = slice
    this.#records = records
  }

  static async create(connection: Connection, index: number, first: number): Promise<LoadingSlice> {
    const slice = { records: `records_${index}`, extracted: `extracted_${index}`, first }
    // A payload that is not UTF-8 is stored in the column for bytes, and `payload` is NULL.
    await connection.run(
      `CREATE TABLE ${slice.records} (received_at BIGINT, source INTEGER, payload VARCHAR, payload_bytes BLOB)`,
    )
    return new LoadingSlice(slice, await connection.appender(slice.records))
  }

  get rows(): number {
    return this.#rows
  }

  get isFull(): boolean {
    return this.#isFull
  }

  /** Appends a range of the frame's payload as a record. */
  add({ receivedAt, source, payload, encoding }: LoadingFrame, start: number, end: number): void {
    this.#records.appendBigInt(receivedAt)
    this.#records.appendInteger(source)
    if (encoding !== undefined || isUtf8(payload.subarray(start, end))) {
      // A latin1 string is the fastest to append.
      this.#records.appendVarchar(payload.toString(encoding ?? 'utf8', start, end))
      this.#records.appendNull()
    } else {
      this.#records.appendNull()
      this.#records.appendBlob(payload.subarray(start, end))
    }
    this.#records.endRow()
    this.#count(end - start)
  }

  flush(): void {
    this.#records.flushSync()
  }

  finish(): LoadedSlice {
    this.#records.closeSync()
    const rows = this.#rows
    return { ...this.#slice, rows, piece: { ...this.#slice, from: 0, to: rows, rows } }
  }

  #count(bytes: number): void {
    if (this.#rows % VECTOR_ROWS === 0) this.#vectorBytes = 0
    this.#rows += 1
    this.#vectorBytes += bytes
    this.#isFull = this.#vectorBytes >= buildLimits.vectorBytes
  }
}
