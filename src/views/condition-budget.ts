/**
 * Bounds what the conditions of a view make.
 *
 * DuckDB processes up to 2048 rows at once and keeps the result of each call until it has processed them, outside its memory limit. Texts
 * of a record are bounded by its size; texts that are joined or replaced are not, and calls can be nested.
 *
 * Law: whatever the records are, `||`, `concat` and `replace` in all conditions of a view make, for one record, no more text than
 * `madeValuesMax` times its values, and `madeBytesMax` bytes. At most `timeCastsMax` parts read text as a time, which takes a long
 * expression each.
 */
import { Buffer } from 'node:buffer'
import { definitionLimits } from '#model/limits.ts'
import { ConditionError, type TextSize } from './condition.ts'

const { madeValuesMax, madeBytesMax, timeCastsMax } = definitionLimits

export class ConditionBudget {
  #values = 0
  #bytes = 0
  #timeCasts = 0

  /** Counts a part that reads text as a time. */
  countTimeCast(): void {
    this.#timeCasts += 1
    if (this.#timeCasts <= timeCastsMax) return
    throw new ConditionError(
      `reads text as a time too often: all conditions of the view may do so at most ${timeCastsMax} times; declare a column with the type`,
    )
  }

  /** Counts a text that is made, and returns its size. */
  addText({ values, bytes }: TextSize): TextSize {
    this.#values += values
    this.#bytes += bytes
    if (this.#values <= madeValuesMax && this.#bytes <= madeBytesMax) return { values, bytes }
    throw new ConditionError(
      `makes too much text: ||, concat and replace in all conditions of the view may make at most ${madeValuesMax} times the text of a record, and ${madeBytesMax} more bytes`,
    )
  }
}

/** Returns the longest text that `replace` can make. `removed` is undefined if it is not a constant. */
export function sizeOfReplaced({ values, bytes }: TextSize, removed: string | undefined, inserted: string): TextSize {
  const ratio = Buffer.byteLength(inserted) / Math.max(1, Buffer.byteLength(removed ?? ''))
  const factor = Math.max(1, Math.ceil(ratio))
  return { values: values * factor, bytes: bytes * factor }
}
