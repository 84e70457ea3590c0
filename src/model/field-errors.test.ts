import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { parseFields, summarize } from './field-errors.ts'
import { lineOfText } from './text.ts'
import { TimestampInput } from './timestamp.ts'

const Part = z.strictObject({ size: z.int().min(1).max(9), of: z.enum(['a', 'b']).optional() })
const schema = z.strictObject({
  name: lineOfText(8)
    .min(1)
    .meta({ examples: ['lake'] }),
  count: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).default(3),
  on: z.boolean().nullable().default(null),
  kind: z.enum(['x', 'y']).optional(),
  at: TimestampInput.optional(),
  list: z.array(Part).max(2).optional(),
  either: z.union([Part, z.string().max(3)]).optional(),
  even: z
    .int()
    .refine((value) => value % 2 === 0, 'must be even')
    .meta({ examples: [4] })
    .optional(),
})

const messagesFor = (input: object) =>
  Object.fromEntries((parseFields(schema, { name: 'a', ...input }).errors ?? []).map(({ path, message }) => [path, message]))

describe('parseFields', () => {
  test('returns the value, with defaults', () => {
    expect(parseFields(schema, { name: 'a' })).toEqual({ value: { name: 'a', count: 3, on: null } })
  })

  test('reports a message once, also if a value breaks several rules', () => {
    const Rule = z.strictObject({ size: z.int('must be small').max(1, 'must be small') })
    expect(parseFields(Rule, { size: 1e300 }).errors).toEqual([{ path: 'size', message: 'must be small (example: 1)' }])
  })

  test('are summarized by the first and the number of the others', () => {
    const error = { path: 'size', message: 'must be small' }
    expect(summarize([error])).toBe('size: must be small')
    expect(summarize([error, error])).toBe('size: must be small (and 1 more)')
    expect(summarize([{ ...error, path: '' }])).toBe('must be small')
  })

  test.each([
    [{ name: undefined }, { name: 'is required: text of 1 to 8 characters (example: lake)' }],
    [{ name: 7 }, { name: 'must be text of 1 to 8 characters (example: lake)' }],
    [{ name: '' }, { name: 'must be text of 1 to 8 characters (example: lake)' }],
    [{ name: 'a\nb' }, { name: 'must not contain control characters (example: lake)' }],
    [{ count: 'many' }, { count: 'must be a whole number, 0 or more (example: 3)' }],
    [{ count: -1 }, { count: 'must be a whole number, 0 or more (example: 3)' }],
    [{ on: 'yes' }, { on: 'must be true or false or null (example: true)' }],
    [{ kind: 'z' }, { kind: 'must be one of x, y (example: x)' }],
    [{ list: {} }, { list: 'must be a list of at most 2 entries (example: [{"size":1}])' }],
    [
      { list: [{ size: 10 }, { of: 'c' }] },
      {
        'list.0.size': 'must be a whole number from 1 to 9 (example: 1)',
        'list.1.size': 'is required: a whole number from 1 to 9 (example: 1)',
        'list.1.of': 'must be one of a, b (example: a)',
      },
    ],
    [{ either: 7 }, { either: 'must be an object or text of at most 3 characters (example: {"size":1})' }],
    [{ either: { size: 0 } }, { 'either.size': 'must be a whole number from 1 to 9 (example: 1)' }],
    [{ either: 'long' }, { either: 'must be an object or text of at most 3 characters (example: {"size":1})' }],
    [{ even: 3 }, { even: 'must be even (example: 4)' }],
    [{ naem: 'a' }, { naem: 'is not a known field: known are name, count, on, kind, at, list, either, even' }],
    [{ list: [{ size: 1, x: 1 }] }, { 'list.0.x': 'is not a known field: known are size, of' }],
    [{ at: 7 }, { at: 'must be a time in ISO 8601 with Z or an offset (example: 2026-11-20T08:15:30Z)' }],
    [
      { at: '2026-11-20T08:15:30.5 02:00' },
      { at: 'must have %2B instead of + in a URL: 2026-11-20T08:15:30.5%2B02:00 (example: 2026-11-20T08:15:30Z)' },
    ],
  ])('says what is wrong with %j', (input, messages) => {
    expect(messagesFor(input)).toEqual(messages)
  })
})
