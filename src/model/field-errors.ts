import type { z } from 'zod'
import type { FieldError } from '#errors.ts'

/** Converts the issues of a schema to field errors. For a union, reports the issues of the variant that was probably intended. */
export function fieldErrorsOf({ issues }: z.core.$ZodError): readonly FieldError[] {
  return issues.flatMap((issue) => toFieldErrors(issue, []))
}

function toFieldErrors(issue: z.core.$ZodIssue, parent: readonly PropertyKey[]): readonly FieldError[] {
  const parts = [...parent, ...issue.path]
  const path = parts.join('.')
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined')) return [{ path, message: 'is required' }]
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...parts, key].join('.'), message: 'is not a known field' }))
  }
  if (issue.code === 'invalid_union') {
    const intended = issue.errors.find(
      (choice) => !choice.some(({ code, path: at }) => code === 'invalid_type' && at.length === 0),
    )
    const [first = []] = issue.errors
    return (intended ?? first.slice(0, 1)).flatMap((inner) => toFieldErrors(inner, parts))
  }
  return [{ path, message: issue.message }]
}
