/**
 * The records of one segment, loaded once into DuckDB, and what is made of them: raw Parquet, and for each view Parquet and DLQ.
 *
 * Owns: the tables. Does not own: where records come from, which files are wanted, where they go.
 * The records are cut into slices of some megabytes, each in tables of its own: DuckDB works on 2048 rows at once, so a table of large
 * records would need gigabytes of memory, and a slice that holds something that is no JSON costs only itself twice.
 *
 * Law: the tables of records and of what was extracted have the same rows in the same order.
 */
import type { Buffer } from 'node:buffer'
import { type Connection, Database } from '#duckdb/database.ts'
import { quoteIdentifier, quoteLiteral } from '#duckdb/quote.ts'
import { assert } from '#lib/assert.ts'
import { buildLimits } from '#model/limits.ts'
import type { CompiledView } from './compile.ts'
import { dlqSql } from './dlq.ts'
import { extractionSql, verdicts } from './extraction.ts'
import { encodingOf, type LoadedSlice, type LoadingFrame, LoadingSlice } from './slice.ts'
import { type RecordSource, Sources } from './sources.ts'

export type RecordTableOptions = {
  /** The only directory that is written to, spilled memory included. */
  readonly directory: string
  readonly memoryBytes: number
  readonly segmentSeq: number
  readonly signal: AbortSignal
  readonly statementTimeoutMs: number
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

export class RecordTable {
  readonly #options: RecordTableOptions
  readonly #database: Database
  readonly #connection: Connection
  readonly #sources: Sources
  readonly #slices: LoadedSlice[] = []
  #loading: LoadingSlice
  #recordCount = 0
  /** The first slice that is no JSON throughout makes all later ones ask first. */
  #guarded = false

  private constructor(
    options: RecordTableOptions,
    database: Database,
    connection: Connection,
    sources: Sources,
    loading: LoadingSlice,
  ) {
    this.#options = options
    this.#database = database
    this.#connection = connection
    this.#sources = sources
    this.#loading = loading
  }

  static async open(options: RecordTableOptions): Promise<RecordTable> {
    const { directory, memoryBytes } = options
    const database = await Database.open({ directories: [directory], spillDirectory: `${directory}/spill`, memoryBytes })
    try {
      const connection = await database.connect()
      const sources = await Sources.create(connection)
      return new RecordTable(options, database, connection, sources, await LoadingSlice.create(connection, 0, 0))
    } catch (error) {
      database.close()
      throw error
    }
  }

  /** Starts a frame. The answer appends its records: those bytes of the payload. The bytes are copied. */
  addFrame(
    envelope: RecordSource & { readonly receivedAtMicros: number },
    payload: Buffer,
  ): (start: number, end: number) => void {
    const receivedAt = BigInt(envelope.receivedAtMicros)
    const frame: LoadingFrame = { receivedAt, source: this.#sources.add(envelope), payload, encoding: encodingOf(payload) }
    return (start, end) => {
      this.#loading.add(frame, start, end)
      this.#recordCount += 1
    }
  }

  /** Then `flush` must come before the next record. */
  get isFull(): boolean {
    return this.#loading.isFull
  }

  /** Hands on what was appended. To be called now and then, so that little is held outside DuckDB's memory limit. */
  async flush(): Promise<void> {
    this.#options.signal.throwIfAborted()
    this.#sources.flush()
    this.#loading.flush()
    if (!this.#loading.isFull) return
    this.#slices.push(this.#loading.finish())
    this.#loading = await LoadingSlice.create(this.#connection, this.#slices.length, this.#recordCount)
  }

  /** To be called after the last record. */
  finish(): void {
    this.#sources.flush()
    this.#slices.push(this.#loading.finish())
  }

  /** Every record as it was sent. */
  async writeRaw(path: string): Promise<void> {
    const rows = this.#slices.map(
      ({ records, first }) =>
        `SELECT received_at, source, ${first} + rowid AS record_index, payload, payload_bytes FROM ${records}`,
    )
    await this.#copy(
      `SELECT make_timestamp(received_at) AS ingested_at, protocol, topic, client_id,
         CAST(${this.#options.segmentSeq} AS BIGINT) AS segment_seq, CAST(record_index AS BIGINT) AS record_index, payload, payload_bytes
       FROM (${rows.join(' UNION ALL ')}) AS records JOIN sources ON sources.rowid = records.source`,
      path,
    )
  }

  /** Decides all rows for the views. Replaces what was extracted before. */
  async extract(views: readonly NamedView[]): Promise<ExtractedViews> {
    const compiled = views.map((view) => view.compiled)
    let values: ExtractedViews['values'] = []
    for (const slice of this.#slices) {
      const extractSlice = async (guarded: boolean): Promise<void> => {
        const extraction = extractionSql(compiled, { guarded, records: slice.records })
        values = extraction.values
        await this.#run(`CREATE OR REPLACE TABLE ${slice.extracted} AS ${extraction.sql}`)
      }
      try {
        await extractSlice(this.#guarded)
      } catch (error) {
        if (this.#guarded || !isMalformedJson(error)) throw error
        this.#guarded = true
        await extractSlice(true)
      }
    }
    return { views, values }
  }

  /** What became of the rows for one of the extracted views. */
  async count(extracted: ExtractedViews, view: number): Promise<RowCounts> {
    const { rows } = await this.#query(
      `SELECT verdict_${view}, count(*), sum(cast_nulls_${view}) FROM (${this.#slices.map(({ extracted: table }) => `SELECT verdict_${view}, cast_nulls_${view} FROM ${table}`).join(' UNION ALL ')})
       GROUP BY ALL ORDER BY ALL`,
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
    const rows = this.#slices.map(
      ({ extracted }) => `SELECT ${columns?.join(', ')} FROM ${extracted} WHERE verdict_${view} = ${verdicts.accepted}`,
    )
    await this.#copy(rows.join(' UNION ALL '), path)
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
    return dlqSql(named, view, this.#slices, this.#options.segmentSeq)
  }

  async #copy(select: string, path: string): Promise<void> {
    const { rowGroupBytes, rowGroupRowsMax } = buildLimits
    // DuckDB puts slices together until they fill half of what it is told here, and writes them as one row group.
    await this.#run(
      `COPY (${select}) TO ${quoteLiteral(path)} (FORMAT parquet, COMPRESSION zstd,
       ROW_GROUP_SIZE ${2 * rowGroupRowsMax}, ROW_GROUP_SIZE_BYTES ${2 * rowGroupBytes})`,
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

function isMalformedJson(error: unknown): boolean {
  return error instanceof Error && error.message.includes('Malformed JSON')
}
