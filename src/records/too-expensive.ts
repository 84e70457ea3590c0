import { FileTooLarge, OutOfMemory, StatementTimeout } from '#duckdb/database.ts'

/** A view costs more than it may on these records. The message says which bound it exceeds. */
export class TooExpensive extends Error {
  override readonly name = 'TooExpensive'
}

/** Whether a view failed because of a bound on its cost, not because of an error. */
export function isTooExpensive(error: unknown): boolean {
  return [TooExpensive, StatementTimeout, OutOfMemory, FileTooLarge].some((kind) => error instanceof kind)
}
