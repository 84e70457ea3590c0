import { storeLimits } from './limits.ts'

/** Splits values into parts that one statement may have as parameters. */
export function* inChunks<T>(values: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < values.length; start += storeLimits.insertRowsMax)
    yield values.slice(start, start + storeLimits.insertRowsMax)
}
