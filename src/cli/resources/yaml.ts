import { parse, stringify, YAMLParseError } from 'yaml'
import { UserError } from '#lib/user-error.ts'

const aliasesMax = 100

/** Reads YAML, and so JSON. Throws a UserError that names the file and the place. */
export function parseYaml(text: string, file: string): unknown {
  try {
    return parse(text, { maxAliasCount: aliasesMax, prettyErrors: true })
  } catch (error) {
    if (error instanceof YAMLParseError || error instanceof ReferenceError) throw new UserError(`${file}: ${error.message}`)
    throw error
  }
}

export function printYaml(value: unknown): string {
  return stringify(value)
}
