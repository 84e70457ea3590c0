import { UserError } from '#lib/user-error.ts'

/** Makes an error of the system one that is printed without a stack: its message names the path and what is wrong with it. */
export function explainSystemError(error: unknown): unknown {
  return error instanceof Error && 'syscall' in error ? new UserError(error.message, { cause: error }) : error
}

export async function explainSystemErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw explainSystemError(error)
  }
}
