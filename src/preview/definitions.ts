/** Definitions in requests: an object or text. */
import { AppError } from '#errors.ts'
import { Definition, type DefinitionFormat, type DefinitionInput } from '#model/definition.ts'
import { parseFields, summarize } from '#model/field-errors.ts'
import { parseDefinitionText } from '#views/definition-text.ts'

/**
 * Parses a definition and passes it to `use`, which throws validation_error if it does not compile. Errors have the paths of the
 * request, and for text the line and column.
 */
export async function withDefinition<T>(
  given: DefinitionInput,
  format: DefinitionFormat,
  use: (definition: Definition) => Promise<T>,
): Promise<T> {
  let locate = (errors: AppError['errors']) => errors
  try {
    if (typeof given !== 'string') return await use(given)
    const text = parseDefinitionText(given, format)
    locate = (errors = []) => text.located(errors)
    const parsed = parseFields(Definition, text.value)
    if (parsed.errors !== undefined) {
      throw new AppError('validation_error', 'the view definition is not valid', { errors: parsed.errors })
    }
    return await use(parsed.value)
  } catch (error) {
    if (!(error instanceof AppError) || error.errors === undefined) throw error
    const errors = locate(error.errors)?.map(({ path, ...rest }) => ({
      path: path === '' ? 'definition' : `definition.${path}`,
      ...rest,
    }))
    throw new AppError(error.code, summarize(errors ?? []), { cause: error, ...(errors === undefined ? {} : { errors }) })
  }
}
