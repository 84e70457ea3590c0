/**
 * Bounds what the conditions of a view make.
 *
 * DuckDB processes up to 2048 rows at once and keeps the result of each call until it has processed them, outside its memory limit. The
 * texts of a record are bounded by its size. Those that calls return are not: calls can be nested, and `||`, `concat` and `replace` return
 * more than they read.
 *
 * Law: whatever the records are, the calls in all expressions of a view return, for one record, no more text than `textValuesMax` times its
 * values, and `textBytesMax` bytes. At most `timeCastsMax` parts read text as a time, which takes a long expression each.
 */
import { Buffer } from 'node:buffer'
import { definitionLimits } from '#model/limits.ts'
import { ConditionError, type PartType, type TextSize } from './condition.ts'
import { isList, isScalar } from './filter-types.ts'
import { PatternBudget } from './pattern-budget.ts'

const { textValuesMax, textBytesMax, timeCastsMax } = definitionLimits

/** The size of a scalar that is not text, if it becomes text. */
export const scalarSize: TextSize = { values: 0, bytes: 64 }

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
