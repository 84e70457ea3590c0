import { type Buffer, isAscii, isUtf8 } from 'node:buffer'
import type { Connection, RowAppender } from '#duckdb/database.ts'
import { buildLimits } from '#model/limits.ts'
import type { Slice } from './extraction.ts'

export type Envelope = {
  readonly protocol: string
  readonly topic: string
  readonly clientId: string
  readonly receivedAtMicros: number
}

export type LoadedSlice = Slice & { readonly rows: number }

/** The slice that records are being appended to. */
export class LoadingSlice {
  readonly #slice: Slice
  readonly #frames: RowAppender
  readonly #records: RowAppender
  #frameCount = 0
  #rows = 0
  #payloadBytes = 0

  private constructor(slice: Slice, frames: RowAppender, records: RowAppender) {
    this.#slice = slice
    this.#frames = frames
    this.#records = records
  }

  static async create(connection: Connection, index: number, first: number): Promise<LoadingSlice> {
    const slice = { records: `records_${index}`, frames: `frames_${index}`, extracted: `extracted_${index}`, first }
    await connection.run(`CREATE TABLE ${slice.frames} (received_at BIGINT, protocol VARCHAR, topic VARCHAR, client_id VARCHAR)`)
    // A payload that is no UTF-8 is in the column for bytes, and `payload` is NULL.
    await connection.run(`CREATE TABLE ${slice.records} (frame INTEGER, payload VARCHAR, payload_bytes BLOB)`)
    return new LoadingSlice(slice, await connection.appender(slice.frames), await connection.appender(slice.records))
  }

  get rows(): number {
    return this.#rows
  }

  get isFull(): boolean {
    return this.#rows >= buildLimits.rowGroupRowsMax || this.#payloadBytes >= buildLimits.rowGroupBytes
  }

  addFrame({ protocol, topic, clientId, receivedAtMicros }: Envelope, payload: Buffer): (start: number, end: number) => void {
    const frame = this.#frameCount++
    this.#frames.appendBigInt(BigInt(receivedAtMicros))
    for (const text of [protocol, topic, clientId]) {
      if (text === '') this.#frames.appendNull()
      else this.#frames.appendVarchar(text)
    }
    this.#frames.endRow()
    const encoding = isAscii(payload) ? 'latin1' : isUtf8(payload) ? 'utf8' : undefined
    return (start, end) => {
      this.#records.appendInteger(frame)
      if (encoding !== undefined || isUtf8(payload.subarray(start, end))) {
        // Nothing is faster than a string of one byte per character.
        this.#records.appendVarchar(payload.toString(encoding ?? 'utf8', start, end))
        this.#records.appendNull()
      } else {
        this.#records.appendNull()
        this.#records.appendBlob(payload.subarray(start, end))
      }
      this.#records.endRow()
      this.#rows += 1
      this.#payloadBytes += end - start
    }
  }

  flush(): void {
    this.#frames.flushSync()
    this.#records.flushSync()
  }

  finish(): LoadedSlice {
    this.#frames.closeSync()
    this.#records.closeSync()
    return { ...this.#slice, rows: this.#rows }
  }
}
