/** Broken invariants crash the process that owns them: these errors are never caught and answered. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError'
}

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message)
}

/** The value, which must be there. `what` names it in the error. */
export function must<T>(value: T | undefined | null, what: string): T {
  if (value === undefined || value === null) throw new InvariantError(`${what} must be there`)
  return value
}

/** For the default branch of an exhaustive switch. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable: ${JSON.stringify(value)}`)
}
