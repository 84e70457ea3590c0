/**
 * The statement that turns records into typed columns and a verdict per view.
 *
 * All views share one parse, and a column that two views have in common is extracted once. Each step is a subquery of its own, so that
 * DuckDB evaluates every expression once per row:
 *
 *   records → payload (NULL if it is not JSON) → texts at the paths → values of the types → computed values → conditions → verdicts
 *
 * Law: exactly one row out for every record in, in the same order.
 */
import { quoteLiteral } from '#duckdb/quote.ts'
import { type ColumnType, descriptorOf, printType } from '#model/types/column-type.ts'
import { acceptsAnyText, castList, castText, portable } from './cast-sql.ts'
import { formattedTime } from './column-format.ts'
import type { ColumnPath, CompiledColumn, Computed, ViewRules } from './compiled-view.ts'
import { duckDbPath, type Path } from './json-path.ts'

/** The outcome for a row. Positive numbers are errors of column `i`: `missing(i)` or `castFailed(i)`. */
export const verdicts = { accepted: 0, filteredOut: -1, filterUnknown: -2, unreadable: -3, tooComplex: -4, unplaced: -5 } as const
export const missing = (column: number): number => 2 * column + 1
export const castFailed = (column: number): number => 2 * column + 2
/** The index of the column that a positive verdict names. */
export const columnOf = (verdict: number): number => Math.floor((verdict - 1) / 2)
export const isMissing = (verdict: number): boolean => verdict % 2 === 1
/** SQL that is true if the row goes to the DLQ. `verdict` is SQL. */
export const isDlq = (verdict: string): string => `(${verdict} > 0 OR ${verdict} <= ${verdicts.unreadable})`

export type Extraction = {
  /**
   * Returns for each view the columns `verdict_<n>`, `cast_nulls_<n>` and `more_cast_nulls_<n>` (one bit for each column whose cast
   * failed and became NULL), `failed_<n>` (the text whose cast failed), and the values.
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
  const found = new Texts()
  const slots = new Map<string, Slot>()
  const columnSlots = views.map(({ columns }) => findSlots(columns, slots, found))
  const all = [...slots.values()]
  const ofRecord = all.filter(({ level }) => level === 0)
  // A view that reads only the envelope never parses the payload, so the check must be explicit.
  const guard = guarded || !found.readsPayload
  const payload = guard ? 'CASE WHEN json_valid(payload) THEN payload END AS payload' : 'payload'
  const passedThrough = passThrough.map((name) => `${name}, `).join('')
  const records = `SELECT ${passedThrough}${payload}, received_at, source FROM ${table}`
  const envelope = found.readsEnvelope ? ' JOIN sources ON sources.rowid = records.source' : ''
  const read = `SELECT ${passedThrough}payload IS NOT NULL AS readable${found.sql()} FROM (${records}) AS records${envelope}`
  const texts = `SELECT *${found.finishLists()} FROM (${read})`
  const values = `SELECT *${ofRecord.map(({ make, value }) => `, ${make} AS ${value}`).join('')} FROM (${texts})`
  const changed = ofRecord.map(({ value, type }) => `${portable(value, type)} AS ${value}`)
  const kept = changed.length === 0 ? values : `SELECT * REPLACE (${changed.join(', ')}) FROM (${values})`
  const computed = compute(all, kept)
  const conditions = views.map(({ condition }, view) => {
    const sql = condition?.((index) => columnSlots[view]?.[index]?.value ?? '')
    // An error in a row, such as an overflow, makes the condition unknown for that row.
    return sql === undefined ? '' : `, TRY(${sql}) AS condition_${view}`
  })
  const decided = `SELECT *${conditions.join('')} FROM (${computed})`
  const verdictsOf = views.map((view, index) => `, ${verdict(view, index, columnSlots[index] ?? [])} AS verdict_${index}`)
  const judged = `SELECT *${verdictsOf.join('')} FROM (${decided})`
  const outcome = views.map((view, index) => {
    const slots = columnSlots[index] ?? []
    const nulls = `${castNulls(view, slots, 0)} AS cast_nulls_${index}, ${castNulls(view, slots, 1)} AS more_cast_nulls_${index}`
    return `verdict_${index}, ${nulls}, ${failedText(view, index, slots)} AS failed_${index}`
  })
  const failures = explained
    ? all.map(
        ({ value, failed, shown }) =>
          `${failed === undefined ? 'CAST(NULL AS VARCHAR)' : `CASE WHEN ${failed} THEN ${shown} END`} AS why_${value}`,
      )
    : []
  return {
    sql: `SELECT ${passedThrough}${[...outcome, ...all.map(({ value }) => value), ...failures].join(', ')} FROM (${judged})`,
    values: columnSlots.map((view) => view.map(({ value }) => value)),
    failures: explained ? columnSlots.map((view) => view.map(({ value }) => `why_${value}`)) : [],
  }
}

/** Returns the slots of a view's columns. Those that it shares with views before it are in `slots`. */
function findSlots(columns: readonly CompiledColumn[], slots: Map<string, Slot>, texts: Texts): readonly Slot[] {
  const ofColumns: Slot[] = []
  const byLevel = [...columns.entries()].toSorted(([, a], [, b]) => levelOf(a) - levelOf(b))
  for (const [index, { source, type }] of byLevel) {
    const nameOf = (column: number) => ofColumns[column]?.value ?? ''
    const key = `${source.from === 'columns' ? keyOf(source, columns, nameOf) : JSON.stringify(source)} ${printType(type)}`
    const value = `value_${slots.size}`
    const slot =
      slots.get(key) ??
      (source.from === 'columns' ? computedSlot(value, source, { type, columns, nameOf }) : readSlot(value, source, type, texts))
    slots.set(key, slot)
    ofColumns[index] = slot
  }
  return ofColumns
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
}

function computedSlot(value: string, { sql, reads, level }: Computed, { type, columns, nameOf }: ComputedIn): Slot {
  const tried = triedName(value)
  const isChanged = portable('x', type) !== 'x'
  const inputs = reads.map((index) => `${quoteLiteral(columns[index]?.name ?? '')}, ${nameOf(index)}`)
  return {
    value,
    type,
    level,
    make: `TRY(struct_pack(v := ${sql(nameOf)}))`,
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

type RecordPath = Path & { readonly from: 'record' }
type Extract = 'json_extract' | 'json_extract_string'

/** The texts that a statement reads from a record, each once. */
class Texts {
  readonly #texts: string[] = []
  readonly #jsons: string[] = []
  readonly #lists = new Map<string, string>()
  /** Names of values from list elements, by the SQL that reads them. */
  readonly #ofElements = new Map<string, string>()
  /** Names of the envelope's fields by the SQL that reads them. */
  readonly #envelope = new Map<string, string>()

  get readsPayload(): boolean {
    return this.#texts.length + this.#jsons.length + this.#lists.size > 0
  }

  get readsEnvelope(): boolean {
    return this.#envelope.size > 0
  }

  text(path: string): string {
    return `texts[${position(this.#texts, path)}]`
  }

  json(path: string): string {
    return `jsons[${position(this.#jsons, path)}]`
  }

  list(path: string, extract: Extract): string {
    const sql = `${extract}(payload, ${quoteLiteral(path)})`
    const name = this.#lists.get(sql) ?? `list_${this.#lists.size}`
    this.#lists.set(sql, name)
    return name
  }

  /** Reads the path in each element of a list; NULL for those in which it finds nothing. */
  eachOf(list: string, path: string, extract: Extract): string {
    const found = `list_transform(CASE WHEN len(${list}) > 0 THEN ${list} END, lambda element: ${extract}(element, ${quoteLiteral(path)}))`
    // JSON null is a missing value here too. The other function returns NULL for it.
    const sql =
      extract === 'json_extract' ? `list_transform(${found}, lambda item: CASE WHEN item <> 'null' THEN item END)` : found
    const name = this.#ofElements.get(sql) ?? `elements_${this.#ofElements.size}`
    this.#ofElements.set(sql, name)
    return name
  }

  envelope(path: Path & { readonly from: 'envelope' }): string {
    const sql = envelopeSql(path)
    const name = this.#envelope.get(sql) ?? `envelope_${this.#envelope.size}`
    this.#envelope.set(sql, name)
    return name
  }

  /** SQL that replaces empty lists by NULL, because a list without values is a missing value, and reads from the elements of lists. */
  finishLists(): string {
    const lists = [...this.#lists.values()].map((name) => `CASE WHEN len(${name}) > 0 THEN ${name} END AS ${name}`)
    const replaced = lists.length === 0 ? '' : ` REPLACE (${lists.join(', ')})`
    return replaced + [...this.#ofElements].map(([sql, name]) => `, ${sql} AS ${name}`).join('')
  }

  sql(): string {
    const parts = [...this.#lists].map(([sql, name]) => `${sql} AS ${name}`)
    if (this.#texts.length > 0) parts.push(`json_extract_string(payload, [${this.#texts.map(quoteLiteral).join(', ')}]) AS texts`)
    if (this.#jsons.length > 0) parts.push(`json_extract(payload, [${this.#jsons.map(quoteLiteral).join(', ')}]) AS jsons`)
    for (const [sql, name] of this.#envelope) parts.push(`${sql} AS ${name}`)
    return parts.map((part) => `, ${part}`).join('')
  }
}

/** SQL for a field of the envelope. In the table `sources`, `attributes` is JSON. */
function envelopeSql(path: Path & { readonly from: 'envelope' }): string {
  const attribute = (...names: string[]): string =>
    `json_extract_string(attributes, ${quoteLiteral(duckDbPath(names.map((key) => ({ key }))))})`
  switch (path.field) {
    case 'ingested_at':
      return `strftime(make_timestamp(received_at), '%Y-%m-%dT%H:%M:%S.%fZ')`
    case 'content_type':
    case 'address':
    case 'key_name':
      return attribute(path.field)
    case 'user_property':
      return attribute('user_properties', path.name)
    case 'header':
      return attribute('headers', path.name)
    case 'topic':
    case 'client_id':
    case 'protocol':
      return path.field
  }
}

function readSlot(value: string, path: ColumnPath, type: ColumnType, texts: Texts): Slot {
  const { text, make } = readText(path, type, texts)
  // A list that [*] made is quoted as JSON.
  const shown = shortText(path.from === 'record' && path.hasEach ? `to_json(${text})` : text)
  const failed = acceptsAnyText(type) ? undefined : `(${value} IS NULL AND ${text} IS NOT NULL)`
  return { value, type, level: 0, make, failed, shown }
}

function readText(path: ColumnPath, type: ColumnType, texts: Texts): { readonly text: string; readonly make: string } {
  const { format } = path
  const cast = (text: string): string => (format === undefined ? castText(text, type) : formattedTime(text, format, type))
  if (path.from === 'envelope') {
    const text = texts.envelope(path)
    return { text, make: cast(text) }
  }
  const { readsJson = false } = descriptorOf(type.scalar)
  if (path.hasEach) {
    const text = readList(path, readsJson ? 'json_extract' : 'json_extract_string', texts)
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

/** SQL for the list that a path with [*] finds. Columns with the same array share its elements. */
function readList({ steps, isAligned }: RecordPath, extract: Extract, texts: Texts): string {
  const end = steps.lastIndexOf('each') + 1
  if (isAligned !== true || end === steps.length) return texts.list(duckDbPath(steps), extract)
  const elements = texts.list(duckDbPath(steps.slice(0, end)), 'json_extract')
  return texts.eachOf(elements, duckDbPath(steps.slice(end)), extract)
}

/** SQL for the verdict, which applies the rules of a row in order. */
function verdict({ columns, condition }: ViewRules, view: number, slots: readonly Slot[]): string {
  const cases = [`WHEN NOT readable THEN ${verdicts.unreadable}`]
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

/** SQL for the beginning of the text whose cast failed, in rows with such a verdict. */
function failedText({ columns }: ViewRules, view: number, slots: readonly Slot[]): string {
  const cases = columns.flatMap((column, index) => {
    const { failed, shown = '' } = slots[index] ?? {}
    return failed !== undefined && rejectsFailures(column) ? [`WHEN ${castFailed(index)} THEN ${shown}`] : []
  })
  if (cases.length === 0) return 'CAST(NULL AS VARCHAR)'
  return `CASE WHEN verdict_${view} > 0 THEN CASE verdict_${view} ${cases.join(' ')} END END`
}

/** Returns the position of the text in the list, counted from 1 as DuckDB does; adds it if it is new. */
function position(texts: string[], text: string): number {
  const at = texts.indexOf(text)
  return at === -1 ? texts.push(text) : at + 1
}
