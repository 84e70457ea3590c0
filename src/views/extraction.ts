/**
 * The statement that turns records into typed columns and a verdict per view.
 *
 * All views share one parse, and a column that two views have in common is extracted once. Each step is a subquery of its own, so that
 * DuckDB evaluates every expression once per row:
 *
 *   records → payload (NULL if it is not JSON) → texts at the paths → values of the types → computed values → conditions → verdicts
 *
 * Law: exactly one row out for every record in, in the same order. A view that expands an array is alone in its statement, and has a row for
 * each element, in order; at least one for a record (expansion.ts).
 */
import { quoteLiteral } from '#duckdb/quote.ts'
import { assert } from '#lib/assert.ts'
import { type ColumnType, descriptorOf, printType } from '#model/types/column-type.ts'
import { acceptsAnyText, castList, castText, portable } from './cast-sql.ts'
import { formattedTime } from './column-format.ts'
import type { ColumnPath, CompiledColumn, Computed, Expansion, ViewRules } from './compiled-view.ts'
import { bytesOf, expandedRows, itemOutputs, type ReadText, Scopes, sumOf } from './expansion.ts'
import { duckDbPath } from './json-path.ts'
import type { Texts } from './record-texts.ts'

/**
 * The outcome for a row. Positive numbers are errors of column `i`: `missing(i)` or `castFailed(i)`. A record whose array has no elements is a
 * row without one.
 */
export const verdicts = {
  accepted: 0,
  filteredOut: -1,
  filterUnknown: -2,
  unreadable: -3,
  tooComplex: -4,
  unplaced: -5,
  expandFailed: -6,
  noItem: -7,
} as const
export const missing = (column: number): number => 2 * column + 1
export const castFailed = (column: number): number => 2 * column + 2
/** The index of the column that a positive verdict names. */
export const columnOf = (verdict: number): number => Math.floor((verdict - 1) / 2)
export const isMissing = (verdict: number): boolean => verdict % 2 === 1
/** SQL that is true if the row goes to the DLQ. `verdict` is SQL. */
export const isDlq = (verdict: string): string =>
  `(${verdict} > 0 OR ${verdict} BETWEEN ${verdicts.expandFailed} AND ${verdicts.unreadable})`

export type Extraction = {
  /**
   * Returns for each view the columns `verdict_<n>`, `cast_nulls_<n>` and `more_cast_nulls_<n>` (one bit for each column whose cast
   * failed and became NULL), `failed_<n>` (the text whose cast failed, or why an array is not expanded or patterns are too slow), and the
   * values. For a view that expands an array also `item_index` and `item_path`, which is NULL in rows that are accepted.
   */
  readonly sql: string
  /** The names of the values of each view, by column. */
  readonly values: readonly (readonly string[])[]
  /** The names of the texts that say why a value is missing although there is something in the record, by view and column, if asked for. */
  readonly failures: readonly (readonly string[])[]
}

export type ExtractionOptions = {
  /** Whether the statement checks that each payload is JSON. An unguarded one fails at the first invalid payload, and is an eighth faster. */
  readonly guarded: boolean
  /** The table of records, or a subquery in parentheses that has its columns. */
  readonly records: string
  /** Columns of the records that the statement returns unchanged. */
  readonly passThrough?: readonly string[]
  /** Whether the statement returns `failures`. */
  readonly explained?: boolean
}

/** Maximum number of characters of a value that a message quotes. */
const FAILED_TEXT_CHARS_MAX = 200

/** A value that is made once, however many columns have it. */
type Slot = {
  readonly value: string
  readonly type: ColumnType
  /** 0 for a value that is read from the record. */
  readonly level: number
  /** The JSON that it is read from; undefined for a computed one. */
  readonly scope?: keyof Scopes
  /** SQL for the text or list that it is made of, if it is read. */
  readonly read?: ReadText
  /** SQL for the value before `portable`. A computed one is a structure, so that a failure is not the same as NULL. */
  readonly make: string
  /** SQL that is true if there is no value because the type does not fit or the expression failed; undefined if that cannot be. */
  readonly failed: string | undefined
  /** SQL for the beginning of what does not fit. */
  readonly shown: string
}

export function extractionSql(
  views: readonly ViewRules[],
  { guarded, records: table, passThrough = [], explained = false }: ExtractionOptions,
): Extraction {
  const scopes = new Scopes()
  const found = scopes.record
  const slots = new Map<string, Slot>()
  const measures = new Map<string, string>()
  const readSlots = views.map(({ columns }) => findReadSlots(columns, slots, scopes))
  const guards = views.map((view, index) => patternGuard(view, readSlots[index] ?? [], measures))
  const columnSlots = views.map(({ columns }, index) => findSlots(columns, readSlots[index] ?? [], slots, guards[index]))
  const all = [...slots.values()]
  const slotsOf = (...wanted: readonly (keyof Scopes)[]) =>
    all.filter(({ scope }) => scope !== undefined && wanted.includes(scope))
  const [{ expand } = {}] = views
  assert(views.length === 1 || views.every((view) => view.expand === undefined), 'a view that expands is extracted alone')
  // A view that reads only the envelope never parses the payload, so the check must be explicit.
  const guard = guarded || (!found.readsJson && expand === undefined)
  const payload = guard ? 'CASE WHEN json_valid(payload) THEN payload END AS payload' : 'payload'
  const passedThrough = passThrough.map((name) => `${name}, `).join('')
  const records = `SELECT ${passedThrough}${payload}, received_at, source FROM ${table}`
  const envelope = found.readsEnvelope ? ' JOIN sources ON sources.rowid = records.source' : ''
  const recordBytes = measures.size > 0 ? ', strlen(payload) AS record_bytes' : ''
  const read = (more = recordBytes) =>
    `SELECT ${passedThrough}payload IS NOT NULL AS readable${found.sql()}${more} FROM (${records}) AS records${envelope}`
  const kept =
    expand === undefined
      ? addValues(slotsOf('record'), `SELECT *${found.finishLists()} FROM (${read()})`)
      : expandedRows(expand, scopes, {
          read,
          ...inExpressions(all, columnSlots[0] ?? [], expand),
          addValues: (scopes, from) => addValues(slotsOf(...scopes), from),
        })
  const computed = compute(all, measured(measures, kept))
  const conditions = views.map(({ condition }, view) => {
    const sql = condition?.((index) => columnSlots[view]?.[index]?.value ?? '')
    // An error in a row, such as an overflow, makes the condition unknown for that row.
    return sql === undefined ? '' : `, TRY(${unlessSlow(guards[view], sql)}) AS condition_${view}`
  })
  const decided = `SELECT *${conditions.join('')} FROM (${computed})`
  const verdictsOf = views.map(
    (view, index) => `, ${verdict(view, index, columnSlots[index] ?? [], guards[index])} AS verdict_${index}`,
  )
  const judged = `SELECT *${verdictsOf.join('')} FROM (${decided})`
  const outcome = views.map((view, index) => {
    const slots = columnSlots[index] ?? []
    const nulls = `${castNulls(view, slots, 0)} AS cast_nulls_${index}, ${castNulls(view, slots, 1)} AS more_cast_nulls_${index}`
    return `verdict_${index}, ${nulls}, ${failedText(view, index, slots, guards[index])} AS failed_${index}`
  })
  const ofItems = expand === undefined ? [] : itemOutputs(expand, explained ? 'true' : `verdict_0 <> ${verdicts.accepted}`)
  const failures = explained
    ? all.map(
        ({ value, failed, shown }) =>
          `${failed === undefined ? 'CAST(NULL AS VARCHAR)' : `CASE WHEN ${failed} THEN ${shown} END`} AS why_${value}`,
      )
    : []
  return {
    sql: `SELECT ${passedThrough}${[...outcome, ...ofItems, ...all.map(({ value }) => value), ...failures].join(', ')} FROM (${judged})`,
    values: columnSlots.map((view) => view.map(({ value }) => value)),
    failures: explained ? columnSlots.map((view) => view.map(({ value }) => `why_${value}`)) : [],
  }
}

/** Says which texts of the record and of the outer element expressions read. */
function inExpressions(slots: readonly Slot[], ofColumns: readonly Slot[], { readInExpressions }: Expansion) {
  const isRead = (slot: Slot) => readInExpressions.some((column) => ofColumns[column] === slot)
  return {
    repeated: slots.flatMap((slot) =>
      slot.scope === 'record' && slot.read !== undefined ? [{ ...slot.read, isInExpression: isRead(slot) }] : [],
    ),
    isParentInExpression: slots.some((slot) => slot.scope === 'parent' && isRead(slot)),
  }
}

/** Adds the values that are read from texts. */
function addValues(slots: readonly Slot[], texts: string): string {
  const values = `SELECT *${slots.map(({ make, value }) => `, ${make} AS ${value}`).join('')} FROM (${texts})`
  const changed = slots.map(({ value, type }) => `${portable(value, type)} AS ${value}`)
  return changed.length === 0 ? values : `SELECT * REPLACE (${changed.join(', ')}) FROM (${values})`
}

/** Returns the slots of a view's columns that are read, by index. Those that it shares with views before it are in `slots`. */
function findReadSlots(columns: readonly CompiledColumn[], slots: Map<string, Slot>, scopes: Scopes): readonly Slot[] {
  const ofColumns: Slot[] = []
  for (const [index, { source, type }] of columns.entries()) {
    if (source.from === 'columns') continue
    const make = (value: string) => readSlot(value, source, type, scopes)
    ofColumns[index] = slotOf(slots, `${JSON.stringify(source)} ${printType(type)}`, make)
  }
  return ofColumns
}

/** Returns the slots of all columns of a view. */
function findSlots(
  columns: readonly CompiledColumn[],
  read: readonly Slot[],
  slots: Map<string, Slot>,
  guard: PatternGuard | undefined,
): readonly Slot[] {
  const ofColumns = [...read]
  const byLevel = [...columns.entries()].toSorted(([, a], [, b]) => levelOf(a) - levelOf(b))
  for (const [index, { source, type }] of byLevel) {
    if (source.from !== 'columns') continue
    const nameOf = (column: number) => ofColumns[column]?.value ?? ''
    const make = (value: string) => computedSlot(value, source, { type, columns, nameOf, guard })
    const key = `${keyOf(source, columns, nameOf)} ${guard?.isSlow ?? ''} ${printType(type)}`
    ofColumns[index] = slotOf(slots, key, make)
  }
  return ofColumns
}

function slotOf(slots: Map<string, Slot>, key: string, make: (value: string) => Slot): Slot {
  const slot = slots.get(key) ?? make(`value_${slots.size}`)
  slots.set(key, slot)
  return slot
}

/** Finds the rows for which the patterns of a view would take too long. */
type PatternGuard = {
  /** SQL that is true for such a row; NULL or false otherwise. */
  readonly isSlow: string
  /** SQL for the message of its dead letter. */
  readonly message: string
}

/** Returns the guard of a view whose patterns are too slow for some records. Adds what it measures to `measures`, with its name. */
function patternGuard(
  { patternBound, expand }: ViewRules,
  slots: readonly Slot[],
  measures: Map<string, string>,
): PatternGuard | undefined {
  if (patternBound === undefined) return undefined
  const { bytesMax, reads, slowest } = patternBound
  const read = new Set(reads.flatMap((index) => slots[index]?.read ?? []))
  const bytes = sumOf([...read].map(bytesOf))
  // The bound is for all rows of a record together. Several columns may read the same text, so the record itself is another bound.
  const all = expand === undefined ? bytes : `greatest(item_count, 1) * ${bytes}`
  const sql = `least(${all}, record_bytes)`
  const name = measures.get(sql) ?? `pattern_bytes_${measures.size}`
  measures.set(sql, name)
  const advice = `above all ${slowest}: repeat less in it, match a shorter text, or send smaller records`
  return {
    isSlow: `${name} > ${bytesMax}`,
    message: `concat('the patterns of the view take too long on ', ${name}, ${quoteLiteral(` bytes of text, ${advice}`)})`,
  }
}

/** Adds the bytes that patterns read, for views that bound them. */
function measured(measures: ReadonlyMap<string, string>, from: string): string {
  if (measures.size === 0) return from
  return `SELECT *, ${[...measures].map(([sql, name]) => `${sql} AS ${name}`).join(', ')} FROM (${from})`
}

/** SQL for an expression that is not evaluated in a row for which its patterns are too slow. */
function unlessSlow(guard: PatternGuard | undefined, sql: string): string {
  return guard === undefined ? sql : `CASE WHEN ${guard.isSlow} THEN NULL ELSE ${sql} END`
}

/** The names are part of it: a dead letter says them. */
function keyOf({ sql, reads }: Computed, columns: readonly CompiledColumn[], nameOf: ComputedIn['nameOf']): string {
  return JSON.stringify([sql(nameOf), reads.map((index) => columns[index]?.name)])
}

function levelOf({ source }: CompiledColumn): number {
  return source.from === 'columns' ? source.level : 0
}

/** Adds the computed values, one level after the other: each is a subquery that has the values which it reads. */
function compute(slots: readonly Slot[], records: string): string {
  const levels = [...new Set(slots.map(({ level }) => level))].filter((level) => level > 0).toSorted((a, b) => a - b)
  return levels.reduce((sql, level) => {
    const ofLevel = slots.filter((slot) => slot.level === level)
    const tried = ofLevel.map(({ value, make }) => `${make} AS ${triedName(value)}`)
    const values = ofLevel.map(({ value, type }) => `${portable(`${triedName(value)}.v`, type)} AS ${value}`)
    return `SELECT *, ${values.join(', ')} FROM (SELECT *, ${tried.join(', ')} FROM (${sql}))`
  }, records)
}

function triedName(value: string): string {
  return `tried_${value}`
}

type ComputedIn = {
  readonly type: ColumnType
  readonly columns: readonly CompiledColumn[]
  readonly nameOf: (column: number) => string
  readonly guard: PatternGuard | undefined
}

function computedSlot(value: string, { sql, reads, level }: Computed, { type, columns, nameOf, guard }: ComputedIn): Slot {
  const tried = triedName(value)
  const isChanged = portable('x', type) !== 'x'
  const inputs = reads.map((index) => `${quoteLiteral(columns[index]?.name ?? '')}, ${nameOf(index)}`)
  return {
    value,
    type,
    level,
    make: `TRY(struct_pack(v := ${unlessSlow(guard, sql(nameOf))}))`,
    failed: isChanged ? `(${tried} IS NULL OR (${tried}.v IS NOT NULL AND ${value} IS NULL))` : `(${tried} IS NULL)`,
    shown: shortText(`json_object(${inputs.join(', ')})`),
  }
}

/** Returns the statement for one view and records that need too much memory. It parses nothing. */
export function undecidedSql(view: ViewRules, { records, passThrough = [] }: Omit<ExtractionOptions, 'guarded'>): string {
  const emptied = `(SELECT * REPLACE (CAST(NULL AS VARCHAR) AS payload) FROM ${records})`
  const { sql } = extractionSql([view], { guarded: true, records: emptied, passThrough })
  return `SELECT * REPLACE (CAST(${verdicts.tooComplex} AS SMALLINT) AS verdict_0) FROM (${sql})`
}

function readSlot(value: string, path: ColumnPath, type: ColumnType, scopes: Scopes): Slot {
  const scope = path.from === 'item_index' ? 'item' : path.from === 'record' ? (path.of ?? 'record') : 'record'
  const { text, make } = readText(path, type, scopes[scope])
  // A list that [*] made is quoted as JSON.
  const isList = path.from === 'record' && path.hasEach
  const shown = shortText(isList ? `to_json(${text})` : text)
  const failed = acceptsAnyText(type) ? undefined : `(${value} IS NULL AND ${text} IS NOT NULL)`
  return { value, type, level: 0, scope, read: { text, isList }, make, failed, shown }
}

function readText(path: ColumnPath, type: ColumnType, texts: Texts): { readonly text: string; readonly make: string } {
  const { format } = path
  const cast = (text: string): string => (format === undefined ? castText(text, type) : formattedTime(text, format, type))
  if (path.from !== 'record') {
    const text = path.from === 'envelope' ? texts.envelope(path) : 'CAST(item_index AS VARCHAR)'
    return { text, make: cast(text) }
  }
  const { readsJson = false } = descriptorOf(type.scalar)
  if (path.hasEach) {
    const text = texts.eachAt(path, readsJson ? 'json_extract' : 'json_extract_string')
    return { text, make: castList(text, readsJson ? 'JSON[]' : 'VARCHAR[]', type) }
  }
  const location = duckDbPath(path.steps)
  if (type.depth > 0) {
    const text = texts.text(location)
    return { text, make: castList(`CAST(${text} AS JSON)`, 'JSON', type) }
  }
  if (readsJson) {
    const json = texts.json(location)
    return { text: json, make: `CASE WHEN ${json} <> 'null' THEN ${json} END` }
  }
  const text = texts.text(location)
  return { text, make: cast(text) }
}

/** SQL for the verdict, which applies the rules of a row in order. */
function verdict(
  { columns, condition, expand }: ViewRules,
  view: number,
  slots: readonly Slot[],
  guard: PatternGuard | undefined,
): string {
  const cases = [`WHEN NOT readable THEN ${verdicts.unreadable}`]
  if (expand !== undefined) {
    cases.push(`WHEN expand_problem IS NOT NULL THEN ${verdicts.expandFailed}`, `WHEN NOT has_items THEN ${verdicts.noItem}`)
  }
  if (guard !== undefined) cases.push(`WHEN ${guard.isSlow} THEN ${verdicts.tooComplex}`)
  if (condition !== undefined) cases.push(`WHEN NOT condition_${view} THEN ${verdicts.filteredOut}`)
  for (const [index, column] of columns.entries()) {
    const { value = '', failed } = slots[index] ?? {}
    // A value that is present but of another type is a failed cast, not a missing value: that rule comes first.
    if (failed !== undefined && rejectsFailures(column)) cases.push(`WHEN ${failed} THEN ${castFailed(index)}`)
    if (column.required) cases.push(`WHEN ${value} IS NULL THEN ${missing(index)}`)
  }
  if (condition !== undefined) cases.push(`WHEN condition_${view} IS NULL THEN ${verdicts.filterUnknown}`)
  return `CAST(CASE ${cases.join(' ')} ELSE ${verdicts.accepted} END AS SMALLINT)`
}

/** Whether a row with a value that does not fit goes to the DLQ. */
function rejectsFailures({ required, castFailures }: CompiledColumn): boolean {
  return required || castFailures === 'dlq'
}

/** Columns in one bit mask. */
export const MASK_COLUMNS = 62

/** SQL for the values that became NULL because their cast failed: one bit for each column of the mask. */
function castNulls({ columns }: ViewRules, slots: readonly Slot[], mask: number): string {
  const found = columns.flatMap((column, index) => {
    const { value = '', failed } = slots[index] ?? {}
    if (failed === undefined || rejectsFailures(column) || Math.floor(index / MASK_COLUMNS) !== mask) return []
    return [{ value, failed, bit: 2n ** BigInt(index % MASK_COLUMNS) }]
  })
  if (found.length === 0) return 'CAST(0 AS BIGINT)'
  // Most rows have all values, and only the others read the texts.
  const isComplete = found.map(({ value }) => `${value} IS NOT NULL`).join(' AND ')
  const bits = found.map(({ failed, bit }) => `CASE WHEN ${failed} THEN CAST(${bit} AS BIGINT) ELSE 0 END`)
  return `CASE WHEN ${isComplete} THEN CAST(0 AS BIGINT) ELSE ${bits.join(' + ')} END`
}

function shortText(value: string): string {
  return `left(CAST(${value} AS VARCHAR), ${FAILED_TEXT_CHARS_MAX})`
}

/** SQL for the beginning of the text whose cast failed, or why a row is rejected otherwise, in rows with such a verdict. */
function failedText(
  { columns, expand }: ViewRules,
  view: number,
  slots: readonly Slot[],
  guard: PatternGuard | undefined,
): string {
  const cases = columns.flatMap((column, index) => {
    const { failed, shown = '' } = slots[index] ?? {}
    return failed !== undefined && rejectsFailures(column) ? [`WHEN ${castFailed(index)} THEN ${shown}`] : []
  })
  if (expand !== undefined) cases.push(`WHEN ${verdicts.expandFailed} THEN expand_problem`)
  if (guard !== undefined) cases.push(`WHEN ${verdicts.tooComplex} THEN ${guard.message}`)
  if (cases.length === 0) return 'CAST(NULL AS VARCHAR)'
  return `CASE WHEN verdict_${view} ${expand === undefined && guard === undefined ? '>' : '<>'} 0 THEN CASE verdict_${view} ${cases.join(' ')} END END`
}
