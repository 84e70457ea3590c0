/** Bounds what the conditions of a view make. */
import { definitionLimits } from '#model/limits.ts'
import { ConditionError } from './condition.ts'

const { timeCastsMax } = definitionLimits

export class ConditionBudget {
  #timeCasts = 0

  /** Counts a part that reads text as a time, which takes a long expression. */
  countTimeCast(): void {
    this.#timeCasts += 1
    if (this.#timeCasts <= timeCastsMax) return
    throw new ConditionError(
      `reads text as a time too often: all conditions of the view may do so at most ${timeCastsMax} times; declare a column with the type`,
    )
  }
}
