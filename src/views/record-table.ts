/**
 * The records of one segment, loaded once into DuckDB, and what is made of them: raw Parquet, and for each view Parquet and DLQ.
 *
 * Owns: the tables. Does not own: where records come from, which files are wanted, where they go.
 * DuckDB works on 2048 rows at once, so a table of large records would need gigabytes of memory: then the records are cut into slices of
 * some megabytes, each in tables of its own.
 *
 * Law: the tables of records and of what was extracted have the same rows in the same order.
 */
import type { Buffer } from 'node:buffer'
import { type Connection, Database } from '#duckdb/database.ts'
import { quoteIdentifier, quoteLiteral } from '#duckdb/quote.ts'
import { assert } from '#lib/assert.ts'
import { buildLimits } from '#model/limits.ts'
import type { ViewQuality } from '#model/view-quality.ts'
import { columnQualities } from './column-quality.ts'
import type { CompiledView } from './compile.ts'
import { dlqSql } from './dlq.ts'
import { type Extraction, extractionSql } from './extraction.ts'
import { isAccepted, Observer } from './observer.ts'
import { RecordSampler } from './record-sampler.ts'
import { type Profile, profileKinds } from './sample-profile.ts'
import { encodingOf, type LoadedSlice, type LoadingFrame, LoadingSlice } from './slice.ts'
import { type RecordSource, Sources } from './sources.ts'
import type { Tally } from './tally.ts'
import { unmappedPaths } from './unmapped-paths.ts'

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
  readonly #observer: Observer
  readonly #slices: LoadedSlice[] = []
  #loading: LoadingSlice
  #recordCount = 0
  /** Once something was no JSON, all later statements ask first. */
  #guarded = false
  readonly #sampler = new RecordSampler()
  /** Of the samples, once it was asked for. */
  #profile: Profile | undefined

  private constructor(
    options: RecordTableOptions,
    database: Database,
    connection: Connection,
    sources: Sources,
    observer: Observer,
    loading: LoadingSlice,
  ) {
    this.#options = options
    this.#database = database
    this.#connection = connection
    this.#sources = sources
    this.#observer = observer
    this.#loading = loading
  }

  static async open(options: RecordTableOptions): Promise<RecordTable> {
    const { directory, memoryBytes } = options
    const database = await Database.open({ directories: [directory], spillDirectory: `${directory}/spill`, memoryBytes })
    try {
      const connection = await database.connect()
      const sources = await Sources.create(connection)
      const observer = new Observer(await database.connect())
      const loading = await LoadingSlice.create(connection, 0, 0)
      return new RecordTable(options, database, connection, sources, observer, loading)
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
      this.#sampler.offer(this.#recordCount, payload, start, end)
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
    this.#sources.finish()
    this.#slices.push(this.#loading.finish())
  }

  /** Every record as it was sent. */
  async writeRaw(path: string): Promise<void> {
    await this.#copy(
      `SELECT make_timestamp(received_at) AS ingested_at, protocol, topic, client_id,
         CAST(${this.#options.segmentSeq} AS BIGINT) AS segment_seq, CAST(record_index AS BIGINT) AS record_index, payload, payload_bytes, attributes
       FROM (${this.#records()}) AS records JOIN sources ON sources.rowid = records.source`,
      path,
    )
  }

  /**
   * Makes the views ready to be written. Several share one parse: what it gives is kept in tables, which replace those there were.
   * One alone is extracted while it is written.
   */
  async extract(views: readonly NamedView[]): Promise<ExtractedViews> {
    const compiled = views.map((view) => view.compiled)
    if (views.length === 1) {
      const extraction = () =>
        extractionSql(compiled, { guarded: this.#guarded, records: `(${this.#records()})`, handOn: ['record_index'] })
      return { views, values: extraction().values, rows: () => extraction().sql }
    }
    let values: ExtractedViews['values'] = []
    for (const { records, extracted } of this.#slices) {
      await this.#unguardedFirst(async () => {
        const extraction = extractionSql(compiled, { guarded: this.#guarded, records })
        values = extraction.values
        await this.#run(`CREATE OR REPLACE TABLE ${extracted} AS ${extraction.sql}`)
      })
    }
    const kept = this.#slices.map(({ extracted, first }) => `SELECT *, ${first} + rowid AS record_index FROM ${extracted}`)
    return { views, values, rows: () => kept.join(' UNION ALL ') }
  }

  /** Writes the rows that one of the views accepts, a file without rows where there are none, and says what became of all. */
  async writeAccepted({ views, values, rows }: ExtractedViews, view: number, path: string): Promise<DecidedView> {
    const named = views[view]
    assert(named !== undefined, 'the view is among those extracted')
    const columns = named.compiled.columns.map(({ name }, index) => `${values[view]?.[index]} AS ${quoteIdentifier(name)}`)
    const refused = `refused_${view}`
    const { written, tally } = await this.#unguardedFirst(() =>
      this.#observer.observe(refused, () =>
        this.#copy(`SELECT ${columns.join(', ')} FROM (${rows()}) WHERE ${isAccepted(view)}`, path),
      ),
    )
    const processed = written + tally.dropped + tally.dlq
    assert(processed === this.#recordCount, `a view decided ${processed} of ${this.#recordCount} records`)
    const dlq = dlqSql(named, refused, this.#slices, this.#options.segmentSeq)
    const { dropped, castNulls, ofColumns } = tally
    const counts = { processed, accepted: written, dropped, dlq: tally.dlq, castNulls }
    const quality = await this.#quality(named.compiled, path, written, ofColumns)
    return { counts: { ...counts, ...(await this.#errors(dlq, tally.dlq)) }, quality, dlqSql: dlq }
  }

  /** One JSON object per row, gzipped. */
  async writeDlq(decided: DecidedView, path: string): Promise<void> {
    await this.#run(`COPY (${decided.dlqSql}) TO ${quoteLiteral(path)} (FORMAT json, COMPRESSION gzip)`)
  }

  close(): void {
    this.#database.close()
  }

  async #errors(dlq: string, rows: number): Promise<Pick<RowCounts, 'errors' | 'lastError'>> {
    if (rows === 0) return { errors: {}, lastError: undefined }
    const codes = await this.#query(`SELECT error_code, count(*) FROM (${dlq}) GROUP BY ALL ORDER BY ALL`)
    const last = await this.#query(`SELECT error_code, message FROM (${dlq}) ORDER BY record_index DESC LIMIT 1`)
    const errors = Object.fromEntries(codes.rows.map(([code, count]) => [String(code), Number(count)]))
    assert(Object.values(errors).reduce((sum, count) => sum + count, 0) === rows, 'every DLQ row has an error code')
    return { errors, lastError: { code: String(last.rows[0]?.[0]), message: String(last.rows[0]?.[1]) } }
  }

  async #quality({ columns }: CompiledView, path: string, rows: number, tallies: Tally['ofColumns']): Promise<ViewQuality> {
    this.#profile ??= profileKinds(this.#sampler.texts())
    return {
      columns: await columnQualities({ columns, path, rows, tallies, query: (sql) => this.#query(sql) }),
      sampled_records: this.#profile.samples,
      unmapped: [...unmappedPaths(this.#profile, columns)],
    }
  }

  /** All of them, with the index that each has in the segment. */
  #records(): string {
    return this.#slices
      .map(({ records, first }) => `SELECT *, ${first} + rowid AS record_index FROM ${records}`)
      .join(' UNION ALL ')
  }

  /** Does it again if a record is no JSON. */
  async #unguardedFirst<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (this.#guarded || !isMalformedJson(error)) throw error
      this.#guarded = true
      return work()
    }
  }

  /** The number of rows written. */
  async #copy(select: string, path: string): Promise<number> {
    const { rowGroupBytes, rowGroupRowsMax } = buildLimits
    const { rows } = await this.#query(
      `COPY (${select}) TO ${quoteLiteral(path)} (FORMAT parquet, COMPRESSION zstd,
       ROW_GROUP_SIZE ${rowGroupRowsMax}, ROW_GROUP_SIZE_BYTES ${rowGroupBytes})`,
    )
    return Number(rows[0]?.[0])
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

export type ExtractedViews = {
  readonly views: readonly NamedView[]
  readonly values: Extraction['values']
  /** The statement that gives the rows of all views. */
  readonly rows: () => string
}

export type DecidedView = { readonly counts: RowCounts; readonly quality: ViewQuality; readonly dlqSql: string }

function isMalformedJson(error: unknown): boolean {
  return error instanceof Error && error.message.includes('Malformed JSON')
}
