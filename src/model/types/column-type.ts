/**
 * The type of a column: a scalar type from the table in descriptors.ts, or a list of one.
 *
 * Owns: parsing and printing. Does not own: what a type can do (descriptors.ts), SQL for lists (views/cast-sql.ts).
 * Law: printed types consist of names from the table and numbers, never of the user's text.
 */
import { type Decimal, descriptors, type ScalarName, type TypeDescriptor } from './descriptors.ts'
import type { ValueOrder } from './orders.ts'

export type ColumnType = {
  readonly scalar: ScalarName
  /** Only for DECIMAL. */
  readonly decimal?: Decimal
  /** 0 for a scalar, 1 for `T[]`, 2 for `T[][]`. */
  readonly depth: number
}

export class ColumnTypeError extends Error {
  override readonly name = 'ColumnTypeError'
}

const LIST_DEPTH_MAX = 4
const PRECISION_MAX = 38

const names = Object.keys(descriptors) as readonly ScalarName[]
const scalarsByName: ReadonlyMap<string, ScalarName> = new Map(
  names.flatMap((name) => [name, ...(descriptorOf(name).aliases ?? [])].map((spelling) => [spelling, name])),
)

const shape = /^([a-z]\w*(?: +[a-z]\w*)*) *(?:\( *(\d{1,3}) *(?:, *(\d{1,3}) *)?\))? *((?:\[ *\] *)*)$/i

const printedShape = /^([A-Z]\w*)(?:\(\d+,\d+\))?((?:\[\])*)$/

/** Types of DuckDB that a column cannot have, and why. */
const refusals: readonly (readonly [types: RegExp, reason: string])[] = [
  [/^(struct|row|map|union|object)\b/i, 'is nested: use a column for each field, or one JSON column for all'],
  [/^interval\b/i, 'is not a type that Spark, Trino and Polars read: use BIGINT for a number of seconds, or VARCHAR'],
  [/^enum\b/i, 'has values that a definition does not list: use VARCHAR, which Parquet stores as compactly'],
  [/^(timetz|time with time zone)\b/i, 'is not a type of Parquet: use VARCHAR, or TIMESTAMP for an instant'],
  [/^timestamp_(s|ms|ns)\b/i, 'is not a type that every engine reads: use TIMESTAMP, which has microseconds'],
  [/^(bit|bitstring|bignum|varint|geometry)\b/i, 'is not a type of Parquet: use VARCHAR or BLOB'],
  [/\[\s*\d+\s*\]$/, 'has a fixed length, which Parquet does not store: use a list such as INTEGER[]'],
]

/** Returns why a type of DuckDB is refused; undefined if the text is no such type. */
function insteadOf(text: string): string | undefined {
  const given = text.trim()
  const [, reason] = refusals.find(([types]) => types.test(given)) ?? []
  return reason === undefined ? undefined : `${JSON.stringify(given.slice(0, 32))} ${reason}`
}

export function descriptorOf(scalar: ScalarName): TypeDescriptor {
  return descriptors[scalar]
}

/** Parses the type of a definition. Throws ColumnTypeError with a message that lists the types. */
export function parseType(text: string): ColumnType {
  const match = shape.exec(text.trim())
  const word = (match?.[1] ?? '').toUpperCase().replace(/ +/g, ' ')
  const scalar = scalarsByName.get(word)
  if (match === null || scalar === undefined) {
    const instead = insteadOf(text)
    if (instead !== undefined) throw new ColumnTypeError(instead)
    throw new ColumnTypeError(`unknown type: use one of ${names.join(', ')}, DECIMAL(p,s), or a list such as VARCHAR[]`)
  }
  const [, , precision, scale = '0', brackets = ''] = match
  const depth = brackets.split('[').length - 1
  if (depth > LIST_DEPTH_MAX) throw new ColumnTypeError(`lists may be nested at most ${LIST_DEPTH_MAX} deep`)
  const { defaultDecimal } = descriptorOf(scalar)
  if (defaultDecimal === undefined) {
    if (precision !== undefined) throw new ColumnTypeError(`only DECIMAL takes precision and scale: use ${scalar}`)
    return { scalar, depth }
  }
  if (precision === undefined) return { scalar, depth, decimal: defaultDecimal }
  return { scalar, depth, decimal: checkDecimal({ precision: Number(precision), scale: Number(scale) }) }
}

function checkDecimal(decimal: Decimal): Decimal {
  const { precision, scale } = decimal
  if (precision < 1 || precision > PRECISION_MAX || scale > precision) {
    throw new ColumnTypeError(
      `${printDecimal(decimal)} is out of range: use a precision of 1 to ${PRECISION_MAX} and a scale up to the precision, e.g. DECIMAL(12,2)`,
    )
  }
  return decimal
}

/** Returns the canonical spelling, which is also DuckDB's. */
export function printType({ scalar, decimal, depth }: ColumnType): string {
  return (decimal === undefined ? scalar : printDecimal(decimal)) + '[]'.repeat(depth)
}

function printDecimal({ precision, scale }: Decimal): string {
  return `DECIMAL(${precision},${scale})`
}

/** Returns the order of the type's values; undefined if it has none. Lists have none. */
export function orderOf({ scalar, depth }: ColumnType): ValueOrder | undefined {
  return depth > 0 ? undefined : descriptorOf(scalar).order
}

/** Like `orderOf`, for a printed type. Accepts any text. */
export function orderOfPrinted(type: string): ValueOrder | undefined {
  const [, name = '', brackets] = printedShape.exec(type) ?? []
  const scalar = scalarsByName.get(name)
  return scalar === undefined || brackets !== '' ? undefined : descriptorOf(scalar).order
}

/** Returns the type of the column in Parquet files. */
export function storedType(type: ColumnType): ColumnType {
  const { storedAs } = descriptorOf(type.scalar)
  return storedAs === undefined ? type : { ...storedAs, depth: type.depth }
}
