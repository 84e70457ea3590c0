/**
 * The conditions of a statement that decide which partitions of a table it reads.
 *
 * Owns: finding them in the tree of a statement, and whether a partition can have a row that meets them. Does not own: which files are of which
 * partition (model/artifact.ts), the result: the statement applies its conditions itself.
 * Law: whatever is not understood leaves nothing out.
 */
import { Buffer } from 'node:buffer'
import type { PartitionValue } from '#model/artifact.ts'
import type { Column } from '#model/definition.ts'
import { parseType } from '#model/types/column-type.ts'

/** Constants of a table's conditions. They are compared with each file that a table may have, so with more of them none is left out. */
export const constantsMax = 100

export type Condition = {
  /** As the statement writes it. */
  readonly column: string
  readonly operator: keyof typeof meets
  readonly constants: readonly Constant[]
}

type Constant = { readonly kind: 'text' | 'date' | 'integer' | 'boolean'; readonly text: string }

type Node = { readonly [key: string]: unknown }

const operators: Readonly<Record<string, readonly [operator: Condition['operator'], mirrored: Condition['operator']]>> = {
  COMPARE_EQUAL: ['in', 'in'],
  COMPARE_LESSTHAN: ['less', 'greater'],
  COMPARE_GREATERTHAN: ['greater', 'less'],
  COMPARE_LESSTHANOREQUALTO: ['at most', 'at least'],
  COMPARE_GREATERTHANOREQUALTO: ['at least', 'at most'],
}

/** `order` compares the value of the partition with a constant. */
const meets = {
  in: (orders: readonly number[]) => orders.includes(0),
  less: ([order = 0]: readonly number[]) => order < 0,
  greater: ([order = 0]: readonly number[]) => order > 0,
  'at most': ([order = 0]: readonly number[]) => order <= 0,
  'at least': ([order = 0]: readonly number[]) => order >= 0,
}

/** Returns the conditions on columns that all rows meet which a SELECT reads from its only table. `names` are those of the table there. */
export function conditionsOf(where: unknown, names: readonly string[]): readonly Condition[] {
  const node = where as Node | null
  if (node?.['type'] === 'CONJUNCTION_AND') return childrenOf(node).flatMap((child) => conditionsOf(child, names))
  return (node === null ? undefined : read(node, names)) ?? []
}

function read(node: Node, names: readonly string[]): readonly Condition[] | undefined {
  const type = String(node['type'])
  if (type === 'COMPARE_BETWEEN') {
    const [column, lower, upper] = [columnOf(node['input'], names), constantOf(node['lower']), constantOf(node['upper'])]
    if (column === undefined || lower === undefined || upper === undefined) return undefined
    return [
      { column, operator: 'at least', constants: [lower] },
      { column, operator: 'at most', constants: [upper] },
    ]
  }
  if (type === 'COMPARE_IN') {
    const [first, ...others] = childrenOf(node)
    const column = columnOf(first, names)
    const constants = others.map(constantOf).filter((each) => each !== undefined)
    return column === undefined || constants.length < others.length ? undefined : [{ column, operator: 'in', constants }]
  }
  const [operator, mirrored] = operators[type] ?? []
  if (operator === undefined || mirrored === undefined) return undefined
  return compare(node['left'], node['right'], operator, names) ?? compare(node['right'], node['left'], mirrored, names)
}

function compare(
  left: unknown,
  right: unknown,
  operator: Condition['operator'],
  names: readonly string[],
): readonly Condition[] | undefined {
  const [column, constant] = [columnOf(left, names), constantOf(right)]
  return column === undefined || constant === undefined ? undefined : [{ column, operator, constants: [constant] }]
}

function columnOf(value: unknown, names: readonly string[]): string | undefined {
  const node = value as Node | null
  const parts = node?.['type'] === 'COLUMN_REF' ? node['column_names'] : undefined
  if (!Array.isArray(parts)) return undefined
  const [column, table] = parts.toReversed().map(String)
  const isOfTable = parts.length === 1 || (parts.length === 2 && names.includes(table?.toLowerCase() ?? ''))
  return isOfTable ? column : undefined
}

const kinds: Readonly<Record<string, Constant['kind']>> = {
  ...{ VARCHAR: 'text', BOOLEAN: 'boolean' },
  ...{ TINYINT: 'integer', SMALLINT: 'integer', INTEGER: 'integer', BIGINT: 'integer' },
}

function constantOf(value: unknown): Constant | undefined {
  const node = value as Node | null
  if (node?.['type'] === 'OPERATOR_CAST') {
    const id = (node['cast_type'] as Node | null)?.['id']
    const cast = constantOf(node['child'])
    if (id === 'DATE') return cast?.kind === 'text' && isDay(cast.text) ? { kind: 'date', text: cast.text } : undefined
    // As the parser writes true and false.
    if (id === 'BOOLEAN' && (cast?.text === 't' || cast?.text === 'f'))
      return { kind: 'boolean', text: String(cast.text === 't') }
    return undefined
  }
  if (node?.['type'] !== 'VALUE_CONSTANT') return undefined
  const { type, is_null: isNull, value: constant } = (node['value'] ?? {}) as Node
  const kind = kinds[String((type as Node | null)?.['id'])]
  if (kind === undefined || isNull === true) return undefined
  // Larger integers are not exact in JSON.
  if (kind === 'integer' && !Number.isSafeInteger(constant)) return undefined
  return { kind, text: String(constant) }
}

function childrenOf(node: Node): readonly unknown[] {
  return Array.isArray(node['children']) ? node['children'] : []
}

/**
 * Whether a partition can have rows that meet all conditions of one of the lists. Without lists it can: the table is read in a way that is
 * not understood.
 */
export function canMeet(
  lists: readonly (readonly Condition[])[] | undefined,
  partition: readonly PartitionValue[],
  columns: readonly Pick<Column, 'name' | 'type'>[],
): boolean {
  if (lists === undefined) return true
  return lists.some((conditions) =>
    conditions.every((condition) => {
      const own = partition.find(({ column }) => column.toLowerCase() === condition.column.toLowerCase())
      const type = columns.find(({ name }) => name === own?.column)?.type
      if (own === undefined || type === undefined) return true
      // NULL meets none of them.
      if (own.value === null) return false
      const compare = comparerOf(own.value, parseType(type).scalar)
      const orders = condition.constants.map(compare)
      const known = orders.filter((order) => order !== undefined)
      return known.length < orders.length || meets[condition.operator](known)
    }),
  )
}

const isDay = (text: string): boolean => /^\d{4}-\d\d-\d\d$/.test(text)

/** Returns a function that says how the value compares with a constant, or undefined if only DuckDB knows. */
function comparerOf(value: string, type: string): (constant: Constant) => number | undefined {
  switch (type) {
    case 'VARCHAR': {
      const bytes = Buffer.from(value)
      return ({ kind, text }) => (kind === 'text' ? Buffer.compare(bytes, Buffer.from(text)) : undefined)
    }
    case 'DATE':
      return ({ kind, text }) => {
        const isKnown = (kind === 'date' || kind === 'text') && isDay(text) && isDay(value)
        return isKnown ? Number(value > text) - Number(value < text) : undefined
      }
    case 'BOOLEAN':
      return ({ kind, text }) => (kind === 'boolean' ? Number(value === 'true') - Number(text === 'true') : undefined)
    default: {
      const number = BigInt(value)
      return ({ kind, text }) => (kind === 'integer' ? Number(number - BigInt(text)) : undefined)
    }
  }
}
