import { AppError } from '#errors.ts'

/** What the compiler says of a definition, with the paths that the request has it under. Any other error as it is. */
export function underDefinition(error: unknown): unknown {
  if (!(error instanceof AppError) || error.errors === undefined) return error
  const errors = error.errors.map(({ path, message }) => ({ path: path === '' ? 'definition' : `definition.${path}`, message }))
  return new AppError(error.code, error.message, { cause: error, errors })
}
