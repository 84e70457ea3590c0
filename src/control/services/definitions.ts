/** Definitions as requests have them: an object, or text. */
import { AppError } from '#errors.ts'
import { Definition, type DefinitionFormat, type DefinitionInput } from '#model/definition.ts'
import { fieldErrorsOf } from '#model/field-errors.ts'
import { parseDefinitionText } from '#views/definition-text.ts'

/**
 * Reads a definition and hands it to `use`, which throws validation_error for one that does not compile. Whatever is wrong is thrown
 * with the paths that the request has it under, and for text with the line and column.
 */
export async function withDefinition<T>(
  given: DefinitionInput,
  format: DefinitionFormat,
  use: (definition: Definition) => Promise<T>,
): Promise<T> {
  let located = (errors: AppError['errors']) => errors
  try {
    if (typeof given !== 'string') return await use(given)
    const text = parseDefinitionText(given, format)
    located = (errors = []) => text.located(errors)
    const { data, error } = Definition.safeParse(text.value)
    if (error !== undefined) {
      throw new AppError('validation_error', 'the view definition is not valid', { errors: fieldErrorsOf(error) })
    }
    return await use(data)
  } catch (error) {
    if (!(error instanceof AppError) || error.errors === undefined) throw error
    const errors = located(error.errors)?.map(({ path, ...rest }) => ({
      path: path === '' ? 'definition' : `definition.${path}`,
      ...rest,
    }))
    throw new AppError(error.code, error.message, { cause: error, ...(errors === undefined ? {} : { errors }) })
  }
}
