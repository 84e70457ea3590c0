/** Shared by the functions that the language has beside those of DuckDB: how they are called, and checks of their arguments. */
import { ConditionError, type Part, quoted, writtenAs } from './condition.ts'
import type { ConditionBudget } from './condition-budget.ts'
import { isScalar, kindOf } from './filter-types.ts'
import type { PartValues } from './filter-values.ts'
import type { SecretNames } from './secret-names.ts'

export type OwnCall = {
  readonly name: string
  readonly parts: readonly Part[]
  /** The nodes of the parts. */
  readonly nodes: readonly unknown[]
  readonly values: PartValues
  readonly budget: ConditionBudget
  readonly secrets: SecretNames
}

export type OwnFunction = (call: OwnCall) => Part

/** Throws unless the function has so many arguments: at the first that is too many. `usage` says what it takes. */
export function takeArguments({ name, parts }: OwnCall, count: number, usage: string): readonly Part[] {
  if (parts.length === count) return parts
  throw new ConditionError(`${quoted(name)} takes ${usage}`, 'wrong_type').of({ at: parts[count]?.at })
}

/** Throws unless the argument is text. */
export function checkText({ name }: OwnCall, part: Part): void {
  if (part.type === 'unknown' || isScalar(part.type, 'VARCHAR')) return
  throw new ConditionError(
    `${quoted(name)} takes text, not ${kindOf(part.type)}: cast it, such as CAST(${writtenAs(part)} AS VARCHAR)`,
    'wrong_type',
  ).of(part)
}

/** SQL for a value that is computed from another one. The lambda evaluates that once, however often `make` mentions it. */
export function computedFrom(value: string, make: (value: string) => string): string {
  return `list_transform([${value}], lambda x: ${make('x')})[1]`
}
