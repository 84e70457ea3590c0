/** Definitions in requests: an object or text. */
import { AppError, type FieldError } from '#errors.ts'
import { type NameWarning, nameWarnings, takenNames } from '#model/column-names.ts'
import { Definition, type DefinitionFormat, type DefinitionInput, withListForm } from '#model/definition.ts'
import { parseFields, summarize } from '#model/field-errors.ts'
import { compileView } from '#views/compile.ts'
import { type Locate, parseDefinitionText } from '#views/definition-text.ts'

/** `line` and `column` are set for text. */
export type LocatedWarning = NameWarning & Pick<FieldError, 'line' | 'column'>

/**
 * Parses a definition and passes it to `use`, which throws validation_error if it does not compile. Errors and warnings have the paths of the
 * request, and for text the line and column.
 */
export async function withDefinition<T>(
  given: DefinitionInput,
  format: DefinitionFormat,
  use: (definition: Definition, warnings: readonly LocatedWarning[]) => Promise<T>,
): Promise<T> {
  let locate: Locate = (errors) => errors
  const checked = async (parsed: Definition): Promise<T> => {
    const definition = withListForm(parsed)
    await assertNoneTaken(definition)
    return use(definition, locate(nameWarnings(definition)).map(inRequest))
  }
  try {
    if (typeof given !== 'string') return await checked(given)
    const text = parseDefinitionText(given, format)
    locate = text.located
    const parsed = parseFields(Definition, text.value)
    if (parsed.errors !== undefined) {
      const { errors, omitted } = parsed
      throw new AppError('validation_error', 'the view definition is not valid', { errors, errorsOmitted: omitted })
    }
    return await checked(parsed.value)
  } catch (error) {
    if (!(error instanceof AppError) || error.errors === undefined) throw error
    const { code, errorsOmitted } = error
    const errors = locate(error.errors).map(inRequest)
    throw new AppError(code, summarize(errors, errorsOmitted), { cause: error, errors, errorsOmitted })
  }
}

/** Throws validation_error for a column with a name that is taken, and lists what does not compile as well. */
async function assertNoneTaken(definition: Definition): Promise<void> {
  const taken = takenNames(definition)
  if (taken.length === 0) return
  const others = await compileView(definition, { isNew: true }).then(
    () => [],
    (error: unknown) => (error instanceof AppError ? (error.errors ?? []) : []),
  )
  throw new AppError('validation_error', 'the view definition is not valid', { errors: [...taken, ...others] })
}

function inRequest<E extends { readonly path: string }>(error: E): E {
  return { ...error, path: error.path === '' ? 'definition' : `definition.${error.path}` }
}
