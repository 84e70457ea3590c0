/**
 * Decides the same records by two definitions, with the statement and the rules of delivery, and counts what differs.
 *
 * Owns: the table of decided records, the counts, the samples. Does not own: where the records come from (stored-batches.ts), the rules of a
 * row (views/extraction.ts).
 * Law: one statement decides a record by both definitions, so it is parsed once. A record is counted once, whatever a statement ran out of. Samples
 * and texts in them are bounded, whatever the records are.
 */
import type { Buffer } from 'node:buffer'
import type { StatementOptions, Value } from '#duckdb/database.ts'
import { comparisonLimits } from '#model/limits.ts'
import type { SecretValues } from '#model/secret.ts'
import { type ColumnType, descriptorOf, printType } from '#model/types/column-type.ts'
import { jsonForm } from '#model/types/json-form.ts'
import type {
  ComparedColumn,
  ComparedRecord,
  ComparedSide,
  DeadLetterReason,
  OutcomeChange,
  RowOutcome,
} from '#model/view-comparison.ts'
import { percentOf } from '#model/view-metrics.ts'
import { dlqSql } from '#records/dlq.ts'
import { cutToFit, fallBackIfOutOfMemory, type Piece } from '#records/pieces.ts'
import type { RecordDatabase } from '#records/record-database.ts'
import { RecordRuns } from '#records/record-runs.ts'
import { recordsSql } from '#records/runs-in-sql.ts'
import { Sources } from '#records/sources.ts'
import type { CompiledView } from '#views/compiled-view.ts'
import { extractionSql, undecidedSql, verdicts } from '#views/extraction.ts'
import { type Figure, SideCounts, SideNames, type WrittenColumn } from './compared-side.ts'
import type { PlacedRecord } from './stored-batches.ts'

const { samplesMax, recordCharsMax, valueCharsMax } = comparisonLimits

export type RecordComparisonOptions = {
  readonly before: CompiledView
  readonly after: CompiledView
  /** Values of the secrets that the two name. */
  readonly secrets: SecretValues
  readonly database: RecordDatabase
  /** Bounds for the next statement. */
  readonly statement: () => StatementOptions
}

/** A column that both definitions have. */
type SharedColumn = {
  readonly before: WrittenColumn
  readonly after: WrittenColumn
  /** SQL that is true if the values differ; undefined if they cannot, because both read the same. */
  readonly differs: string | undefined
  values: number
  readonly samples: ComparedColumn['samples']
}

type Change = Omit<OutcomeChange, 'records' | 'samples'> & { records: number; readonly samples: OutcomeChange['samples'] }

export class RecordComparison {
  readonly #options: RecordComparisonOptions
  readonly #before: SideCounts
  readonly #after: SideCounts
  readonly #shared: readonly SharedColumn[]
  readonly #changes = new Map<string, Change>()
  readonly #recordsOf = new Map<string, number>()
  #records = 0

  constructor(options: RecordComparisonOptions) {
    this.#options = options
    this.#before = new SideCounts(options.before, new SideNames('before'))
    this.#after = new SideCounts(options.after, new SideNames('after'))
    this.#shared = sharedColumns(this.#before, this.#after)
  }

  /** Number of records that were counted. */
  get records(): number {
    return this.#records
  }

  recordsOf(endpoint_id: string): number {
    return this.#recordsOf.get(endpoint_id) ?? 0
  }

  /** Throws StatementTimeout, or DuckDB's error. What was counted before stays. */
  async add(batch: readonly PlacedRecord[]): Promise<void> {
    const { before, after, secrets, database } = this.#options
    await load(database, batch)
    try {
      for (const view of [before, after]) await database.secrets.provide(view, secrets)
      await cutToFit(
        [{ from: 0, to: batch.length }],
        async (piece) => {
          await this.#run(`CREATE OR REPLACE TABLE decided AS ${this.#decideSql(piece)}`)
          await this.#count(piece, batch)
        },
        async (row) => {
          await this.#decideAlone(row)
          await this.#count(row, batch)
        },
      )
    } finally {
      await database.clear()
    }
  }

  report(): {
    readonly is_same: boolean
    readonly outcome_changes: OutcomeChange[]
    readonly columns: ComparedColumn[]
    readonly before: Omit<ComparedSide, 'view_id' | 'version'>
    readonly after: Omit<ComparedSide, 'view_id' | 'version'>
  } {
    const [before, after] = [this.#before.report(), this.#after.report()]
    const outcome_changes = [...this.#changes.values()].toSorted((a, b) => b.records - a.records)
    const columns = this.#columns()
    const isSameColumn = (column: ComparedColumn) => column.before?.type === column.after?.type && column.values_differ === 0
    const is_same =
      outcome_changes.length === 0 &&
      columns.every(isSameColumn) &&
      JSON.stringify(before.dead_letters) === JSON.stringify(after.dead_letters)
    return { is_same, outcome_changes, columns, before, after }
  }

  /** The columns of the changed definition, and then those that are lost. */
  #columns(): ComparedColumn[] {
    const sharedBy = new Map(this.#shared.map((shared) => [shared.after.index, shared]))
    const kept = this.#after.written.map((after): ComparedColumn => {
      const shared = sharedBy.get(after.index)
      return {
        name: after.column.name,
        before: shared === undefined ? null : sideOf(this.#before, shared.before),
        after: sideOf(this.#after, after),
        values_differ: shared?.values ?? 0,
        samples: [...(shared?.samples ?? [])],
      }
    })
    const known = new Set(this.#shared.map(({ before }) => before.index))
    const lost = this.#before.written
      .filter(({ index }) => !known.has(index))
      .map(
        (before): ComparedColumn => ({
          name: before.column.name,
          before: sideOf(this.#before, before),
          after: null,
          values_differ: 0,
          samples: [],
        }),
      )
    return [...kept, ...lost]
  }

  #decideSql(piece: Piece): string {
    const { before, after } = this.#options
    const { sql, values } = extractionSql([before, after], { guarded: true, ...recordsIn(piece) })
    const sides = [this.#before.names.select(0, values[0] ?? []), this.#after.names.select(1, values[1] ?? [])]
    return `SELECT record_index, is_binary, ${sides.join(', ')} FROM (${sql})`
  }

  /** Decides a record that needs too much memory by both at once: it may be too complex for one of them alone. */
  async #decideAlone(row: Piece): Promise<void> {
    for (const { view, names } of [this.#before, this.#after]) {
      const { sql, values } = extractionSql([view], { guarded: true, ...recordsIn(row) })
      const table = `only_${names.verdict}`
      const decide = (decided: string, passed: string) =>
        this.#run(`CREATE OR REPLACE TABLE ${table} AS SELECT ${passed}, ${names.select(0, values[0] ?? [])} FROM (${decided})`)
      const passed = names === this.#before.names ? 'record_index, is_binary' : 'record_index'
      await fallBackIfOutOfMemory(
        () => decide(sql, passed),
        () => decide(undecidedSql(view, recordsIn(row)), passed),
      )
    }
    const [one, other] = [`only_${this.#before.names.verdict}`, `only_${this.#after.names.verdict}`]
    await this.#run(`CREATE OR REPLACE TABLE decided AS SELECT * FROM ${one} JOIN ${other} USING (record_index)`)
  }

  /** Counts the decided records of a piece, all of them or none. */
  async #count(piece: Piece, batch: readonly PlacedRecord[]): Promise<void> {
    const [before, after] = [this.#before, this.#after]
    const figures = [...before.figures(), ...after.figures(), ...this.#shared.flatMap((shared) => this.#differences(shared))]
    const { rows: counted } = await this.#run(`SELECT ${figures.map(({ sql }) => sql).join(', ')} FROM decided`)
    const lettersBefore = await this.#run(before.deadLettersSql('decided'))
    const lettersAfter = await this.#run(after.deadLettersSql('decided'))
    const [outcomeBefore, outcomeAfter] = [before.names.outcome, after.names.outcome]
    const changes = await this.#run(
      `SELECT one, other, count(*), array_slice(list(record_index ORDER BY record_index), 1, ${samplesMax}) FROM
         (SELECT record_index, ${outcomeBefore} AS one, ${outcomeAfter} AS other FROM decided)
       WHERE one <> other GROUP BY ALL`,
    )
    const samples = await this.#outcomeSamples(changes.rows, piece, batch)
    const values = await this.#valueSamples(counted[0] ?? [], figures.length, batch)
    for (const [index, { add }] of figures.entries()) add(Number(counted[0]?.[index] ?? 0))
    before.addDeadLetters(lettersBefore.rows)
    after.addDeadLetters(lettersAfter.rows)
    for (const [key, change] of samples) this.#addChange(key, change)
    for (const [shared, found] of values) shared.samples.push(...found)
    for (const { place } of batch.slice(piece.from, piece.to))
      this.#recordsOf.set(place.endpoint_id, this.recordsOf(place.endpoint_id) + 1)
    this.#records += piece.to - piece.from
  }

  #differences(shared: SharedColumn): readonly Figure[] {
    if (shared.differs === undefined) return []
    return [
      {
        sql: `count(*) FILTER (WHERE ${shared.differs})`,
        add: (count) => {
          shared.values += count
        },
      },
    ]
  }

  #addChange(key: string, { samples, records, ...change }: Change): void {
    const known = this.#changes.get(key) ?? { ...change, records: 0, samples: [] }
    known.records += records
    known.samples.push(...samples)
    this.#changes.set(key, known)
  }

  /** Returns the changes of outcome in a piece, with as many samples as are missing. */
  async #outcomeSamples(
    rows: readonly (readonly Value[])[],
    piece: Piece,
    batch: readonly PlacedRecord[],
  ): Promise<ReadonlyMap<string, Change>> {
    const wanted = rows.map(([one, other, count, list]) => {
      const key = `${one} ${other}`
      const missing = samplesMax - (this.#changes.get(key)?.samples.length ?? 0)
      const indexes = (Array.isArray(list) ? list : []).slice(0, missing).map(Number)
      return { key, before: one as RowOutcome, after: other as RowOutcome, records: Number(count), indexes }
    })
    const sampled = wanted.flatMap(({ indexes }) => indexes)
    const [reasonsBefore, reasonsAfter] = [
      await this.#reasons(this.#before, sampled, piece),
      await this.#reasons(this.#after, sampled, piece),
    ]
    return new Map(
      wanted.map(({ key, indexes, ...change }) => {
        const samples = indexes.map((index) => ({
          ...recordOf(batch[index]),
          reason_before: reasonsBefore.get(index) ?? null,
          reason_after: reasonsAfter.get(index) ?? null,
        }))
        return [key, { ...change, samples }]
      }),
    )
  }

  /** Returns why the side rejects some of the records, as its DLQ would say. */
  async #reasons(
    { view, names }: SideCounts,
    indexes: readonly number[],
    piece: Piece,
  ): Promise<ReadonlyMap<number, DeadLetterReason>> {
    if (indexes.length === 0) return new Map()
    const refused = `(SELECT record_index, ${names.verdict} AS verdict, ${names.failed} AS failed FROM decided
      WHERE ${names.outcome} = 'dlq' AND record_index IN (${indexes.join(', ')}))`
    const named = { name: 'compared', version: 1, compiled: view, secrets: {} }
    const { rows } = await this.#run(
      `SELECT record_index, error_code, "column", left(message, ${recordCharsMax}) FROM (${dlqSql(named, refused, [piece], 0)})`,
    )
    return new Map(
      rows.map(([index, code, column, message]) => [
        Number(index),
        { error_code: String(code), column: column == null ? null : String(column), message: String(message) },
      ]),
    )
  }

  /** Returns samples of values that differ, as many as are missing. */
  async #valueSamples(
    counted: readonly Value[],
    figures: number,
    batch: readonly PlacedRecord[],
  ): Promise<ReadonlyMap<SharedColumn, ComparedColumn['samples']>> {
    const found = new Map<SharedColumn, ComparedColumn['samples']>()
    const compared = this.#shared.filter(({ differs }) => differs !== undefined)
    for (const [at, shared] of compared.entries()) {
      const missing = samplesMax - shared.samples.length
      // Their figures are the last ones.
      if (missing <= 0 || Number(counted[figures - compared.length + at] ?? 0) === 0) continue
      const [one, other] = [this.#before.names.value(shared.before.index), this.#after.names.value(shared.after.index)]
      const { rows } = await this.#run(
        `SELECT record_index, ${bounded(one)}, ${bounded(other)} FROM decided WHERE ${shared.differs} ORDER BY record_index LIMIT ${missing}`,
      )
      const samples = rows.map(([index, value, cut, otherValue, otherCut]) => ({
        ...recordOf(batch[Number(index)]),
        value_before: cut ?? jsonForm(value ?? null, shared.before.column.type),
        value_after: otherCut ?? jsonForm(otherValue ?? null, shared.after.column.type),
        is_value_cut: cut !== null || otherCut !== null,
      }))
      found.set(shared, samples)
    }
    return found
  }

  #run(sql: string) {
    return this.#options.database.connection.query(sql, this.#options.statement())
  }
}

function sharedColumns(before: SideCounts, after: SideCounts): readonly SharedColumn[] {
  const { values } = extractionSql([before.view, after.view], { guarded: true, records: 'records' })
  const old = new Map(before.written.map((written) => [written.column.name, written]))
  return after.written.flatMap((written) => {
    const same = old.get(written.column.name)
    if (same === undefined) return []
    const readsSame = values[0]?.[same.index] === values[1]?.[written.index]
    const bothAccept = `${before.names.verdict} = ${verdicts.accepted} AND ${after.names.verdict} = ${verdicts.accepted}`
    const one = { sql: before.names.value(same.index), type: same.column.type }
    const other = { sql: after.names.value(written.index), type: written.column.type }
    const differs = readsSame ? undefined : `${bothAccept} AND ${areDistinct(one, other)}`
    return [{ before: same, after: written, differs, values: 0, samples: [] }]
  })
}

type Typed = { readonly sql: string; readonly type: ColumnType }

function areDistinct(one: Typed, other: Typed): string {
  if (printType(one.type) === printType(other.type)) return `${one.sql} IS DISTINCT FROM ${other.sql}`
  const areNumbers = [one, other].every(({ type: { scalar, depth } }) => depth === 0 && descriptorOf(scalar).isNumber === true)
  const text = ({ sql }: Typed) => (areNumbers ? plainNumber(`CAST(${sql} AS VARCHAR)`) : `CAST(${sql} AS VARCHAR)`)
  return `${text(one)} IS DISTINCT FROM ${text(other)}`
}

/** SQL for the text of a number without zeros at the end of its fraction: `9.50` and `9.5` are the same. */
function plainNumber(text: string): string {
  return `CASE WHEN contains(${text}, '.') AND NOT contains(${text}, 'e') THEN rtrim(rtrim(${text}, '0'), '.') ELSE ${text} END`
}

/** SQL for a value and NULL, or for NULL and the beginning of its text if that is long. */
function bounded(value: string): string {
  const text = `CAST(${value} AS VARCHAR)`
  const isShort = `length(${text}) <= ${valueCharsMax}`
  return `CASE WHEN ${isShort} THEN ${value} END, CASE WHEN NOT ${isShort} THEN left(${text}, ${valueCharsMax}) END`
}

function sideOf(side: SideCounts, { index, column }: WrittenColumn) {
  const nulls = side.nulls[index] ?? 0
  return {
    type: printType(column.type),
    nulls,
    null_rate_pct: percentOf(nulls, side.accepted),
    cast_nulls: side.castNulls[index] ?? 0,
  }
}

function recordOf(record: PlacedRecord | undefined): ComparedRecord {
  if (record === undefined) throw new Error('the record of a sample is not in its batch')
  const { place, payload, isText } = record
  const text = isText ? cutText(payload, 'utf8') : undefined
  const bytes = isText ? undefined : cutText(payload, 'base64')
  const { endpoint_id, commit_id, segment_seq, record_index } = place
  return {
    ...{ endpoint_id, commit_id, segment_seq, record_index },
    record: text?.value ?? null,
    record_base64: bytes?.value ?? null,
    is_cut: text?.isCut ?? bytes?.isCut ?? false,
  }
}

function cutText(payload: Buffer, encoding: 'utf8' | 'base64') {
  const whole = payload.toString(encoding)
  const isCut = whole.length > recordCharsMax
  return { value: isCut ? whole.slice(0, recordCharsMax).toWellFormed() : whole, isCut }
}

async function load(database: RecordDatabase, batch: readonly PlacedRecord[]): Promise<void> {
  const sources = await Sources.create(database.connection)
  const runs = new RecordRuns()
  for (const { receivedAtMicros, payload, isText, ...source } of batch) {
    runs.add({ receivedAt: BigInt(receivedAtMicros), source: sources.add(source) }, payload, 0, payload.length, isText)
  }
  sources.finish()
  runs.finish()
  database.use(runs)
}

function recordsIn(piece: Piece): { readonly records: string; readonly passThrough: readonly string[] } {
  return {
    records: `(SELECT *, payload IS NULL AS is_binary FROM (${recordsSql([piece])}))`,
    passThrough: ['record_index', 'is_binary'],
  }
}
