/** Definitions in requests: an object or text. */
import { AppError, type FieldError } from '#errors.ts'
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
  let locate = (errors: readonly FieldError[]) => errors
  try {
    if (typeof given !== 'string') return await use(given)
    const text = parseDefinitionText(given, format)
    locate = text.located
    const parsed = parseFields(Definition, text.value)
    if (parsed.errors !== undefined) {
      const { errors, omitted } = parsed
      throw new AppError('validation_error', 'the view definition is not valid', { errors, errorsOmitted: omitted })
    }
    return await use(parsed.value)
  } catch (error) {
    if (!(error instanceof AppError) || error.errors === undefined) throw error
    const { code, errorsOmitted } = error
    const errors = locate(error.errors).map(({ path, ...rest }) => ({
      path: path === '' ? 'definition' : `definition.${path}`,
      ...rest,
    }))
    throw new AppError(code, summarize(errors, errorsOmitted), { cause: error, errors, errorsOmitted })
  }
}
