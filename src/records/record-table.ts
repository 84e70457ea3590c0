/**
 * Takes the records of one segment once, and writes their files: raw Parquet, and Parquet and DLQ for each view.
 *
 * Owns: the statements and the tables of values. Does not own: how records are kept (record-runs.ts), where they come from, which files are
 * needed, where they are uploaded.
 * DuckDB reads 2048 rows of a table at once, so a table of large values would need gigabytes of memory. The values of several views are
 * therefore extracted in slices, each in a table of its own. If a statement still runs out of memory, the work is done in smaller pieces
 * (pieces.ts).
 */
import { type Buffer, isUtf8 } from 'node:buffer'
import { join } from 'node:path'
import { OutOfMemory } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { assert } from '#lib/assert.ts'
import { partitionLimits } from '#model/limits.ts'
import type { ViewQuality } from '#model/view-quality.ts'
import type { CompiledView, NamedView } from '#views/compiled-view.ts'
import { extractionSql, undecidedSql } from '#views/extraction.ts'
import { columnQualities } from './column-quality.ts'
import { dlqSql } from './dlq.ts'
import { type ExpandedPiece, ExpandedRows } from './expanded-rows.ts'
import {
  acceptedSql,
  type DecidedView,
  type ExtractedViews,
  type RowCounts,
  type RowsOfView,
  rowsOf,
  valuesOf,
} from './extracted-views.ts'
import type { KeyFilter } from './key-hashes.ts'
import { isLaidOut, type LaidOut, type LayOutOptions, layOut, placeColumns } from './lay-out.ts'
import { maskColumns, withoutLeftOut } from './left-out-nulls.ts'
import { buildLimits, rowGroupBytesWithin } from './limits.ts'
import { ErrorInRow, isAccepted, type Observed, sumObserved } from './observer.ts'
import { copyToParquetSql, parquetRowsSql } from './parquet-writer.ts'
import { concatenate, type PieceWriter, writePieces } from './piece-files.ts'
import { cutToFit, fallBackIfOutOfMemory, type Piece } from './pieces.ts'
import { RecordDatabase } from './record-database.ts'
import { type Lines, RecordRuns, type Reread } from './record-runs.ts'
import { RecordSampler } from './record-sampler.ts'
import { recordsSql } from './runs-in-sql.ts'
import { type Profile, profileKinds } from './sample-profile.ts'
import { type RecordSource, Sources } from './sources.ts'
import type { Tally } from './tally.ts'
import { unmappedPaths } from './unmapped-paths.ts'
import { ViewDeadline, type ViewDeadlineOptions } from './view-deadline.ts'

export type RecordTableOptions = ViewDeadlineOptions & {
  /** The only directory that is written to, including spilled data. */
  readonly directory: string
  readonly memoryBytes: number
  /** Above the memory, so much is spilled to disk. */
  readonly spillBytesMax: number
  readonly segmentSeq: number
  /** Reads what frames were read from. The records of large frames are then left where they are. */
  readonly reread?: Reread | undefined
  /** Used instead of a new one, and not closed. It may write to the directory. */
  readonly database?: RecordDatabase | undefined
}

export type FrameRecords = {
  /** Whether the payload is valid UTF-8. */
  readonly isText: boolean
  readonly add: (start: number, end: number) => void
  /** For a payload that is text. */
  readonly addLines: (lines: Lines) => void
}

export class RecordTable {
  readonly #options: RecordTableOptions
  readonly #deadline: ViewDeadline
  readonly #database: RecordDatabase
  readonly #sources: Sources
  readonly #runs: RecordRuns
  /** The values of several views are in a table for each. */
  #slices: readonly Piece[] = []
  /** Whether later statements check each record, because one was not valid JSON. */
  #isGuarded = false
  readonly #sampler = new RecordSampler()
  /** Profile of the samples, computed on first use. */
  #profile: Profile | undefined

  private constructor(options: RecordTableOptions, database: RecordDatabase, sources: Sources, runs: RecordRuns) {
    this.#options = options
    this.#deadline = new ViewDeadline(options)
    this.#database = database
    this.#sources = sources
    this.#runs = runs
  }

  static async open(options: RecordTableOptions): Promise<RecordTable> {
    const { directory, memoryBytes, spillBytesMax } = options
    const spill = { directory: `${directory}/spill`, bytesMax: spillBytesMax }
    const database = options.database ?? (await RecordDatabase.open({ directories: [directory], spill, memoryBytes }))
    try {
      const sources = await Sources.create(database.connection)
      const runs = new RecordRuns(join(directory, 'records'), options.reread)
      database.use(runs)
      return new RecordTable(options, database, sources, runs)
    } catch (error) {
      if (options.database === undefined) database.close()
      throw error
    }
  }

  /** Starts a frame. Returns functions that append records, which are ranges of its payload. The bytes are copied. */
  addFrame(
    origin: { readonly receivedAtMicros: number; readonly at?: number } & (RecordSource | { readonly envelope: Uint8Array }),
    payload: Buffer,
  ): FrameRecords {
    const source = 'envelope' in origin ? this.#sources.addEnvelope(origin.envelope) : this.#sources.add(origin)
    const from = { receivedAt: BigInt(origin.receivedAtMicros), source }
    const isText = isUtf8(payload)
    return {
      isText,
      add: (start, end) => {
        this.#sampler.offer(this.recordCount, payload, start, end)
        this.#runs.add(from, payload, start, end, isText || isUtf8(payload.subarray(start, end)))
      },
      addLines: (lines) => {
        this.#sampler.offerLines(this.recordCount, payload, lines)
        this.#runs.addLines(from, payload, lines, origin.at)
      },
    }
  }

  /** Number of records that were appended. */
  get recordCount(): number {
    return this.#runs.recordCount
  }

  /** Call it regularly, to use little memory outside DuckDB's limit. Throws the signal's reason. */
  flush(): void {
    this.#options.signal.throwIfAborted()
    this.#sources.flush()
  }

  /** Call it after the last record. */
  finish(): void {
    this.#sources.finish()
    this.#runs.finish()
    this.#slices = this.#runs.slices(buildLimits.sliceBytes)
  }

  /** Writes every record as it was sent. */
  async writeRaw(path: string): Promise<void> {
    const write = (pieces: readonly Piece[], file: string) =>
      this.#copy(
        `SELECT make_timestamptz(received_at) AS ingested_at, protocol, topic, client_id,
           CAST(${this.#options.segmentSeq} AS BIGINT) AS segment_seq, record_index, payload, payload_bytes, attributes
         FROM (${recordsSql(pieces)}) AS records JOIN sources ON sources.rowid = records.source`,
        file,
      )
    await this.#writeFitting(path, write, (files) => this.#mergeParquet(files, path))
  }

  /**
   * Prepares views for writing. Several views share one parse, whose results replace those of the last call. A single view is
   * extracted while it is written, and so is one that expands an array. Throws StatementTimeout, MissingSecret,
   * or OutOfMemory if a record does not fit in memory for all views together: try each alone.
   */
  async extract(views: readonly NamedView[]): Promise<ExtractedViews> {
    for (const { compiled, secrets } of views) await this.#database.secrets.provide(compiled, secrets)
    const together = views.filter((view) => view.compiled.expand === undefined)
    const compiled = together.map((view) => view.compiled)
    const positions = views.map((view) => (view.compiled.expand === undefined ? together.indexOf(view) : undefined))
    const extracted = { views, positions, values: valuesOf(compiled) }
    if (together.length < 2) return { ...extracted, rows: () => this.#extractionSql(compiled, this.#pieces) }
    await this.#deadline.run(together.length, () => this.#extractTogether(compiled))
    const tables = this.#slices.map((_, slice) => `SELECT * FROM extracted_${slice}`)
    return { ...extracted, rows: () => tables.join(' UNION ALL ') }
  }

  async #extractTogether(compiled: readonly CompiledView[]): Promise<void> {
    for (const [slice, piece] of this.#slices.entries()) {
      const extracted = `extracted_${slice}`
      const createTable = (sql: () => string): Promise<void> =>
        this.#tryUnguarded(() => this.#run(`CREATE OR REPLACE TABLE ${extracted} AS ${sql()}`))
      await fallBackIfOutOfMemory(
        () => createTable(() => this.#extractionSql(compiled, [piece])),
        async () => {
          await createTable(() => `SELECT * FROM (${this.#extractionSql(compiled, [piece])}) LIMIT 0`)
          const insert = (part: Piece) =>
            this.#tryUnguarded(() => this.#run(`INSERT INTO ${extracted} ${this.#extractionSql(compiled, [part])}`))
          await cutToFit([piece], insert)
        },
      )
    }
  }

  /**
   * Writes the rows that one of the views accepts to the path, or to a file for each partition beside it. Returns the outcome for all records.
   * Throws StatementTimeout.
   */
  writeAccepted(
    extracted: ExtractedViews,
    view: number,
    path: string,
    partitionsMax?: number,
    keys?: KeyFilter,
  ): Promise<DecidedView> {
    return this.#deadline.run(1, () => this.#writeAccepted(extracted, view, path, partitionsMax, keys))
  }

  async #writeAccepted(
    extracted: ExtractedViews,
    view: number,
    path: string,
    partitionsMax: number = partitionLimits.perView,
    keys?: KeyFilter,
  ): Promise<DecidedView> {
    const named = extracted.views[view]
    assert(named !== undefined, 'the view must be one of the extracted views')
    const refused = `refused_${view}`
    const { written, accepted, tally } =
      named.compiled.expand === undefined
        ? await this.#writeRecords(refused, extracted, view, path)
        : await this.#writeExpanded(refused, named, path)
    const processed = accepted + tally.dropped + tally.dlq
    assert(processed === this.recordCount, `a view decided ${processed} of ${this.recordCount} records`)
    const dlqSqlOf = (pieces: readonly Piece[]) => dlqSql(named, refused, pieces, this.#options.segmentSeq)
    let inFiles = tally
    const measure = async (whole: string, rows: number) => {
      inFiles = await withoutLeftOut(tally, { all: path, kept: whole }, (sql) => this.#query(sql))
      return this.#quality(named.compiled, whole, rows, inFiles.ofColumns)
    }
    const { quality, files, unplaced, rows, duplicates, repeated } = await this.#layOut(named.compiled, {
      ...{ path, refused, rows: written, partitionsMax, measure, keys },
    })
    const dlq = tally.dlq + unplaced
    const outcome = { accepted: accepted - unplaced - repeated, dropped: tally.dropped + repeated, dlq }
    const counts = { processed, ...outcome, rows, duplicates, castNulls: inFiles.castNulls }
    return { counts: { ...counts, ...(await this.#errors(dlqSqlOf(this.#pieces), dlq)) }, quality, files, dlqSqlOf }
  }

  /** Returns the files of the accepted rows, their quality, and the number of records that have no place. */
  async #layOut(
    view: CompiledView,
    request: Omit<LayOutOptions, 'view' | 'records' | 'query' | 'run' | 'copy' | 'merge'>,
  ): Promise<LaidOut> {
    const { path, rows, measure } = request
    if (rows === 0 || !isLaidOut(view))
      return { quality: await measure(path, rows), files: rows === 0 ? [] : [{ path, rows }], rows, ...nothingLeftOut }
    const query = (sql: string) => this.#query(sql)
    const run = (sql: string) => this.#run(sql)
    const copy = (select: string, file: string) => this.#copy(select, file, undefined, view.layout.bloomFilters)
    const merge = (files: readonly string[], file: string) => this.#mergeParquet(files, file)
    return layOut({ ...request, view, records: this.recordCount, query, run, copy, merge })
  }

  /** Writes one JSON object per row, gzipped. */
  async writeDlq(decided: DecidedView, path: string): Promise<void> {
    const write = (pieces: readonly Piece[], file: string) =>
      this.#run(`COPY (${decided.dlqSqlOf(pieces)}) TO ${quoteLiteral(file)} (FORMAT json, COMPRESSION gzip)`)
    await this.#deadline.run(1, () => this.#writeFitting(path, write, (files) => concatenate(files, path, this.#options.signal)))
  }

  close(): void {
    if (this.#options.database === undefined) this.#database.close()
    this.#runs.close()
  }

  async #errors(dlq: string, rows: number): Promise<Pick<RowCounts, 'errors' | 'lastError'>> {
    if (rows === 0) return { errors: {}, lastError: undefined }
    const codes = await this.#query(`SELECT error_code, count(*) FROM (${dlq}) GROUP BY ALL ORDER BY ALL`)
    const last = await this.#query(`SELECT error_code, message FROM (${dlq}) ORDER BY record_index DESC LIMIT 1`)
    const errors = Object.fromEntries(codes.rows.map(([code, count]) => [String(code), Number(count)]))
    assert(Object.values(errors).reduce((sum, count) => sum + count, 0) === rows, 'every DLQ row has an error code')
    return { errors, lastError: { code: String(last.rows[0]?.[0]), message: String(last.rows[0]?.[1]) } }
  }

  async #quality(view: CompiledView, path: string, rows: number, tallies: Tally['ofColumns']): Promise<ViewQuality> {
    this.#profile ??= profileKinds(this.#sampler.texts())
    return {
      columns: await columnQualities({ columns: view.columns, path, rows, tallies, query: (sql) => this.#query(sql) }),
      sampled_records: this.#profile.samples,
      unmapped: [...unmappedPaths(this.#profile, view)],
    }
  }

  async #writeRecords(refused: string, extracted: ExtractedViews, view: number, path: string): Promise<Observed> {
    const rows = rowsOf(extracted, view)
    await this.#database.observer.createRefused(refused)
    return fallBackIfOutOfMemory(
      () => this.#writeObserved(refused, rows, isAccepted(rows.position), path),
      () => this.#writeObservedInPieces(refused, rows.view, path),
    )
  }

  #writeObserved(refused: string, rows: RowsOfView, condition: string, path: string, stopsAtError = false): Promise<Observed> {
    const { compiled } = rows.view
    const places = isLaidOut(compiled) ? [...placeColumns(compiled, rows.values), ...maskColumns(rows.position)] : []
    const select = () => acceptedSql(rows, condition, places)
    return this.#tryUnguarded(() =>
      this.#database.observer.observe(
        refused,
        () => this.#copy(select(), path, undefined, compiled.layout.bloomFilters),
        stopsAtError,
      ),
    )
  }

  /** Extracts and writes one view in pieces that fit in memory. A record that does not fit by itself is too complex for the view. */
  #writeObservedInPieces(refused: string, view: NamedView, path: string): Promise<Observed> {
    const { compiled } = view
    const [values = []] = valuesOf([compiled])
    const write = (file: string, rows: () => string) =>
      this.#writeObserved(refused, { view, values, rows, position: 0 }, isAccepted(0), file)
    return this.#writeViewInPieces(path, {
      write: (piece, file) => write(file, () => this.#extractionSql([compiled], [piece])),
      writeTooComplex: (row, file) => write(file, () => this.#undecidedSql(compiled, row)),
    })
  }

  /** Writes a view that expands an array. Its rows are in tables, because the verdict of a record is that of all its elements. */
  async #writeExpanded(refused: string, view: NamedView, path: string): Promise<Observed> {
    const { compiled } = view
    const [values = []] = valuesOf([compiled])
    const expanded = new ExpandedRows(refused, this.#slices.length, {
      run: (sql) => this.#tryUnguarded(() => this.#run(sql())),
      query: (sql) => this.#query(sql),
      write: (rows, condition, file) => this.#writeObserved(refused, { view, values, rows, position: 0 }, condition, file),
    })
    await this.#database.observer.createRefused(refused)
    const streamed = await this.#streamExpanded(refused, { view, values }, path)
    if (streamed !== undefined) return streamed
    await expanded.clear()
    const extract = (piece: Piece): ExpandedPiece => ({ ...piece, sql: () => this.#extractionSql([compiled], [piece]) })
    const observed = await fallBackIfOutOfMemory(
      () => expanded.write(this.#slices.map(extract), path),
      async () => {
        await expanded.clear()
        return this.#writeViewInPieces(path, {
          write: (piece, file) => expanded.write([extract(piece)], file),
          writeTooComplex: (row, file) => expanded.write([{ ...row, sql: () => this.#undecidedSql(compiled, row) }], file),
        })
      },
    )
    await expanded.dropTables()
    return observed
  }

  /**
   * Writes the rows of a view that expands an array without a table, as long as no row has an error and no filter drops one: then each record
   * has the verdict of each of its rows. Returns undefined if that is not so, or memory is short.
   */
  async #streamExpanded(
    refused: string,
    { view, values }: Pick<RowsOfView, 'view' | 'values'>,
    path: string,
  ): Promise<Observed | undefined> {
    const { compiled } = view
    if (compiled.condition !== undefined) return undefined
    const rows = () => this.#extractionSql([compiled], this.#pieces)
    try {
      const observed = await this.#writeObserved(refused, { view, values, rows, position: 0 }, isAccepted(0), path, true)
      const { dropped, dlq } = observed.tally
      return { ...observed, accepted: this.recordCount - dropped - dlq }
    } catch (error) {
      if (!(error instanceof ErrorInRow || error instanceof OutOfMemory)) throw error
      return undefined
    }
  }

  async #writeViewInPieces(path: string, writer: Omit<PieceWriter<Observed>, 'merge'>): Promise<Observed> {
    const observed = await writePieces(this.#pieces, path, {
      ...writer,
      merge: (files, results) => {
        const filled = files.filter((_, index) => results[index]?.written !== 0)
        // A file without rows has the columns.
        return this.#mergeParquet(filled.length > 0 ? filled : files.slice(0, 1), path)
      },
    })
    return sumObserved(observed)
  }

  #undecidedSql(compiled: CompiledView, row: Piece): string {
    return undecidedSql(compiled, { records: `(${recordsSql([row])})`, passThrough: ['record_index'] })
  }

  #extractionSql(compiled: readonly CompiledView[], pieces: readonly Piece[]): string {
    return extractionSql(compiled, {
      guarded: this.#isGuarded,
      records: `(${recordsSql(pieces)})`,
      passThrough: ['record_index'],
    }).sql
  }

  /** Writes all records, in smaller pieces if they do not fit in memory. */
  async #writeFitting(
    path: string,
    write: (pieces: readonly Piece[], file: string) => Promise<unknown>,
    merge: (files: readonly string[]) => Promise<unknown>,
  ): Promise<void> {
    await fallBackIfOutOfMemory(
      () => write(this.#pieces, path),
      () => writePieces(this.#pieces, path, { write: (piece, file) => write([piece], file), merge }),
    )
  }

  /** Writes one Parquet file with the rows of several. The values are only copied: less memory is needed than to extract them. */
  #mergeParquet(files: readonly string[], path: string): Promise<number> {
    return this.#copy(parquetRowsSql(files), path, buildLimits.rowGroupBytesMerged)
  }

  get #pieces(): readonly Piece[] {
    return [{ from: 0, to: this.recordCount }]
  }

  /** Runs the work, and repeats it with guarded statements if a record is not valid JSON. */
  async #tryUnguarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (this.#isGuarded || !isMalformedJson(error)) throw error
      this.#isGuarded = true
      return work()
    }
  }

  /** Returns the number of rows written. */
  async #copy(
    select: string,
    path: string,
    rowGroupBytes: number = rowGroupBytesWithin(this.#options.memoryBytes),
    bloomFilters?: boolean,
  ): Promise<number> {
    const { rows } = await this.#query(copyToParquetSql(select, path, rowGroupBytes, bloomFilters))
    return Number(rows[0]?.[0])
  }

  #run(sql: string): Promise<void> {
    return this.#database.connection.run(sql, this.#deadline.statement)
  }

  #query(sql: string) {
    return this.#database.connection.query(sql, this.#deadline.statement)
  }
}

const nothingLeftOut = { unplaced: 0, duplicates: 0, repeated: 0 } as const

function isMalformedJson(error: unknown): boolean {
  return error instanceof Error && error.message.includes('Malformed JSON')
}
