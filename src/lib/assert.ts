/** A broken invariant. Crashes the process; never catch it to return an error response. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError'
}

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message)
}

/** Returns the value, or throws if it is missing. `what` names it in the error. */
export function must<T>(value: T | undefined | null, what: string): T {
  if (value === undefined || value === null) throw new InvariantError(`missing: ${what}`)
  return value
}

/** Marks the default branch of an exhaustive switch. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable: ${JSON.stringify(value)}`)
}
