/**
 * Bounds the time that the patterns and searches of a view take on one record.
 *
 * DuckDB cannot be interrupted while it matches one text. So what cannot be fast enough is refused: by the compiler if small records would
 * already take too long. Otherwise the statement measures the values that expressions read, and evaluates none on a record with too many
 * bytes of them: it is a dead letter (extraction.ts).
 *
 * Law: a step is up to 20 ns, and all patterns of a view take at most `patternStepsMax` steps on a record. Texts that several columns read
 * count several times, but all together never more than the record.
 */
import { definitionLimits, recordLimits } from '#model/limits.ts'
import { ConditionError, quoted, type TextSize } from './condition.ts'
import { soughtBytesPerStep } from './pattern-size.ts'

const { patternStepsMax, patternRecordBytesMin } = definitionLimits

/** One pattern, or one search for a text that is not constant. */
type PatternCost = {
  /** As the author wrote it. */
  readonly written: string
  /** Returns the steps on values of that many bytes in total. */
  readonly steps: (bytesRead: number) => number
}

export class PatternBudget {
  readonly #costs: PatternCost[] = []

  /** Counts a pattern that is matched with a text. */
  countPattern(pattern: string, size: number, text: TextSize): void {
    this.#add({ written: `the pattern ${quoted(pattern)}`, steps: (bytesRead) => size * bytesOf(text, bytesRead) })
  }

  /** Counts a pattern that a function of the language matches with a text. */
  countFunction(name: string, size: number, text: TextSize): void {
    this.#add({ written: `the function ${quoted(name)}`, steps: (bytesRead) => size * bytesOf(text, bytesRead) })
  }

  /** Counts a search for one text in another, which takes the most time if each is half of what is read. */
  countSearch(name: string, text: TextSize, sought: TextSize): void {
    const steps = (bytesRead: number): number => {
      const soughtBytes = (sought.values * bytesRead) / 8 + sought.bytes
      return bytesOf(text, bytesRead) * (1 + soughtBytes / soughtBytesPerStep)
    }
    this.#add({ written: `the search by ${quoted(name)}`, steps })
  }

  /** Returns how many bytes of values the patterns may read; undefined if they are fast enough for the largest record. */
  get bytesMax(): number | undefined {
    if (this.#isWithin(recordLimits.bytesMax)) return undefined
    let [within, beyond] = [patternRecordBytesMin, recordLimits.bytesMax]
    while (beyond - within > 1) {
      const middle = Math.floor((within + beyond) / 2)
      if (this.#isWithin(middle)) within = middle
      else beyond = middle
    }
    return within
  }

  /** The pattern that takes the longest on the largest record, as a message names it. */
  get slowest(): string {
    const steps = (cost: PatternCost) => cost.steps(recordLimits.bytesMax)
    return this.#costs.toSorted((a, b) => steps(b) - steps(a))[0]?.written ?? ''
  }

  #isWithin(bytesRead: number): boolean {
    return this.#costs.reduce((sum, cost) => sum + cost.steps(bytesRead), 0) <= patternStepsMax
  }

  #add(cost: PatternCost): void {
    this.#costs.push(cost)
    if (this.#isWithin(patternRecordBytesMin)) return
    throw new ConditionError(
      `takes too long: the patterns of all conditions must be fast enough for records of ${patternRecordBytesMin} bytes; repeat less in ${cost.written}, or use fewer patterns`,
      'too_expensive',
    )
  }
}

function bytesOf({ values, bytes }: TextSize, bytesRead: number): number {
  return values * bytesRead + bytes
}
