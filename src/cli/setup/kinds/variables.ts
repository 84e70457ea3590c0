/**
 * Variables in the values of a set-up: `${BUCKET}` is what INLET_VAR_BUCKET has.
 *
 * Law: only variables with this prefix are read. Files come from pull requests, and the environment of CI has secrets.
 */
import { variableName, variablePattern, variablePrefix } from '#model/setup.ts'

export type Environment = Readonly<Record<string, string | undefined>>
export type Replaced = {
  readonly value: unknown
  readonly problems: readonly { readonly path: string; readonly message: string }[]
}

/** Replaces the variables in every text of a value. */
export function replaceVariables(value: unknown, environment: Environment): Replaced {
  const problems: { path: string; message: string }[] = []
  const replace = (part: unknown, path: readonly string[]): unknown => {
    if (typeof part === 'string')
      return part.replaceAll(variablePattern, (whole, name: string | undefined) => {
        if (name === undefined) return '${'
        const found = variableName.test(name) && whole.endsWith('}') ? environment[`${variablePrefix}${name}`] : undefined
        if (found !== undefined) return found
        const message =
          variableName.test(name) && whole.endsWith('}')
            ? `names the variable ${name}, which is not set: set ${variablePrefix}${name}`
            : `has ${whole}, which is no variable such as \${BUCKET}; for the text itself, write $${whole}`
        problems.push({ path: path.join('.'), message })
        return whole
      })
    if (Array.isArray(part)) return part.map((each, index) => replace(each, [...path, String(index)]))
    if (typeof part !== 'object' || part === null) return part
    return Object.fromEntries(Object.entries(part).map(([name, each]) => [name, replace(each, [...path, name])]))
  }
  return { value: replace(value, []), problems }
}

/** Writes text so that it has no variables. */
export function escapeVariables(text: string): string {
  return text.replaceAll('${', () => '$${')
}
