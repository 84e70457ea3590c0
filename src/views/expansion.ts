/**
 * The part of the statement that turns the elements of an array into rows.
 *
 * Owns: finding the elements, which records cannot be expanded, and what is read from elements. Does not own: the values (extraction.ts), and what
 * becomes of a record whose elements have different verdicts (records/expanded-rows.ts).
 * Law: the record is parsed before its elements are rows, so that its cost does not grow with their number; an outer element too. Records are
 * hostile: the number of rows is bounded, and so is the text that they repeat.
 * DuckDB keeps the texts that functions return for 2048 rows at once. Rows repeat texts of their record, so what an expression makes of them is
 * bounded as well.
 */
import { quoteLiteral } from '#duckdb/quote.ts'
import { KiB } from '#lib/bytes.ts'
import { definitionLimits } from '#model/limits.ts'
import type { Expansion } from './compiled-view.ts'
import { duckDbPath, type Expand, printExpand, printPath, type Step } from './json-path.ts'
import { Texts } from './record-texts.ts'

const { expandedRowsMax, repeatedTextFactor, repeatedTextBytes } = definitionLimits

/** Texts that expressions make of a row: below this size in any number of rows, above it so many times the size of the record. */
const MADE_BYTES = 64 * KiB
const MADE_FACTOR = 128

/** The texts that columns read, by the JSON that has them. */
export class Scopes {
  readonly record = new Texts('payload')
  readonly parent = new Texts('parent', 'parent_')
  readonly item = new Texts('item_json', 'item_')
}

/** SQL for a text, or a list of texts, that a column reads. */
export type ReadText = { readonly text: string; readonly isList: boolean }

type Stages = {
  /** The statement that reads the record. `more` is added to its columns. */
  readonly read: (more: string) => string
  /** Texts of the record. Expressions read some of them. */
  readonly repeated: readonly (ReadText & { readonly isInExpression: boolean })[]
  /** Whether expressions read columns of the outer element. */
  readonly isParentInExpression: boolean
  /** Adds the values of the columns that are read from these. */
  readonly addValues: (scopes: readonly (keyof Scopes)[], from: string) => string
}

/**
 * Returns the statement for the rows, with the values that are read. A record without elements, or one that cannot be expanded, is a row without
 * an element: `has_items` is false. `expand_problem` says why it cannot.
 */
export function expandedRows(expand: Expansion, { record, parent, item }: Scopes, stages: Stages): string {
  const { steps, inner } = expand
  const elements = `json_extract(payload, ${quoteLiteral(duckDbPath([...steps, 'each']))})`
  const read = stages.read(`, payload, strlen(payload) AS record_bytes, ${elements} AS elements`)
  const { replaced, added } = record.listsToFinish()
  // An array that is empty, not there, or something else.
  const type = `CASE WHEN len(elements) = 0 THEN json_type(payload, ${quoteLiteral(duckDbPath(steps))}) END AS array_type`
  const finished = `SELECT * EXCLUDE (payload)${replacing(replaced)}, ${[...added, type].join(', ')} FROM (${read})`
  const values = stages.addValues(['record'], finished)
  const counted = inner === undefined ? countOne(values) : countNested(values, inner, parent, expand, stages)
  const problems = `SELECT *, ${problem(expand, stages)} AS expand_problem FROM (${counted})`
  const checked = `SELECT *, expand_problem IS NULL AND item_count > 0 AS has_items FROM (${problems})`
  const ofParent = inner === undefined ? [] : parent.parts().map(({ name }) => name)
  const unnested = inner === undefined ? unnestOne(checked) : unnestNested(checked, ofParent)
  const parentTexts = ofParent.map((name) => `, struct_extract(parent_texts_of_item, '${name}') AS ${name}`).join('')
  const texts = `SELECT *${item.sql()}${parentTexts} FROM (${unnested})`
  const lists = [item, parent].map((scope) => scope.listsToFinish())
  const listsAdded = lists.flatMap((each) => each.added).map((sql) => `, ${sql}`)
  const complete = `SELECT *${replacing(lists.flatMap((each) => each.replaced))}${listsAdded.join('')} FROM (${texts})`
  return stages.addValues(['parent', 'item'], complete)
}

/** SQL for the columns of a row that say which element it is of. The path is only made where the condition is true. */
export function itemOutputs({ steps, inner }: Expand, condition: string): readonly string[] {
  const parts = inner === undefined ? [steps, 'item_index'] : [steps, 'parent_at - 1', inner, 'inner_at']
  const path = parts.map((part, at) => {
    if (typeof part === 'string') return part
    return quoteLiteral(`${at === 0 ? '' : ']'}${at === 0 ? printPath(part) : printPath(part).slice(1)}[`)
  })
  return ['item_index', `CASE WHEN has_items AND ${condition} THEN concat(${path.join(', ')}, ']') END AS item_path`]
}

function countOne(values: string): string {
  return `SELECT * EXCLUDE (elements), elements AS items, coalesce(len(elements), 0) AS item_count FROM (${values})`
}

/** Reads each outer element once: its array, and what columns read from it. */
function countNested(values: string, inner: readonly Step[], parent: Texts, expand: Expansion, stages: Stages): string {
  const items = `json_extract(parent, ${quoteLiteral(duckDbPath([...inner, 'each']))})`
  const fields = parent.parts().map(({ name, sql }) => `, ${name} := ${sql}`)
  const parents = `list_transform(elements, lambda parent: struct_pack(json := parent, items := ${items}${fields.join('')}))`
  const read = `SELECT * EXCLUDE (elements), coalesce(len(elements), 0) AS parent_count,
    CASE WHEN len(elements) <= ${expandedRowsMax} THEN ${parents} END AS parents FROM (${values})`
  const each = (sql: string) => `list_transform(parents, lambda parent: ${sql})`
  const of = (field: string) => `struct_extract(parent, '${field}')`
  const type = `json_type(${of('json')}, ${quoteLiteral(duckDbPath(inner))})`
  const sum = (sql: string) => `CAST(coalesce(list_sum(${each(sql)}), 0) AS BIGINT)`
  const weight = 1 + (stages.isParentInExpression ? expand.textsMade : 0)
  const bytes = sumOf(parent.parts().map(({ name }) => listBytes(of(name))))
  return `SELECT *, ${each(of('items'))} AS parts, ${sum(`len(${of('items')})`)} AS item_count,
    list_position(${each(`CASE WHEN len(${of('items')}) = 0 THEN ${type} NOT IN ('ARRAY', 'NULL') END`)}, true) AS misfit,
    ${sum(`len(${of('items')}) * ${bytes}`)} AS parent_bytes, ${sum(`CASE WHEN ${bytes} * ${weight} > ${MADE_BYTES} THEN len(${of('items')}) * ${bytes} * ${weight} END`)} AS parent_made_bytes
    FROM (${read})`
}

/** SQL that says why a record cannot be expanded, or NULL. */
function problem({ steps, inner, textsMade }: Expansion, { repeated }: Stages): string {
  const at = (path: string) => quoteLiteral(path)
  const path = printPath(steps)
  const whole = printExpand({ steps, ...(inner !== undefined && { inner }) })
  const kindOf = (type: string) =>
    `CASE ${type} WHEN 'OBJECT' THEN 'an object' WHEN 'VARCHAR' THEN 'text' WHEN 'BOOLEAN' THEN 'a boolean' ELSE 'a number' END`
  const cases = [
    `WHEN array_type NOT IN ('ARRAY', 'NULL') THEN concat('the value at ', ${at(path)}, ' is ', ${kindOf('array_type')}, ' and not an array')`,
  ]
  if (inner !== undefined) {
    const misfit = `json_type(struct_extract(parents[misfit], 'json'), ${at(duckDbPath(inner))})`
    cases.push(
      `WHEN parent_count > ${expandedRowsMax} THEN concat('the array at ', ${at(path)}, ' has ', parent_count, ' elements: at most ${expandedRowsMax} are allowed')`,
      `WHEN misfit > 0 THEN concat('the value at ', ${at(`${path}[`)}, misfit - 1, ${at(`]${printPath(inner).slice(1)}`)}, ' is ', ${kindOf(misfit)}, ' and not an array')`,
    )
  }
  cases.push(
    `WHEN item_count > ${expandedRowsMax} THEN concat('the record has ', item_count, ' elements at ', ${at(whole)}, ', and each is a row: at most ${expandedRowsMax} are allowed')`,
  )
  const bytes = sumOf(repeated.map(bytesOf))
  const made = `${sumOf(repeated.filter(({ isInExpression }) => isInExpression).map(bytesOf))} * ${1 + textsMade}`
  const ofParents = inner === undefined ? '' : ' + parent_bytes'
  const madeOfParents = inner === undefined ? '' : ' + parent_made_bytes'
  const total = `(item_count * ${bytes}${ofParents})`
  const totalMade = `(CASE WHEN ${made} > ${MADE_BYTES} THEN item_count * ${made} ELSE 0 END${madeOfParents})`
  cases.push(
    `WHEN item_count > 1 AND (${total} > ${repeatedTextBytes} + ${repeatedTextFactor} * record_bytes OR ${totalMade} > ${MADE_FACTOR} * record_bytes)
      THEN concat('its ', item_count, ' rows would repeat ', ${total}, ' bytes of text, and the record has ', record_bytes, ': read less of the record in each row, or send fewer elements in one')`,
  )
  return `CASE ${cases.join(' ')} END`
}

function unnestOne(checked: string): string {
  const items = `SELECT * REPLACE (CASE WHEN has_items THEN items ELSE [CAST(NULL AS JSON)] END AS items) FROM (${checked})`
  return `SELECT * EXCLUDE (items), unnest(items) AS item_json, generate_subscripts(items, 1) - 1 AS item_index FROM (${items})`
}

/**
 * Counts from 1 in the outer array, as DuckDB does, and from 0 in the inner one. `ofParent` are texts of the outer element: each row gets its own
 * ones, because DuckDB copies a list for each row that takes an element of it.
 */
function unnestNested(checked: string, ofParent: readonly string[]): string {
  const parentAt = 'flatten(list_transform(parts, lambda part, nr: list_resize(CAST([] AS BIGINT[]), len(part), nr)))'
  const innerAt = 'flatten(list_transform(parts, lambda part: range(len(part))))'
  const texts = `struct_pack(${ofParent.map((name) => `${name} := struct_extract(parent, '${name}')`).join(', ')})`
  const ofItems = `flatten(list_transform(parents, lambda parent: list_resize([${texts}], len(struct_extract(parent, 'items')), ${texts})))`
  const parents = ofParent.length === 0 ? '' : `, CASE WHEN has_items THEN ${ofItems} ELSE [NULL] END AS parents_of_items`
  const lists = `SELECT * EXCLUDE (parts, parents)${parents},
      CASE WHEN has_items THEN flatten(parts) ELSE [CAST(NULL AS JSON)] END AS items,
      CASE WHEN has_items THEN ${parentAt} ELSE [CAST(0 AS BIGINT)] END AS parents_at,
      CASE WHEN has_items THEN ${innerAt} ELSE [CAST(0 AS BIGINT)] END AS inners_at
    FROM (${checked})`
  const [exclude, ofItem] =
    ofParent.length === 0 ? ['', ''] : [', parents_of_items', ', unnest(parents_of_items) AS parent_texts_of_item']
  return `SELECT * EXCLUDE (items, parents_at, inners_at${exclude})${ofItem}, unnest(items) AS item_json, generate_subscripts(items, 1) - 1 AS item_index,
      unnest(parents_at) AS parent_at, unnest(inners_at) AS inner_at FROM (${lists})`
}

function replacing(replaced: readonly string[]): string {
  return replaced.length === 0 ? '' : ` REPLACE (${replaced.join(', ')})`
}

/** SQL for the size of a text or list in bytes. */
export function bytesOf({ text, isList }: ReadText): string {
  return isList ? listBytes(text) : `coalesce(strlen(CAST(${text} AS VARCHAR)), 0)`
}

/** An item of a list takes memory even if it has no text. */
function listBytes(list: string): string {
  return `CAST(coalesce(list_sum(list_transform(${list}, lambda each: 16 + coalesce(strlen(each), 0))), 0) AS BIGINT)`
}

export function sumOf(parts: readonly string[]): string {
  return parts.length === 0 ? '0' : `(${parts.join(' + ')})`
}
