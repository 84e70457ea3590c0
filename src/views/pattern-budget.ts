/**
 * Bounds the time that the patterns and searches of a view take on one record.
 *
 * DuckDB cannot be interrupted while it matches one text. So what cannot be fast enough is refused: by the compiler if small records would
 * already take too long, otherwise before a statement reads a record that is too large.
 *
 * Law: a step is up to 20 ns, and all patterns of a view take at most `patternStepsMax` steps on a record.
 */
import { definitionLimits } from '#model/limits.ts'
import { ConditionError, quoted, type TextSize } from './condition.ts'
import { soughtBytesPerStep } from './pattern-size.ts'

const { patternStepsMax, patternRecordBytesMin } = definitionLimits

/** One pattern, or one search for a text that is not constant. */
type PatternCost = {
  /** As the author wrote it. */
  readonly written: string
  /** Returns the steps on a record of that many bytes. */
  readonly steps: (recordBytes: number) => number
}

export class PatternBudget {
  readonly #costs: PatternCost[] = []

  /** Counts a pattern that is matched with a text. */
  countPattern(pattern: string, size: number, text: TextSize): void {
    this.#add({ written: `the pattern ${quoted(pattern)}`, steps: (recordBytes) => size * bytesOf(text, recordBytes) })
  }

  /** Counts a pattern that a function of the language matches with a text. */
  countFunction(name: string, size: number, text: TextSize): void {
    this.#add({ written: `the function ${quoted(name)}`, steps: (recordBytes) => size * bytesOf(text, recordBytes) })
  }

  /** Counts a search for one text in another, which takes the most time if each is half of the record. */
  countSearch(name: string, text: TextSize, sought: TextSize): void {
    const steps = (recordBytes: number): number => {
      const soughtBytes = (sought.values * recordBytes) / 8 + sought.bytes
      return bytesOf(text, recordBytes) * (1 + soughtBytes / soughtBytesPerStep)
    }
    this.#add({ written: `the search by ${quoted(name)}`, steps })
  }

  /** Returns why the view is too expensive for a record of that many bytes, or undefined if it is not. */
  problemWith(recordBytes: number): string | undefined {
    const sum = this.#costs.reduce((steps, cost) => steps + cost.steps(recordBytes), 0)
    if (sum <= patternStepsMax) return undefined
    const [worst] = this.#costs.toSorted((a, b) => b.steps(recordBytes) - a.steps(recordBytes))
    return `its patterns take too long on a record of ${recordBytes} bytes, above all ${worst?.written}: repeat less in it, match a shorter text, or send smaller records`
  }

  #add(cost: PatternCost): void {
    this.#costs.push(cost)
    if (this.problemWith(patternRecordBytesMin) === undefined) return
    throw new ConditionError(
      `takes too long: the patterns of all conditions must be fast enough for records of ${patternRecordBytesMin} bytes; repeat less in ${cost.written}, or use fewer patterns`,
      'too_expensive',
    )
  }
}

function bytesOf({ values, bytes }: TextSize, recordBytes: number): number {
  return values * recordBytes + bytes
}
