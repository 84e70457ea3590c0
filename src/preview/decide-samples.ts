/**
 * Applies a compiled view to samples, with the statement and the rules of delivery.
 *
 * Owns: loading the samples, and which of them fit in memory together. Does not own: the rules of a row (views/extraction.ts).
 * Law: nothing is stored, and no file is read or written. The database exists in memory, for one preview or for tests of several views.
 */
import { Buffer } from 'node:buffer'
import type { Connection, StatementOptions, Value } from '#duckdb/database.ts'
import { MiB } from '#lib/bytes.ts'
import { previewLimits } from '#model/limits.ts'
import type { PreviewIssue } from '#model/preview.ts'
import { encodeEnvelope, type RecordEnvelope } from '#model/record-envelope.ts'
import type { SecretValues } from '#model/secret.ts'
import { jsonForm } from '#model/types/json-form.ts'
import { dlqSql } from '#records/dlq.ts'
import { refusedSql } from '#records/expanded-rows.ts'
import { folderColumns, misfitSql } from '#records/partition-folders.ts'
import { cutToFit, fallBackIfOutOfMemory, type Piece } from '#records/pieces.ts'
import { RecordDatabase } from '#records/record-database.ts'
import { RecordRuns } from '#records/record-runs.ts'
import { recordsSql } from '#records/runs-in-sql.ts'
import { Sources } from '#records/sources.ts'
import { isFirstSql, keysOf } from '#records/unfinished-rows.ts'
import type { CompiledView } from '#views/compiled-view.ts'
import { type Extraction, extractionSql, isDlq, undecidedSql, verdicts } from '#views/extraction.ts'
import { leaveOutDuplicates } from './leave-out-duplicates.ts'

/** Memory of DuckDB for one preview: as much as a conversion has by default. */
const MEMORY_BYTES = 128 * MiB

/** A row to which the rules of the view were applied: of a sample, or in a view that expands an array, of one of its elements. */
export type DecidedSample = {
  readonly index: number
  /** The path of the element; null in a row that is of none. */
  readonly item: string | null
  readonly verdict: number
  /** Whether it is a row of the result: it is accepted, no other element of the sample has an error, and it is no duplicate. */
  readonly isWritten: boolean
  /** Whether a row before it has the same values in `dedupe_by`. */
  readonly isDuplicate: boolean
  /** By column; null in a row that is not accepted. */
  readonly values: readonly Value[]
  readonly isFilled: readonly boolean[]
  /** By column, the text that could not be cast to its type, or null. */
  readonly failedTexts: readonly (string | null)[]
}

export class ResultTooLarge extends Error {
  override readonly name = 'ResultTooLarge'

  constructor(bound = `${previewLimits.resultBytesMax} bytes`) {
    super(`the rows have more than ${bound}: send fewer samples`)
  }
}

/** How and when a sample was received. */
export type SampleOrigin = { readonly envelope: RecordEnvelope; readonly receivedAtMs: number }

export type SampleOptions = {
  /** Bounds for the next statement. */
  readonly statement: () => StatementOptions
  /** The origin of the sample with an index. */
  readonly originOf: (index: number) => SampleOrigin
  /** Values of the secrets that the view names. */
  readonly secrets?: SecretValues
  /** Samples for which it returns different numbers are not compared by `dedupe_by`. If not set, they are of one segment. */
  readonly segmentOf?: (index: number) => number
  /** From `openSampleDatabase`. It is clear afterwards. If not set, one is opened for these samples. */
  readonly database?: RecordDatabase
}

export type Decisions = {
  /** In the order of the samples and their elements. */
  readonly decided: readonly DecidedSample[]
  /** Samples that would go to the DLQ. */
  readonly errors: readonly PreviewIssue[]
}

/** Throws ResultTooLarge, StatementTimeout, or DuckDB's error. */
export async function decideSamples(
  view: CompiledView,
  samples: readonly string[],
  { statement, originOf, secrets = {}, segmentOf = () => 0, database: shared }: SampleOptions,
): Promise<Decisions> {
  const database = shared ?? (await openSampleDatabase())
  try {
    await load(database, samples, originOf)
    await database.secrets.provide(view, secrets)
    const decider = new SampleDecider(view, database.connection, statement)
    const { decided, errors } = await decider.decide({ from: 0, to: samples.length })
    return { decided: leaveOutDuplicates(view, decided, segmentOf), errors }
  } finally {
    if (shared === undefined) database.close()
    else await shared.clear()
  }
}

/** Opening a database takes longer than to decide a few samples: a caller with several views keeps one. */
export function openSampleDatabase(): Promise<RecordDatabase> {
  return RecordDatabase.open({ directories: [], memoryBytes: MEMORY_BYTES })
}

class SampleDecider {
  readonly #view: CompiledView
  readonly #connection: Connection
  readonly #statement: () => StatementOptions
  readonly #decided: DecidedSample[] = []
  #resultBytes = 0

  constructor(view: CompiledView, connection: Connection, statement: () => StatementOptions) {
    this.#view = view
    this.#connection = connection
    this.#statement = statement
  }

  async decide(all: Piece): Promise<Decisions> {
    const item = this.#view.expand === undefined ? '' : ', item VARCHAR'
    await this.#connection.run(`CREATE TABLE refused (record_index BIGINT, verdict SMALLINT, failed VARCHAR${item})`)
    const tooComplex: Piece[] = []
    await cutToFit(
      [all],
      (piece) => this.#extract(piece),
      (row) => tooComplex.push(row),
    )
    for (const row of tooComplex) await this.#collect({ sql: undecidedSql(this.#view, recordsIn(row)), values: [], failures: [] })
    const named = { name: 'preview', version: 1, compiled: this.#view, secrets: {} }
    const { rows } = await this.#query(
      `SELECT record_index, "column", error_code, message, item FROM (${dlqSql(named, 'refused', [all], 0)}) ORDER BY record_index`,
    )
    return { decided: this.#decided.toSorted((one, other) => one.index - other.index), errors: rows.map(toIssue) }
  }

  /** A single sample that does not fit in memory together with its texts is decided without them. */
  async #extract(piece: Piece): Promise<void> {
    const extract = (explained: boolean) =>
      this.#collect(extractionSql([this.#view], { guarded: true, explained, ...recordsIn(piece) }))
    await fallBackIfOutOfMemory(
      () => extract(true),
      (error) => {
        if (piece.to - piece.from > 1) throw error
        return extract(false)
      },
    )
  }

  /** Collects the samples of one extraction, and adds those for the DLQ to the table `refused`. */
  async #collect({ sql, values: [values], failures: [failures] }: Extraction): Promise<void> {
    const expands = this.#view.expand !== undefined
    const names = values ?? this.#view.columns.map(() => 'NULL')
    await this.#query(`CREATE OR REPLACE TABLE extracted AS ${sql}`)
    if (values !== undefined) await this.#refuseMisfits(values)
    const ofRows = `SELECT record_index, verdict_0, failed_0 FROM extracted WHERE ${isDlq('verdict_0')}`
    const refused = expands ? refusedSql('extracted') : ofRows
    const isAlone = expands ? ` AND record_index NOT IN (SELECT record_index FROM (${refused}))` : ''
    const judged = `(SELECT *, verdict_0 = ${verdicts.accepted}${isAlone} AS is_written FROM extracted)`
    const bytes = names.map((value) => `coalesce(strlen(CAST(${value} AS VARCHAR)), 0)`).join(' + ')
    const { rows: sizes } = await this.#query(
      `SELECT coalesce(sum(${bytes}) FILTER (WHERE is_written), 0), count(*) FROM ${judged}`,
    )
    const rowCount = this.#decided.length + Number(sizes[0]?.[1])
    if (expands && rowCount > previewLimits.rowsMax) throw new ResultTooLarge(`${previewLimits.rowsMax} rows`)
    const resultBytes = this.#resultBytes + Number(sizes[0]?.[0])
    if (resultBytes > previewLimits.resultBytesMax) throw new ResultTooLarge()
    const columns = names.flatMap((value, index) => [
      `CASE WHEN is_written THEN ${value} END`,
      `${value} IS NOT NULL`,
      failures?.[index] ?? 'CAST(NULL AS VARCHAR)',
    ])
    const place = expands ? 'item_path' : 'CAST(NULL AS VARCHAR)'
    const { rows } = await this.#query(
      `SELECT record_index, verdict_0, ${place}, is_written, ${columns.join(', ')}
       FROM ${judged}${expands ? ' ORDER BY record_index, item_index' : ''}`,
    )
    await this.#query(`INSERT INTO refused ${refused}`)
    // As in delivery, where the values of all rows decide.
    if (expands) await this.#query(`UPDATE refused SET item = NULL WHERE verdict = ${verdicts.unplaced}`)
    this.#resultBytes = resultBytes
    for (const [index, verdict, item, isWritten, ...cells] of rows) {
      this.#decided.push({
        index: Number(index),
        item: item === null ? null : String(item),
        verdict: Number(verdict),
        isWritten: isWritten === true,
        isDuplicate: false,
        values: this.#view.columns.map(({ type }, at) => jsonForm(cells[3 * at] ?? null, type)),
        isFilled: names.map((_, at) => cells[3 * at + 1] === true),
        failedTexts: names.map((_, at) => (cells[3 * at + 2] ?? null) as string | null),
      })
    }
  }

  /** Refuses rows whose values cannot name folders, unless their record has another error. */
  async #refuseMisfits(values: readonly string[]): Promise<void> {
    if (this.#view.layout.partitionBy.length === 0) return
    const expands = this.#view.expand !== undefined
    const accepted = `SELECT * FROM extracted WHERE verdict_0 = ${verdicts.accepted}`
    const keyed = { rows: accepted, record: 'record_index', item: 'item_index', keys: keysOf(this.#view, values) }
    // Rows with the key of one before them in their record need no place.
    const isNeeded = expands && keyed.keys.length > 0 ? ` AND ${isFirstSql(keyed, 'record')}` : ''
    const isAlone = expands ? ` AND record_index NOT IN (SELECT record_index FROM extracted WHERE ${isDlq('verdict_0')})` : ''
    const misfit = misfitSql(folderColumns(this.#view, values))
    await this.#query(
      `UPDATE extracted SET verdict_0 = ${verdicts.unplaced}, failed_0 = ${misfit}
       WHERE verdict_0 = ${verdicts.accepted} AND (${misfit}) IS NOT NULL${isNeeded}${isAlone}`,
    )
  }

  #query(sql: string) {
    return this.#connection.query(sql, this.#statement())
  }
}

async function load(
  database: RecordDatabase,
  samples: readonly string[],
  originOf: (index: number) => SampleOrigin,
): Promise<void> {
  const sources = await Sources.create(database.connection)
  const runs = new RecordRuns()
  for (const [index, sample] of samples.entries()) {
    const { envelope, receivedAtMs } = originOf(index)
    const source = sources.addEnvelope(encodeEnvelope(envelope))
    const payload = Buffer.from(sample)
    runs.add({ receivedAt: BigInt(receivedAtMs) * 1000n, source }, payload, 0, payload.length, true)
  }
  sources.finish()
  runs.finish()
  database.use(runs)
}

function recordsIn(piece: Piece): { readonly records: string; readonly passThrough: readonly string[] } {
  return { records: `(${recordsSql([piece])})`, passThrough: ['record_index'] }
}

function toIssue([index, column, code, message, item]: readonly Value[]): PreviewIssue {
  return {
    sample_index: Number(index),
    column: column === null || column === undefined ? null : String(column),
    code: String(code),
    message: String(message),
    ...(typeof item === 'string' && { item }),
  }
}
