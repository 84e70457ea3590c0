/**
 * The records of one segment, loaded once into DuckDB, and what is made of them: raw Parquet, and for each view Parquet and DLQ.
 *
 * Owns: the tables. Does not own: where records come from, which files are wanted, where they go.
 * DuckDB reads 2048 rows at once, so a table of large records would need gigabytes of memory: then the records are cut into slices of
 * some megabytes, each in tables of its own. What is still too much for the memory is done again in smaller pieces (pieces.ts).
 *
 * Law: the tables of records and of what was extracted have the same rows in the same order.
 */
import type { Buffer } from 'node:buffer'
import { type Connection, Database, type OutOfMemory } from '#duckdb/database.ts'
import { quoteIdentifier, quoteLiteral } from '#duckdb/quote.ts'
import { assert } from '#lib/assert.ts'
import type { ViewQuality } from '#model/view-quality.ts'
import type { CompiledView, NamedView } from '#views/compiled-view.ts'
import { type Extraction, extractionSql, undecidedSql, verdicts } from '#views/extraction.ts'
import { columnQualities } from './column-quality.ts'
import { dlqSql } from './dlq.ts'
import { buildLimits } from './limits.ts'
import { isAccepted, Observer } from './observer.ts'
import { cutToFit, orIfOutOfMemory, type Piece, recordsOf } from './pieces.ts'
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
    origin: { readonly receivedAtMicros: number } & (RecordSource | { readonly envelope: Uint8Array }),
    payload: Buffer,
  ): (start: number, end: number) => void {
    const receivedAt = BigInt(origin.receivedAtMicros)
    const source = 'envelope' in origin ? this.#sources.addEnvelope(origin.envelope) : this.#sources.add(origin)
    const frame: LoadingFrame = { receivedAt, source, payload, encoding: encodingOf(payload) }
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
    await this.#inPieces((pieces) =>
      this.#copy(
        `SELECT make_timestamp(received_at) AS ingested_at, protocol, topic, client_id,
           CAST(${this.#options.segmentSeq} AS BIGINT) AS segment_seq, CAST(record_index AS BIGINT) AS record_index, payload, payload_bytes, attributes
         FROM (${recordsOf(pieces)}) AS records JOIN sources ON sources.rowid = records.source`,
        path,
      ),
    )
  }

  /**
   * Makes the views ready to be written. Several share one parse: what it gives is kept in tables, which replace those there were.
   * One alone is extracted while it is written. Throws OutOfMemory where a record is too much for several: each alone may take it.
   */
  async extract(views: readonly NamedView[]): Promise<ExtractedViews> {
    const compiled = views.map((view) => view.compiled)
    if (views.length === 1) return { views, values: valuesOf(compiled), rows: () => this.#extractionSql(compiled, this.#pieces) }
    for (const { piece, extracted } of this.#slices) {
      const make = (sql: () => string): Promise<void> =>
        this.#unguardedFirst(() => this.#run(`CREATE OR REPLACE TABLE ${extracted} AS ${sql()}`))
      await orIfOutOfMemory(
        () => make(() => this.#extractionSql(compiled, [piece])),
        async () => {
          await make(() => `SELECT * FROM (${this.#extractionSql(compiled, [piece])}) LIMIT 0`)
          const add = (part: Piece) =>
            this.#unguardedFirst(() => this.#run(`INSERT INTO ${extracted} ${this.#extractionSql(compiled, [part])}`))
          await cutToFit([piece], add, rethrow)
        },
      )
    }
    const kept = this.#slices.map(({ extracted }) => `SELECT * FROM ${extracted}`)
    return { views, values: valuesOf(compiled), rows: () => kept.join(' UNION ALL ') }
  }

  /** Writes the rows that one of the views accepts, a file without rows where there are none, and says what became of all. */
  async writeAccepted(extracted: ExtractedViews, view: number, path: string): Promise<DecidedView> {
    const named = extracted.views[view]
    assert(named !== undefined, 'the view is among those extracted')
    const refused = `refused_${view}`
    const write = (from: ExtractedViews, at: number, rowGroupBytes?: number) =>
      this.#observer.observe(refused, () => this.#copy(acceptedSql(from, at, isAccepted(at)), path, rowGroupBytes))
    const { written, tally } = await this.#unguardedFirst(() =>
      orIfOutOfMemory(
        () => write(extracted, view),
        async () => write(await this.#fitted(named, path), 0, buildLimits.rowGroupBytesFitted),
      ),
    )
    const processed = written + tally.dropped + tally.dlq
    assert(processed === this.#recordCount, `a view decided ${processed} of ${this.#recordCount} records`)
    const dlqSqlOf = (pieces: readonly Piece[]) => dlqSql(named, refused, pieces, this.#options.segmentSeq)
    const { dropped, castNulls, ofColumns } = tally
    const counts = { processed, accepted: written, dropped, dlq: tally.dlq, castNulls }
    const quality = await this.#quality(named.compiled, path, written, ofColumns)
    return { counts: { ...counts, ...(await this.#errors(dlqSqlOf(this.#pieces), tally.dlq)) }, quality, dlqSqlOf }
  }

  /** One JSON object per row, gzipped. */
  async writeDlq(decided: DecidedView, path: string): Promise<void> {
    await this.#inPieces((pieces) =>
      this.#run(`COPY (${decided.dlqSqlOf(pieces)}) TO ${quoteLiteral(path)} (FORMAT json, COMPRESSION gzip)`),
    )
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

  /**
   * The view alone, in pieces that are small enough for the memory. Each is tried, up to a file at `path`, with a parse more than it takes to
   * write all of them in the end. A record that is too much by itself is one that the view cannot decide.
   */
  async #fitted(view: NamedView, path: string): Promise<ExtractedViews> {
    const views = [view]
    const values = valuesOf([view.compiled])
    const accepted = `json_valid(record) AND verdict_0 = ${verdicts.accepted}`
    const attempt = (piece: Piece): Promise<unknown> => {
      const records = `(SELECT *, payload AS record FROM (${recordsOf([piece])}))`
      const { sql } = extractionSql([view.compiled], { guarded: this.#guarded, records, handOn: ['record'] })
      return this.#copy(acceptedSql({ views, values, rows: () => sql }, 0, accepted), path)
    }
    const tooComplex: Piece[] = []
    const pieces = await cutToFit(this.#pieces, attempt, (row) => tooComplex.push(row))
    const decided = pieces.length === 0 ? [] : [this.#extractionSql([view.compiled], pieces)]
    const undecided =
      tooComplex.length === 0
        ? []
        : [undecidedSql(view.compiled, { records: `(${recordsOf(tooComplex)})`, handOn: ['record_index'] })]
    return { views, values, rows: () => [...decided, ...undecided].join(' UNION ALL ') }
  }

  #extractionSql(compiled: readonly CompiledView[], pieces: readonly Piece[]): string {
    return extractionSql(compiled, { guarded: this.#guarded, records: `(${recordsOf(pieces)})`, handOn: ['record_index'] }).sql
  }

  /** Of all records, in smaller pieces where that is too much for the memory. */
  async #inPieces(copy: (pieces: readonly Piece[]) => Promise<unknown>): Promise<void> {
    await orIfOutOfMemory(
      () => copy(this.#pieces),
      async () => copy(await cutToFit(this.#pieces, (piece) => copy([piece]), rethrow)),
    )
  }

  get #pieces(): readonly Piece[] {
    return this.#slices.map(({ piece }) => piece)
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
  async #copy(select: string, path: string, rowGroupBytes: number = buildLimits.rowGroupBytes): Promise<number> {
    const { rows } = await this.#query(
      `COPY (${select}) TO ${quoteLiteral(path)} (FORMAT parquet, COMPRESSION zstd,
       ROW_GROUP_SIZE ${buildLimits.rowGroupRowsMax}, ROW_GROUP_SIZE_BYTES ${rowGroupBytes})`,
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

export type DecidedView = {
  readonly counts: RowCounts
  readonly quality: ViewQuality
  readonly dlqSqlOf: (pieces: readonly Piece[]) => string
}

function valuesOf(compiled: readonly CompiledView[]): ExtractedViews['values'] {
  return extractionSql(compiled, { guarded: true, records: 'records' }).values
}

function acceptedSql({ views, values, rows }: ExtractedViews, view: number, condition: string): string {
  const names = views[view]?.compiled.columns ?? []
  const columns = names.map(({ name }, index) => `${values[view]?.[index]} AS ${quoteIdentifier(name)}`)
  return `SELECT ${columns.join(', ')} FROM (${rows()}) WHERE ${condition}`
}

function rethrow(_: Piece, error: OutOfMemory): void {
  throw error
}

function isMalformedJson(error: unknown): boolean {
  return error instanceof Error && error.message.includes('Malformed JSON')
}
