/**
 * Validates input and says what is wrong with it: the field, what it must be, an example.
 *
 * Law: no text of the validator reaches the user. A message is either one that our own schema defines, or made from its description.
 */
import type { z } from 'zod'
import { type FieldError, problemLimits } from '#errors.ts'
import { Expectation } from './expectation.ts'

export type ParsedFields<T> =
  | { readonly value: T; readonly errors?: undefined; readonly omitted?: undefined }
  | { readonly value?: undefined; readonly errors: readonly FieldError[]; readonly omitted: number }

/** The message of an issue for which our schema defines none. */
const noMessage = ''

export function parseFields<T>(schema: z.ZodType<T>, input: unknown): ParsedFields<T> {
  const parsed = schema.safeParse(input, { error: () => noMessage, reportInput: true })
  if (parsed.success) return { value: parsed.data }
  const expectation = Expectation.of(schema)
  // A value may break several rules that one message describes.
  const errors = new Map<string, FieldError>()
  let omitted = 0
  for (const issue of parsed.error.issues) {
    // To word errors that nobody sees would take as long as to find them.
    if (errors.size >= problemLimits.errorsMax && issue.code !== 'invalid_union') {
      omitted += issue.code === 'unrecognized_keys' ? issue.keys.length : 1
      continue
    }
    if (issue.code === 'unrecognized_keys') omitted += issue.keys.splice(problemLimits.errorsMax).length
    for (const error of toFieldErrors(issue, [], expectation)) {
      if (errors.size < problemLimits.errorsMax) errors.set(`${error.path} ${error.message}`, error)
      else omitted += 1
    }
  }
  return { errors: [...errors.values()], omitted }
}

/** Returns the first error, and how many more there are. */
export function summarize([first, ...more]: readonly FieldError[], omitted = 0): string {
  if (first === undefined) return ''
  const others = more.length + omitted
  const count = others === 0 ? '' : ` (and ${others} more)`
  return `${first.path === '' ? '' : `${first.path}: `}${first.message}${count}`
}

function toFieldErrors(
  issue: z.core.$ZodIssue,
  parents: readonly PropertyKey[],
  whole: Expectation | undefined,
): readonly FieldError[] {
  const parts = [...parents, ...issue.path]
  const path = parts.join('.')
  const expected = issue.path.reduce<Expectation | undefined>((part, key) => part?.part(key), whole)
  if (issue.code === 'unrecognized_keys') {
    const message = unknownField(expected)
    return issue.keys.map((key) => ({ path: [...parts, key].join('.'), message }))
  }
  if (issue.code === 'invalid_union') {
    // The form that was probably intended is the first one whose type is right.
    const intended = issue.errors.findIndex((issues) => !issues.some(isOfOtherType))
    const inner = issue.errors[intended]
    if (inner !== undefined) return inner.flatMap((each) => toFieldErrors(each, parts, expected?.choice(intended)))
  }
  return [{ path, message: messageOf(issue, expected) }]
}

function isOfOtherType({ code, path }: z.core.$ZodIssue): boolean {
  return code === 'invalid_type' && path.length === 0
}

function unknownField(expected: Expectation | undefined): string {
  const { fields = [] } = expected ?? {}
  return fields.length === 0 ? 'is not a known field' : `is not a known field: known are ${fields.join(', ')}`
}

function messageOf({ message, input }: z.core.$ZodIssue, expected: Expectation | undefined): string {
  const example = printExample(expected?.example)
  if (message !== noMessage) return `${message}${example}`
  if (expected === undefined) return 'is not valid'
  return input === undefined ? `is required: ${expected.words}${example}` : `must be ${expected.words}${example}`
}

function printExample(example: unknown): string {
  if (example === undefined) return ''
  return ` (example: ${typeof example === 'string' ? example : JSON.stringify(example)})`
}
