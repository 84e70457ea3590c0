import { engineLimits } from './engines/limits.ts'

/** Splits values into parts that one statement may have as parameters. */
export function* inChunks<T>(values: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < values.length; start += engineLimits.insertRowsMax)
    yield values.slice(start, start + engineLimits.insertRowsMax)
}
