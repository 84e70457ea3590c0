/**
 * What a definition makes of some samples, with the compiler, the statement and the rules of delivery.
 *
 * Owns: the statistics and the warnings. Does not own: the rules of a row (extraction.ts), the bound on how many run at once.
 * Law: nothing is kept, and no file is touched: the database lives in memory for one preview.
 *
 * A second view runs beside the previewed one: the same paths, read as text. Where it has a value and the column has none, the
 * cast failed.
 */
import { Buffer } from 'node:buffer'
import { type Connection, Database, type StatementOptions, StatementTimeout, type Value } from '#duckdb/database.ts'
import { quoteIdentifier } from '#duckdb/quote.ts'
import type { Clock } from '#lib/clock.ts'
import { previewLimits } from '#model/limits.ts'
import type { DefinedPreview, PreviewColumn, PreviewIssue, PreviewResult } from '#model/preview.ts'
import { type ColumnType, descriptorOf, printType } from '#model/types/column-type.ts'
import { dlqSql } from '#records/dlq.ts'
import { cutToFit, orIfOutOfMemory, type Piece, recordsOf } from '#records/pieces.ts'
import { encodingOf, type LoadedSlice, LoadingSlice } from '#records/slice.ts'
import { Sources } from '#records/sources.ts'
import { compileView } from '#views/compile.ts'
import type { CompiledColumn, CompiledView, ViewRules } from '#views/compiled-view.ts'
import { type Extraction, extractionSql, isDlq, undecidedSql, verdicts } from '#views/extraction.ts'
import { formatSql } from './format-sql.ts'

export type PreviewOptions = { readonly clock: Clock; readonly timeoutMs: number }

const FAILED_TEXT_CHARS_MAX = 200

class ResultTooLarge extends Error {
  override readonly name = 'ResultTooLarge'

  constructor() {
    super(`the rows have more than ${previewLimits.resultBytesMax} bytes; use fewer samples`)
  }
}

/** A sample after the rules. */
type Decided = {
  readonly index: number
  readonly verdict: number
  /** By column; NULL in a row that is not accepted. */
  readonly values: readonly Value[]
  readonly isFilled: readonly boolean[]
  /** The text that is none of its column's type, or null. */
  readonly failedTexts: readonly (string | null)[]
}

/** Throws AppError validation_error for a definition that does not compile. What fails later is in `errors`. */
export async function previewView(request: DefinedPreview, { clock, timeoutMs }: PreviewOptions): Promise<PreviewResult> {
  const startedAt = clock.monotonic()
  const elapsedMs = () => clock.monotonic() - startedAt
  const view = await compileView(request.definition)
  const preview = new Preview(view, () => ({ timeoutMs: Math.max(1, timeoutMs - elapsedMs()) }))
  const result = await preview.run(request.samples, clock.now()).catch((error: unknown) => failed(toIssue(error, timeoutMs)))
  return { ...result, compiledSql: preview.sql, executionTimeMs: Math.round(elapsedMs() * 1000) / 1000 }
}

/** A preview that came to nothing. */
export function failed(error: PreviewIssue): PreviewResult {
  const nothing = { rows: [], columns: [], rowCount: 0, compiledSql: '', warnings: [], executionTimeMs: 0 }
  return { ...nothing, success: false, errors: [error] }
}

export function timedOut(timeoutMs: number): PreviewIssue {
  return issue('timeout', `the preview was not done within ${timeoutMs / 1000} s`)
}

class Preview {
  readonly sql: string
  readonly #view: CompiledView
  readonly #statement: () => StatementOptions
  readonly #texts: ViewRules
  readonly #decided: Decided[] = []
  #resultBytes = 0

  constructor(view: CompiledView, statement: () => StatementOptions) {
    this.#view = view
    this.#statement = statement
    const texts = view.columns.map(
      (column): CompiledColumn => ({ ...column, ...asText(column), required: false, castFailures: 'null' }),
    )
    this.#texts = { columns: texts, condition: undefined }
    const values = extractionSql([view], { guarded: true, records: 'records' }).values[0] ?? []
    const named = view.columns.map(({ name }, index) => `${values[index]} AS ${quoteIdentifier(name)}`)
    this.sql = formatSql(`SELECT ${named.join(', ')} FROM (${view.sql}) WHERE verdict_0 = ${verdicts.accepted}`)
  }

  async run(samples: readonly string[], nowMs: number): Promise<PreviewResult> {
    const database = await Database.open({ directories: [], memoryBytes: previewLimits.memoryBytes })
    try {
      const connection = await database.connect()
      const { piece } = await load(connection, samples, nowMs)
      const pieces = [piece]
      await connection.run('CREATE TABLE refused (record_index BIGINT, verdict SMALLINT, failed VARCHAR)')
      const undecided: Piece[] = []
      await cutToFit(
        pieces,
        (piece) => this.#decide(connection, piece),
        (row) => undecided.push(row),
      )
      for (const row of undecided) await this.#keep(connection, { sql: undecidedSql(this.#view, handingOn([row])), values: [] })
      const named = { name: 'preview', version: 1, compiled: this.#view }
      const errors = await connection.query(
        `SELECT record_index, "column", error_code, message FROM (${dlqSql(named, 'refused', pieces, 0)}) ORDER BY record_index`,
        this.#statement(),
      )
      this.#decided.sort((one, other) => one.index - other.index)
      return this.#result(this.#decided, errors.rows.map(toRowIssue))
    } finally {
      database.close()
    }
  }

  /** A sample that is too much together with its texts has none to be shown. */
  async #decide(connection: Connection, piece: Piece): Promise<void> {
    const extracted = (views: readonly ViewRules[]) =>
      this.#keep(connection, extractionSql(views, { guarded: true, ...handingOn([piece]) }))
    await orIfOutOfMemory(
      () => extracted([this.#view, this.#texts]),
      (error) => {
        if (piece.to - piece.from > 1) throw error
        return extracted([this.#view])
      },
    )
  }

  /** Reads what became of some samples, and puts by which were refused. Throws ResultTooLarge. */
  async #keep(connection: Connection, { sql, values: [values, texts] }: Extraction): Promise<void> {
    const ask = (statement: string) => connection.query(statement, this.#statement())
    const names = values ?? this.#view.columns.map(() => 'NULL')
    await ask(`CREATE OR REPLACE TABLE extracted AS ${sql}`)
    const bytes = names.map((value) => `coalesce(strlen(CAST(${value} AS VARCHAR)), 0)`).join(' + ')
    const size = await ask(`SELECT coalesce(sum(${bytes}), 0) FROM extracted WHERE verdict_0 = ${verdicts.accepted}`)
    const resultBytes = this.#resultBytes + Number(size.rows[0]?.[0])
    if (resultBytes > previewLimits.resultBytesMax) throw new ResultTooLarge()
    const columns = names.flatMap((value, index) => [
      `CASE WHEN verdict_0 = ${verdicts.accepted} THEN ${value} END`,
      `${value} IS NOT NULL`,
      `CASE WHEN ${value} IS NULL THEN left(CAST(${texts?.[index] ?? 'NULL'} AS VARCHAR), ${FAILED_TEXT_CHARS_MAX}) END`,
    ])
    const { rows } = await ask(`SELECT record_index, verdict_0, ${columns.join(', ')} FROM extracted`)
    await ask(`INSERT INTO refused SELECT record_index, verdict_0, failed_0 FROM extracted WHERE ${isDlq('verdict_0')}`)
    this.#resultBytes = resultBytes
    for (const [index, verdict, ...cells] of rows) {
      this.#decided.push({
        index: Number(index),
        verdict: Number(verdict),
        values: this.#view.columns.map(({ type }, at) => toJson(cells[3 * at] ?? null, type)),
        isFilled: names.map((_, at) => cells[3 * at + 1] === true),
        failedTexts: names.map((_, at) => (cells[3 * at + 2] ?? null) as string | null),
      })
    }
  }

  #result(decided: readonly Decided[], errors: readonly PreviewIssue[]): PreviewResult {
    const accepted = decided.filter(({ verdict }) => verdict === verdicts.accepted)
    const { columns } = this.#view
    return {
      success: errors.length === 0,
      rows: accepted.map(({ values }) => Object.fromEntries(columns.map(({ name }, index) => [name, values[index] ?? null]))),
      columns: columns.map((column, index) =>
        statistics(
          column,
          accepted.map(({ values }) => values[index] ?? null),
        ),
      ),
      rowCount: accepted.length,
      compiledSql: this.sql,
      warnings: [...columns.flatMap((column, index) => columnWarnings(column, index, decided)), ...filterWarnings(decided)].slice(
        0,
        previewLimits.warningsMax,
      ),
      errors: [...errors],
      executionTimeMs: 0,
    }
  }
}

async function load(connection: Connection, samples: readonly string[], nowMs: number): Promise<LoadedSlice> {
  const sources = await Sources.create(connection)
  const source = sources.add({ protocol: 'http', topic: '', clientId: '', attributes: '' })
  sources.finish()
  const slice = await LoadingSlice.create(connection, 0, 0)
  for (const sample of samples) {
    const payload = Buffer.from(sample)
    slice.add({ receivedAt: BigInt(nowMs) * 1000n, source, payload, encoding: encodingOf(payload) }, 0, payload.length)
  }
  return slice.finish()
}

function handingOn(pieces: readonly Piece[]): { readonly records: string; readonly handOn: readonly string[] } {
  return { records: `(${recordsOf(pieces)})`, handOn: ['record_index'] }
}

function asText({ path }: CompiledColumn): Pick<CompiledColumn, 'type'> {
  return { type: { scalar: 'VARCHAR', depth: path.from === 'record' && path.hasEach ? 1 : 0 } }
}

function statistics({ name, type }: CompiledColumn, values: readonly Value[]): PreviewColumn {
  const present = values.filter((value) => value !== null)
  const nullCount = values.length - present.length
  const distinct = new Map(present.map((value) => [JSON.stringify(value), value]))
  return {
    name,
    type: printType(type),
    nullCount,
    totalCount: values.length,
    nullRate: values.length === 0 ? 0 : nullCount / values.length,
    sampleValues: [...distinct.values()].slice(0, previewLimits.sampleValuesMax),
  }
}

function columnWarnings(column: CompiledColumn, index: number, decided: readonly Decided[]): readonly PreviewIssue[] {
  const { name, required, castFailures } = column
  const type = printType(column.type)
  const readable = decided.filter(({ verdict }) => verdict > verdicts.unreadable)
  const found = readable.filter(({ isFilled, failedTexts }) => isFilled[index] || failedTexts[index] !== null)
  if (readable.length > 0 && found.length === 0) {
    return [issue('path_never_found', `no sample has a value at the path of the column ${JSON.stringify(name)}`, name)]
  }
  if (found.length > 0 && found.every(({ failedTexts }) => failedTexts[index] !== null)) {
    return [issue('cast_always_fails', `no value of the column ${JSON.stringify(name)} is of type ${type}`, name)]
  }
  if (required || castFailures === 'dlq') return []
  return decided.flatMap(({ verdict, failedTexts }, sample_index) => {
    const text = failedTexts[index] ?? null
    if (verdict !== verdicts.accepted || text === null) return []
    const message = `the value ${JSON.stringify(text)} of the column ${JSON.stringify(name)} is not of type ${type} and becomes NULL`
    return [{ sample_index, column: name, code: 'cast_failed', message }]
  })
}

function filterWarnings(decided: readonly Decided[]): readonly PreviewIssue[] {
  const readable = decided.filter(({ verdict }) => verdict > verdicts.unreadable)
  const unknown = readable.filter(({ verdict }) => verdict === verdicts.filterUnknown).length
  const dropped = readable.filter(({ verdict }) => verdict === verdicts.filteredOut).length + unknown
  if (readable.length === 0 || dropped < readable.length) return []
  const why = unknown === 0 ? '' : `; of ${unknown} it is unknown, because a value in it is NULL`
  return [issue('filter_keeps_nothing', `the filters hold for none of the samples${why}`)]
}

function toRowIssue([index, column, code, message]: readonly Value[]): PreviewIssue {
  return {
    sample_index: Number(index),
    column: column === null || column === undefined ? null : String(column),
    code: String(code),
    message: String(message),
  }
}

function toIssue(error: unknown, timeoutMs: number): PreviewIssue {
  if (error instanceof StatementTimeout) return timedOut(timeoutMs)
  if (error instanceof ResultTooLarge) return issue('result_too_large', error.message)
  // What DuckDB says after the first line is an excerpt of the statement.
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  return issue('view_failed', line)
}

function issue(code: string, message: string, column: string | null = null): PreviewIssue {
  return { sample_index: null, column, code, message }
}

function toJson(value: Value, type: ColumnType): Value {
  const convert = descriptorOf(type.scalar).toJson
  if (convert === undefined) return value
  if (Array.isArray(value)) return value.map((item) => toJson(item, type))
  return typeof value === 'string' ? convert(value) : value
}
