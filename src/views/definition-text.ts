/**
 * Parses a definition from YAML or JSON, and finds the line and column of its parts.
 *
 * Owns: how a definition in a request is read. Does not own: YAML itself (lib/yaml-text.ts), what a definition may contain.
 */
import { AppError, type FieldError } from '#errors.ts'
import { explainJsonError } from '#lib/json.ts'
import { readYaml, type TextPosition, YamlError } from '#lib/yaml-text.ts'
import type { DefinitionFormat } from '#model/definition.ts'
import { definitionLimits } from '#model/limits.ts'

export type Locate = <T extends { readonly path: string }>(
  errors: readonly T[],
) => readonly (T & Pick<FieldError, 'line' | 'column'>)[]

export type DefinitionText = {
  readonly value: unknown
  /** Adds to each error the line and column of its path, or of the nearest part that exists. */
  readonly located: Locate
}

const { textTokensMax, textIndentMax, textNestingMax, textAliasesMax } = definitionLimits
const bounds = { tokensMax: textTokensMax, indentMax: textIndentMax, nestingMax: textNestingMax, aliasesMax: textAliasesMax }

/** Throws AppError validation_error with the line and column at which the text cannot be parsed. */
export function parseDefinitionText(text: string, format: DefinitionFormat): DefinitionText {
  const json = format === 'json' ? parseJson(text) : undefined
  try {
    const part = readYaml(text, bounds)
    // Text that JSON.parse accepted may break rules of YAML, which do not matter.
    if (format === 'json') part.assertKeysDiffer()
    else part.validate()
    return {
      value: format === 'json' ? json : part.toValue(),
      located: (errors) =>
        errors.map((error) => ({ ...error, ...part.positionOf(error.path === '' ? [] : error.path.split('.')) })),
    }
  } catch (error) {
    if (error instanceof YamlError) throw unreadable(error.message, error.position)
    throw error
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const hint = 'set format to yaml if it is YAML'
    const message = error instanceof Error ? error.message : String(error)
    const at = /\(line (\d+) column (\d+)\)/.exec(message)
    throw unreadable(
      `is not valid JSON: ${explainJsonError(error)} (${hint})`,
      at === null ? undefined : { line: Number(at[1]), column: Number(at[2]) },
    )
  }
}

function unreadable(message: string, position?: TextPosition): AppError {
  return new AppError('validation_error', 'the view definition cannot be parsed', {
    errors: [{ path: '', message, ...position }],
  })
}
