import type { z } from 'zod'
import type { FieldError } from '#errors.ts'

/** What a schema found wrong, each with its place. Of a choice of shapes, what is wrong with the one that was meant. */
export function fieldErrorsOf({ issues }: z.core.$ZodError): readonly FieldError[] {
  return issues.flatMap((issue) => toFieldErrors(issue, []))
}

function toFieldErrors(issue: z.core.$ZodIssue, above: readonly PropertyKey[]): readonly FieldError[] {
  const place = [...above, ...issue.path]
  const path = place.join('.')
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined')) return [{ path, message: 'is required' }]
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...place, key].join('.'), message: 'is not a known field' }))
  }
  if (issue.code === 'invalid_union') {
    const meant = issue.errors.find((choice) => !choice.some(({ code, path: at }) => code === 'invalid_type' && at.length === 0))
    const [first = []] = issue.errors
    return (meant ?? first.slice(0, 1)).flatMap((inner) => toFieldErrors(inner, place))
  }
  return [{ path, message: issue.message }]
}
