/**
 * The records of one segment, loaded once into DuckDB, and what is made of them: raw Parquet, and for each view Parquet and DLQ.
 *
 * Owns: the tables. Does not own: where records come from, which files are wanted, where they go.
 * Law: `records` and `extracted` have the same rows in the same order; a record's index is its row id.
 */
import { type Buffer, isAscii, isUtf8 } from 'node:buffer'
import { type Connection, Database, type RowAppender } from '#duckdb/database.ts'
import { quoteIdentifier, quoteLiteral } from '#duckdb/quote.ts'
import { assert } from '#lib/assert.ts'
import { buildLimits } from '#model/limits.ts'
import type { CompiledView } from './compile.ts'
import { dlqSql } from './dlq.ts'
import { extractionSql, verdicts } from './extraction.ts'

export type RecordTableOptions = {
  /** The only directory that is written to, spilled memory included. */
  readonly directory: string
  readonly memoryBytes: number
  readonly threads: number
  readonly segmentSeq: number
  readonly signal: AbortSignal
  readonly statementTimeoutMs: number
}

export type Envelope = {
  readonly protocol: string
  readonly topic: string
  readonly clientId: string
  readonly receivedAtMicros: number
}

export type NamedView = { readonly name: string; readonly version: number; readonly compiled: CompiledView }

/** Law: processed = accepted + dropped + dlq. */
export type RowCounts = {
  readonly processed: number
  readonly accepted: number
  readonly dropped: number
  readonly dlq: number
  readonly castNulls: number
  /** DLQ rows by error code. */
  readonly errors: Readonly<Record<string, number>>
  readonly lastError: { readonly code: string; readonly message: string } | undefined
}

/** Rows that are extracted by one statement: as many as DuckDB keeps in one row group. */
const SLICE_ROWS = 122_880

export class RecordTable {
  readonly #options: RecordTableOptions
  readonly #database: Database
  readonly #connection: Connection
  readonly #frames: RowAppender
  readonly #records: RowAppender
  #frameCount = 0
  #recordCount = 0
  #payloadBytes = 0
  /** The first slice that is no JSON throughout makes all later ones ask first. */
  #guarded = false

  private constructor(
    options: RecordTableOptions,
    database: Database,
    connection: Connection,
    frames: RowAppender,
    records: RowAppender,
  ) {
    this.#options = options
    this.#database = database
    this.#connection = connection
    this.#frames = frames
    this.#records = records
  }

  static async open(options: RecordTableOptions): Promise<RecordTable> {
    const { directory, memoryBytes, threads } = options
    const database = await Database.open({ directories: [directory], spillDirectory: `${directory}/spill`, memoryBytes, threads })
    try {
      const connection = await database.connect()
      await connection.run('CREATE TABLE frames (received_at BIGINT, protocol VARCHAR, topic VARCHAR, client_id VARCHAR)')
      // A payload that is no UTF-8 is in the column for bytes, and `payload` is NULL.
      await connection.run('CREATE TABLE records (frame INTEGER, payload VARCHAR, payload_bytes BLOB)')
      const frames = await connection.appender('frames')
      return new RecordTable(options, database, connection, frames, await connection.appender('records'))
    } catch (error) {
      database.close()
      throw error
    }
  }

  get recordCount(): number {
    return this.#recordCount
  }

  /** Starts a frame. The answer appends its records: those bytes of the payload. The bytes are copied. */
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
      this.#recordCount += 1
      this.#payloadBytes += end - start
    }
  }

  /** Hands on what was appended. To be called often, so that little is held outside DuckDB's memory limit. */
  flush(): void {
    this.#options.signal.throwIfAborted()
    this.#frames.flushSync()
    this.#records.flushSync()
  }

  /** Every record as it was sent. */
  async writeRaw(path: string): Promise<void> {
    await this.#copy(
      `SELECT make_timestamp(received_at) AS ingested_at, protocol, topic, client_id,
         CAST(${this.#options.segmentSeq} AS BIGINT) AS segment_seq, records.rowid AS record_index, payload, payload_bytes
       FROM records JOIN frames ON frames.rowid = records.frame`,
      path,
    )
  }

  /** Decides all rows for the views. Replaces what was extracted before. */
  async extract(views: readonly NamedView[]): Promise<ExtractedViews> {
    const compiled = views.map((view) => view.compiled)
    await this.#run('DROP TABLE IF EXISTS extracted')
    const nothing = { from: 0, to: 0 }
    const { sql, values } = extractionSql(compiled, { guarded: true, range: nothing })
    await this.#run(`CREATE TABLE extracted AS ${sql}`)
    for (let from = 0; from < this.#recordCount; from += SLICE_ROWS) {
      const range = { from, to: from + SLICE_ROWS }
      const extractSlice = (guarded: boolean) =>
        this.#run(`INSERT INTO extracted ${extractionSql(compiled, { guarded, range }).sql}`)
      if (this.#guarded) await extractSlice(true)
      else {
        try {
          await extractSlice(false)
        } catch (error) {
          if (!isMalformedJson(error)) throw error
          this.#guarded = true
          await extractSlice(true)
        }
      }
    }
    return { views, values }
  }

  /** What became of the rows for one of the extracted views. */
  async count(extracted: ExtractedViews, view: number): Promise<RowCounts> {
    const { rows } = await this.#query(
      `SELECT verdict_${view}, count(*), sum(cast_nulls_${view}) FROM extracted GROUP BY ALL ORDER BY ALL`,
    )
    const by = { processed: 0, accepted: 0, dropped: 0, dlq: 0, castNulls: 0 }
    for (const [verdict, count, castNulls] of rows.map((row) => row.map(Number))) {
      assert(verdict !== undefined && count !== undefined && castNulls !== undefined, 'a verdict has counts')
      by.processed += count
      if (verdict === verdicts.accepted) by.accepted += count
      else if (verdict === verdicts.filteredOut || verdict === verdicts.filterUnknown) by.dropped += count
      else by.dlq += count
      // A value became NULL only where the row was not sent elsewhere for other reasons.
      if (verdict === verdicts.accepted || verdict === verdicts.filterUnknown) by.castNulls += castNulls
    }
    assert(by.processed === this.#recordCount, `a view decided ${by.processed} of ${this.#recordCount} records`)
    return { ...by, ...(await this.#errors(extracted, view, by.dlq)) }
  }

  async writeAccepted({ views, values }: ExtractedViews, view: number, path: string): Promise<void> {
    const columns = views[view]?.compiled.columns.map(({ name }, index) => `${values[view]?.[index]} AS ${quoteIdentifier(name)}`)
    await this.#copy(`SELECT ${columns?.join(', ')} FROM extracted WHERE verdict_${view} = ${verdicts.accepted}`, path)
  }

  /** One JSON object per row, gzipped. */
  async writeDlq(extracted: ExtractedViews, view: number, path: string): Promise<void> {
    await this.#run(`COPY (${this.#dlq(extracted, view)}) TO ${quoteLiteral(path)} (FORMAT json, COMPRESSION gzip)`)
  }

  close(): void {
    this.#database.close()
  }

  async #errors(extracted: ExtractedViews, view: number, dlq: number): Promise<Pick<RowCounts, 'errors' | 'lastError'>> {
    if (dlq === 0) return { errors: {}, lastError: undefined }
    const rows = this.#dlq(extracted, view)
    const codes = await this.#query(`SELECT error_code, count(*) FROM (${rows}) GROUP BY ALL ORDER BY ALL`)
    const last = await this.#query(`SELECT error_code, message FROM (${rows}) ORDER BY record_index DESC LIMIT 1`)
    const errors = Object.fromEntries(codes.rows.map(([code, count]) => [String(code), Number(count)]))
    assert(Object.values(errors).reduce((sum, count) => sum + count, 0) === dlq, 'every DLQ row has an error code')
    return { errors, lastError: { code: String(last.rows[0]?.[0]), message: String(last.rows[0]?.[1]) } }
  }

  #dlq({ views }: ExtractedViews, view: number): string {
    const named = views[view]
    assert(named !== undefined, 'the view is among those extracted')
    return dlqSql(named, view, this.#options.segmentSeq)
  }

  /** Row groups small enough to be held in memory, however large the records are. */
  #rowGroupRows(): number {
    const { rowGroupBytes, rowGroupRowsMax } = buildLimits
    const rows = Math.floor((rowGroupBytes * this.#recordCount) / Math.max(this.#payloadBytes, 1))
    return Math.min(Math.max(rows - (rows % VECTOR_ROWS), VECTOR_ROWS), rowGroupRowsMax)
  }

  async #copy(select: string, path: string): Promise<void> {
    await this.#run(
      `COPY (${select}) TO ${quoteLiteral(path)} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE ${this.#rowGroupRows()})`,
    )
  }

  #run(sql: string): Promise<void> {
    return this.#connection.run(sql, this.#statement)
  }

  #query(sql: string) {
    return this.#connection.query(sql, this.#statement)
  }

  get #statement() {
    return { signal: this.#options.signal, timeoutMs: this.#options.statementTimeoutMs }
  }
}

export type ExtractedViews = { readonly views: readonly NamedView[]; readonly values: readonly (readonly string[])[] }

/** Rows that DuckDB works on at once; a row group is made of whole ones. */
const VECTOR_ROWS = 2_048

function isMalformedJson(error: unknown): boolean {
  return error instanceof Error && error.message.includes('Malformed JSON')
}
