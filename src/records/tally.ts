/** Counts of the rows that a view does not simply accept. */
import { columnOf, isMissing, MASK_COLUMNS } from '#views/extraction.ts'

export type Tally = {
  readonly dropped: number
  readonly dlq: number
  readonly castNulls: number
  /** By column index; columns without any may be missing. */
  readonly ofColumns: ReadonlyMap<number, ColumnTally>
}
/** Values that became NULL because their cast failed, and DLQ rows by error. */
export type ColumnTally = { readonly castNulls: number; readonly castDlq: number; readonly missing: number }

/** Returns the sums of both. */
export function sumTallies(one: Tally, other: Tally): Tally {
  const ofColumns = new Map(one.ofColumns)
  for (const [column, tally] of other.ofColumns) addToColumn(ofColumns, column, tally)
  return {
    dropped: one.dropped + other.dropped,
    dlq: one.dlq + other.dlq,
    castNulls: one.castNulls + other.castNulls,
    ofColumns,
  }
}

function addToColumn(columns: Map<number, ColumnTally>, column: number, more: Partial<ColumnTally>): void {
  const { castNulls = 0, castDlq = 0, missing = 0 } = columns.get(column) ?? {}
  columns.set(column, {
    castNulls: castNulls + (more.castNulls ?? 0),
    castDlq: castDlq + (more.castDlq ?? 0),
    missing: missing + (more.missing ?? 0),
  })
}

/** Distinct bit masks that are held before they are added to the columns. With hostile records, each may have a different mask. */
const MASKS_MAX = 1_024
/** Bits of a number in JavaScript's bitwise operations. */
const WORD_BITS = 31

export class Counts {
  #dropped = 0
  readonly #verdicts = new Map<number, number>()
  readonly #masks = new Map<bigint, number>()
  readonly #moreMasks = new Map<bigint, number>()
  readonly #castNulls = new Map<number, number>()

  addDropped(): void {
    this.#dropped += 1
  }

  /** Counts rows of the DLQ. */
  addRefused(verdict: number, rows = 1): void {
    count(this.#verdicts, verdict, rows)
  }

  /** Counts the columns whose cast failed and became NULL: one bit each, as in the extraction. */
  addCastNulls(mask: bigint, moreMask: bigint): void {
    if (mask !== 0n) count(this.#masks, mask, 1)
    if (moreMask !== 0n) count(this.#moreMasks, moreMask, 1)
    if (this.#masks.size + this.#moreMasks.size >= MASKS_MAX) this.#addMasks()
  }

  tally(): Tally {
    this.#addMasks()
    const ofColumns = new Map<number, ColumnTally>()
    for (const [column, castNulls] of this.#castNulls) addToColumn(ofColumns, column, { castNulls })
    for (const [verdict, rows] of this.#verdicts) {
      if (verdict > 0) addToColumn(ofColumns, columnOf(verdict), isMissing(verdict) ? { missing: rows } : { castDlq: rows })
    }
    return { dropped: this.#dropped, dlq: sum(this.#verdicts), castNulls: sum(this.#castNulls), ofColumns }
  }

  #addMasks(): void {
    for (const [masks, first] of [[this.#masks, 0] as const, [this.#moreMasks, MASK_COLUMNS] as const]) {
      for (const [mask, rows] of masks) {
        this.#addWord(Number(BigInt.asUintN(WORD_BITS, mask)), first, rows)
        this.#addWord(Number(mask >> BigInt(WORD_BITS)), first + WORD_BITS, rows)
      }
      masks.clear()
    }
  }

  #addWord(word: number, first: number, rows: number): void {
    for (let left = word; left !== 0; left &= left - 1) {
      // The position of the lowest set bit.
      const position = WORD_BITS - Math.clz32(left & -left)
      count(this.#castNulls, first + position, rows)
    }
  }
}

function count<K>(counts: Map<K, number>, key: K, more: number): void {
  counts.set(key, (counts.get(key) ?? 0) + more)
}

function sum(counts: ReadonlyMap<unknown, number>): number {
  return counts.values().reduce((all, each) => all + each, 0)
}
