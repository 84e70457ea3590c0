/**
 * Decides the same records by two definitions, with the statement and the rules of delivery, and counts what differs.
 *
 * Owns: the counts, the samples. Does not own: where the records come from (stored-batches.ts), the tables of decided records
 * (decided-records.ts).
 * Law: one statement decides a record by both definitions, so it is parsed once, unless one of them expands an array. A record is counted once,
 * whatever a statement ran out of. Samples and texts in them are bounded, whatever the records are.
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
  DroppedBy,
  OutcomeChange,
  RowChange,
  RowOutcome,
} from '#model/view-comparison.ts'
import { percentOf } from '#model/view-metrics.ts'
import { dlqSql } from '#records/dlq.ts'
import { cutToFit, type Piece } from '#records/pieces.ts'
import type { RecordDatabase } from '#records/record-database.ts'
import { RecordRuns } from '#records/record-runs.ts'
import { Sources } from '#records/sources.ts'
import type { CompiledView } from '#views/compiled-view.ts'
import { extractionSql, verdicts } from '#views/extraction.ts'
import { type Figure, laterVerdicts, SideCounts, SideNames, type WrittenColumn } from './compared-side.ts'
import { DecidedRecords, decided } from './decided-records.ts'
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

/** Rows that only one of the definitions writes, of records that both accept. `condition` is SQL. */
type ChangedRows = Pick<RowChange, 'change' | 'samples'> & {
  readonly condition: string
  /** The side that does not write them. */
  readonly without: SideCounts
  rows: number
}

/** The figures of a piece. */
type Counted = ReadonlyMap<Figure, number>

export class RecordComparison {
  readonly #options: RecordComparisonOptions
  readonly #before: SideCounts
  readonly #after: SideCounts
  readonly #decided: DecidedRecords
  readonly #shared: readonly SharedColumn[]
  readonly #changedRows: readonly ChangedRows[]
  readonly #changes = new Map<string, Change>()
  readonly #recordsOf = new Map<string, number>()
  #records = 0

  constructor(options: RecordComparisonOptions) {
    this.#options = options
    this.#before = new SideCounts(options.before, new SideNames('before'))
    this.#after = new SideCounts(options.after, new SideNames('after'))
    const { database, statement } = options
    this.#decided = new DecidedRecords({ before: this.#before, after: this.#after, database, statement })
    this.#shared = sharedColumns(this.#before, this.#after, this.#decided.matchedBy)
    this.#changedRows = this.#decided.matchedBy === 'item' ? changedRows(this.#before, this.#after) : []
  }

  /** Number of records that were counted. */
  get records(): number {
    return this.#records
  }

  /** Number of rows that the two write or leave out as duplicates, together. */
  get rows(): number {
    return [this.#before, this.#after].reduce((sum, { rows, duplicates }) => sum + rows + duplicates, 0)
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
      await this.#decided.begin(batch)
      await cutToFit(
        [{ from: 0, to: batch.length }],
        async (piece) => {
          await this.#decided.decide(piece)
          await this.#count(piece, batch)
        },
        async (row) => {
          await this.#decided.decideAlone(row)
          await this.#count(row, batch)
        },
      )
    } finally {
      await database.clear(this.#decided.kept)
    }
  }

  report(): {
    readonly is_same: boolean
    readonly matched_by: 'record' | 'item' | null
    readonly outcome_changes: OutcomeChange[]
    readonly row_changes: RowChange[]
    readonly columns: ComparedColumn[]
    readonly before: Omit<ComparedSide, 'view_id' | 'version' | 'dedupe_within'>
    readonly after: Omit<ComparedSide, 'view_id' | 'version' | 'dedupe_within'>
  } {
    const [before, after] = [this.#before.report(), this.#after.report()]
    const outcome_changes = [...this.#changes.values()].toSorted((a, b) => b.records - a.records)
    const columns = this.#columns()
    const matched_by = this.#decided.matchedBy
    const row_changes = this.#changedRows
      .filter(({ rows }) => rows > 0)
      .map(({ change, rows, samples }) => ({ change, rows, samples }))
    const isSameColumn = ({ before, after, values_differ }: ComparedColumn) => before?.type === after?.type && !values_differ
    const is_same =
      (matched_by !== null || before.rows + after.rows === 0) &&
      outcome_changes.length === 0 &&
      row_changes.length === 0 &&
      columns.every(isSameColumn) &&
      JSON.stringify(before.dead_letters) === JSON.stringify(after.dead_letters)
    return { is_same, matched_by, outcome_changes, row_changes, columns, before, after }
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
        values_differ: this.#decided.matchedBy === null ? null : (shared?.values ?? 0),
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
          values_differ: this.#decided.matchedBy === null ? null : 0,
          samples: [],
        }),
      )
    return [...kept, ...lost]
  }

  /** Counts the decided records of a piece, all of them or none. */
  async #count(piece: Piece, batch: readonly PlacedRecord[]): Promise<void> {
    const [before, after] = [this.#before, this.#after]
    const ofSides = [before, after].flatMap((side) => side.figures(decided, this.#decided.rowsOf(side)))
    const ofColumns = new Map(this.#shared.map((shared) => [shared, this.#differences(shared)]))
    const ofRows = new Map(this.#changedRows.map((changed) => [changed, this.#rowsOf(changed)]))
    const ofPairs = [...ofColumns.values(), ...ofRows.values()].filter((figure) => figure !== undefined)
    const counted = await this.#figures([...ofSides, ...ofPairs])
    const lettersBefore = await this.#run(before.deadLettersSql(decided))
    const lettersAfter = await this.#run(after.deadLettersSql(decided))
    const [outcomeBefore, outcomeAfter] = [before.names.outcome, after.names.outcome]
    const changes = await this.#run(
      `SELECT one, other, count(*), array_slice(list(record_index ORDER BY record_index), 1, ${samplesMax}) FROM
         (SELECT record_index, ${outcomeBefore} AS one, ${outcomeAfter} AS other FROM ${decided})
       WHERE one <> other GROUP BY ALL`,
    )
    const samples = await this.#outcomeSamples(changes.rows, piece, batch)
    const values = new Map<SharedColumn, ComparedColumn['samples']>()
    for (const [shared, figure] of ofColumns)
      if (isCounted(figure, counted)) values.set(shared, await this.#valueSamples(shared, batch))
    const rows = new Map<ChangedRows, RowChange['samples']>()
    for (const [changed, figure] of ofRows)
      if (isCounted(figure, counted)) rows.set(changed, await this.#rowSamples(changed, batch))
    await this.#decided.remember()
    for (const [{ add }, count] of counted) add(count)
    before.addDeadLetters(lettersBefore.rows)
    after.addDeadLetters(lettersAfter.rows)
    for (const [key, change] of samples) this.#addChange(key, change)
    for (const [shared, found] of values) shared.samples.push(...found)
    for (const [changed, found] of rows) changed.samples.push(...found)
    for (const { place } of batch.slice(piece.from, piece.to))
      this.#recordsOf.set(place.endpoint_id, this.recordsOf(place.endpoint_id) + 1)
    this.#records += piece.to - piece.from
  }

  /** Reads each relation once. */
  async #figures(figures: readonly Figure[]): Promise<Counted> {
    const counted = new Map<Figure, number>()
    for (const [from, of] of Map.groupBy(figures, (figure) => figure.from)) {
      const { rows } = await this.#run(`SELECT ${of.map(({ sql }) => sql).join(', ')} FROM ${from}`)
      for (const [index, figure] of of.entries()) counted.set(figure, Number(rows[0]?.[index] ?? 0))
    }
    return counted
  }

  #differences(shared: SharedColumn): Figure | undefined {
    const from = this.#decided.pairs
    if (shared.differs === undefined || from === undefined) return undefined
    const add = (count: number) => {
      shared.values += count
    }
    return { from, sql: `count(*) FILTER (WHERE ${shared.differs})`, add }
  }

  #rowsOf(changed: ChangedRows): Figure | undefined {
    const from = this.#decided.pairs
    if (from === undefined) return undefined
    const add = (count: number) => {
      changed.rows += count
    }
    return { from, sql: `count(*) FILTER (WHERE ${changed.condition})`, add }
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
    const dropped = await this.#droppedBy(sampled)
    return new Map(
      wanted.map(({ key, indexes, ...change }) => {
        const samples = indexes.map((index) => ({
          ...recordOf(batch[index]),
          reason_before: reasonsBefore.get(index) ?? null,
          reason_after: reasonsAfter.get(index) ?? null,
          dropped_by: dropped.get(index) ?? null,
        }))
        return [key, { ...change, samples }]
      }),
    )
  }

  /** Returns why one of the sides drops some of the records. */
  async #droppedBy(indexes: readonly number[]): Promise<ReadonlyMap<number, DroppedBy>> {
    if (indexes.length === 0) return new Map()
    const { before, after } = { before: this.#before.names, after: this.#after.names }
    const verdict = `CASE WHEN ${before.outcome} = 'dropped' THEN ${before.verdict} WHEN ${after.outcome} = 'dropped' THEN ${after.verdict} END`
    const { rows } = await this.#run(
      `SELECT record_index, ${verdict} FROM ${decided} WHERE record_index IN (${indexes.join(', ')})`,
    )
    return new Map(rows.flatMap(([index, found]) => (found == null ? [] : [[Number(index), droppedBy(Number(found))] as const])))
  }

  /** Returns why the side rejects some of the records, as its DLQ would say. */
  async #reasons(
    { view, names }: SideCounts,
    indexes: readonly number[],
    piece: Piece,
  ): Promise<ReadonlyMap<number, DeadLetterReason>> {
    if (indexes.length === 0) return new Map()
    const item = view.expand === undefined ? '' : `, ${names.item} AS item`
    const refused = `(SELECT record_index, ${names.verdict} AS verdict, ${names.failed} AS failed${item} FROM ${decided}
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
  async #valueSamples(shared: SharedColumn, batch: readonly PlacedRecord[]): Promise<ComparedColumn['samples']> {
    const missing = samplesMax - shared.samples.length
    if (missing <= 0) return []
    const [one, other] = [this.#before.names.value(shared.before.index), this.#after.names.value(shared.after.index)]
    const { rows } = await this.#run(
      `SELECT record_index, ${this.#item}, ${bounded(one)}, ${bounded(other)} FROM ${this.#decided.pairs} WHERE ${shared.differs}
       ORDER BY record_index, ${this.#item} LIMIT ${missing}`,
    )
    return rows.map(([index, item, value, cut, otherValue, otherCut]) => ({
      ...recordOf(batch[Number(index)]),
      item_index: toItem(item),
      value_before: cut ?? jsonForm(value ?? null, shared.before.column.type),
      value_after: otherCut ?? jsonForm(otherValue ?? null, shared.after.column.type),
      is_value_cut: cut !== null || otherCut !== null,
    }))
  }

  /** Returns samples of rows that only one side writes, as many as are missing. */
  async #rowSamples({ condition, samples, without }: ChangedRows, batch: readonly PlacedRecord[]): Promise<RowChange['samples']> {
    const missing = samplesMax - samples.length
    if (missing <= 0) return []
    const { rows } = await this.#run(
      `SELECT record_index, item_index, ${without.names.verdict} FROM ${this.#decided.pairs} WHERE ${condition}
       ORDER BY record_index, item_index LIMIT ${missing}`,
    )
    return rows.map(([index, item, verdict]) => ({
      ...recordOf(batch[Number(index)]),
      item_index: toItem(item),
      dropped_by: droppedBy(Number(verdict)),
    }))
  }

  /** SQL for the position of the element of a pair. */
  get #item(): string {
    return this.#decided.matchedBy === 'item' ? 'item_index' : 'CAST(NULL AS BIGINT)'
  }

  #run(sql: string) {
    return this.#options.database.connection.query(sql, this.#options.statement())
  }
}

function isCounted(figure: Figure | undefined, counted: Counted): boolean {
  return figure !== undefined && (counted.get(figure) ?? 0) > 0
}

function toItem(item: Value | undefined): number | null {
  return item == null ? null : Number(item)
}

function droppedBy(verdict: number): DroppedBy {
  if (verdict === laterVerdicts.duplicate) return 'duplicate'
  return verdict === verdicts.noItem ? 'no_element' : 'filter'
}

function changedRows(before: SideCounts, after: SideCounts): readonly ChangedRows[] {
  const only = (one: SideCounts, other: SideCounts) =>
    `are_both_accepted AND ${one.names.verdict} = ${verdicts.accepted} AND ${other.names.verdict} <> ${verdicts.accepted}`
  return [
    { change: 'lost', condition: only(before, after), without: after, rows: 0, samples: [] },
    { change: 'new', condition: only(after, before), without: before, rows: 0, samples: [] },
  ]
}

function sharedColumns(before: SideCounts, after: SideCounts, matchedBy: 'record' | 'item' | null): readonly SharedColumn[] {
  // Only a statement of both says that they read the same.
  const { values } =
    matchedBy === 'record' ? extractionSql([before.view, after.view], { guarded: true, records: 'records' }) : { values: [] }
  const old = new Map(before.written.map((written) => [written.column.name, written]))
  return after.written.flatMap((written) => {
    const same = old.get(written.column.name)
    if (same === undefined) return []
    const [oldName, newName] = [values[0]?.[same.index], values[1]?.[written.index]]
    const readsSame = oldName !== undefined && oldName === newName
    const bothWrite = `${before.names.verdict} = ${verdicts.accepted} AND ${after.names.verdict} = ${verdicts.accepted}`
    const one = { sql: before.names.value(same.index), type: same.column.type }
    const other = { sql: after.names.value(written.index), type: written.column.type }
    const differs = readsSame || matchedBy === null ? undefined : `${bothWrite} AND ${areDistinct(one, other)}`
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
    null_rate_pct: percentOf(nulls, side.rows),
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
