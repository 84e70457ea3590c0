/**
 * Bounds what the conditions of a view make.
 *
 * DuckDB processes up to 2048 rows at once and keeps the result of each call until it has processed them, outside its memory limit. The
 * texts of a record are bounded by its size. Those that calls return are not: calls can be nested, and `||`, `concat` and `replace` return
 * more than they read. So do casts: a list as text has its quotes and backslashes escaped, which doubles at each level.
 *
 * Law: whatever the records are, the calls in all expressions of a view return, for one record, no more text than `textValuesMax` times its
 * values, and `textBytesMax` bytes; half as much again if all letters are longer in the other case. At most `timeCastsMax` parts read text
 * as a time, which takes a long expression each.
 */
import { Buffer } from 'node:buffer'
import { definitionLimits } from '#model/limits.ts'
import type { ColumnType } from '#model/types/column-type.ts'
import { ConditionError, type PartType, type TextSize } from './condition.ts'
import { isList, isScalar } from './filter-types.ts'
import { PatternBudget } from './pattern-budget.ts'

const { textValuesMax, textBytesMax, timeCastsMax } = definitionLimits

/** The size of a scalar that is not text, if it becomes text. */
export const scalarSize: TextSize = { values: 0, bytes: 64 }

/** Memory of an item of a list, beside its text. */
const itemBytes = 16

/** A list takes up to so many times the memory of the text that it is read from: an item of two bytes takes sixteen. */
const LIST_GROWTH = 8

/** How many times as long a text may be in JSON, where a control character is an escape such as \u0001; and bytes as text, such as \x27. */
const [JSON_GROWTH, BYTES_GROWTH] = [6, 4]

type Sized = { readonly type: PartType; readonly size: TextSize }

export class ConditionBudget {
  readonly patterns = new PatternBudget()
  #values = 0
  #bytes = 0
  #timeCasts = 0

  /** How many times the text of a record all calls may return. */
  get textsMade(): number {
    return this.#values
  }

  /** Counts a part that reads text as a time. */
  countTimeCast(): void {
    this.#timeCasts += 1
    if (this.#timeCasts <= timeCastsMax) return
    throw new ConditionError(
      `reads text as a time too often: all expressions of the view may do so at most ${timeCastsMax} times; declare a column with the type`,
      'too_expensive',
    )
  }

  /** Returns the size of a call that returns no more than it reads, and counts it. */
  sizeOf(type: PartType, read: readonly { readonly size: TextSize }[]): TextSize {
    return isText(type) ? this.add(sumSizes(read)) : scalarSize
  }

  /** Counts casts that DuckDB makes by itself, to compare values of several types. */
  countCasts(parts: readonly Sized[]): void {
    for (const part of parts) {
      const other = parts.find(
        ({ type }) =>
          type !== 'unknown' && (isList(type) !== isList(part.type) || isScalar(type, 'BLOB') !== isScalar(part.type, 'BLOB')),
      )
      if (other !== undefined) this.sizeOf(other.type, [{ size: castSize(part, other.type) }])
    }
  }

  /** Counts a text that a call returns, and returns its size. */
  add({ values, bytes }: TextSize): TextSize {
    this.#values += values
    this.#bytes += bytes
    if (this.#values <= textValuesMax && this.#bytes <= textBytesMax) return { values, bytes }
    throw new ConditionError(
      `makes too much text: the functions, operators and casts in all expressions of the view may return at most ${textValuesMax} times the text of a record, and ${textBytesMax} more bytes`,
      'too_expensive',
    )
  }
}

/** Returns the size of a list with these items. */
export function sizeOfList(items: readonly { readonly size: TextSize }[]): TextSize {
  return sumSizes([...items, { size: { values: 0, bytes: itemBytes * items.length } }])
}

/** Returns the size of a value that is cast to another type. */
export function castSize({ type, size }: Sized, to: PartType): TextSize {
  const growth = growthOf(type, to)
  return { values: size.values * growth, bytes: size.bytes * growth }
}

/** Returns the size of a list that becomes JSON, because it is beside JSON or a list of it that is less deep. */
export function sizeBeside({ type, size }: Sized, parts: readonly Sized[]): TextSize {
  const becomesJson =
    isList(type) &&
    parts.some((other) => typeof other.type === 'object' && other.type.scalar === 'JSON' && other.type.depth < type.depth)
  return becomesJson ? castSize({ type, size }, { scalar: 'JSON', depth: 0 }) : size
}

/** Returns how many times as long a value may become. */
function growthOf(from: PartType, to: PartType): number {
  if (isList(to)) return isList(from) ? 1 : LIST_GROWTH
  if (!isScalar(to, 'VARCHAR', 'JSON', 'BLOB')) return 1
  if (isList(from)) return isScalar(to, 'JSON') ? Math.max(JSON_GROWTH, printedGrowth(from)) : printedGrowth(from)
  return isScalar(from, 'BLOB') ? BYTES_GROWTH : 1
}

/** Returns how many times as long as in its record a list may be as text: `1` is `1.00` as a decimal, and a quote or backslash is escaped. */
function printedGrowth({ scalar, decimal }: ColumnType): number {
  if (decimal !== undefined) return Math.ceil((decimal.precision + 5) / 2)
  return ['HUGEINT', 'UHUGEINT', 'BLOB'].includes(scalar) ? 9 : acceptsText(scalar) ? 2 : 5
}

function acceptsText(scalar: ColumnType['scalar']): boolean {
  return scalar === 'VARCHAR' || scalar === 'JSON'
}

/** Returns the size of a column. */
export function columnSize(type: PartType): TextSize {
  return isText(type) ? { values: 1, bytes: 0 } : scalarSize
}

export function sumSizes(parts: readonly { readonly size: TextSize }[]): TextSize {
  return {
    values: parts.reduce((sum, { size }) => sum + size.values, 0),
    bytes: parts.reduce((sum, { size }) => sum + size.bytes, 0),
  }
}

/** Returns the longest text that `replace` can make. `removed` is undefined if it is not a constant. */
export function sizeOfReplaced({ values, bytes }: TextSize, removed: string | undefined, inserted: string): TextSize {
  const ratio = Buffer.byteLength(inserted) / Math.max(1, Buffer.byteLength(removed ?? ''))
  const factor = Math.max(1, Math.ceil(ratio))
  return { values: values * factor, bytes: bytes * factor }
}

export function constantSize(text: string): TextSize {
  return { values: 0, bytes: Buffer.byteLength(text) }
}

/** Whether the length of a value depends on the record. */
function isText(type: PartType): boolean {
  return type === 'unknown' || isList(type) || isScalar(type, 'VARCHAR', 'JSON', 'BLOB')
}
