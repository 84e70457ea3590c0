import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { AppError } from '#errors.ts'
import { parseJsonBody, requireValid } from './request-body.ts'

function problem(read: () => unknown): AppError {
  try {
    read()
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
  throw new Error('it was accepted')
}

const parse = (text: string) => parseJsonBody(Buffer.from(text))

describe('the JSON of a body', () => {
  test.each([
    ['{"a":[1,{"b":"[{,\\"\\\\"}],"c":null}', { a: [1, { b: '[{,"\\' }], c: null }],
    ['"ü"', 'ü'],
    ['', undefined],
  ])('is parsed: %s', (text, value) => {
    expect(parse(text)).toEqual(value)
  })

  test('may have 10 000 values and 32 levels', () => {
    expect(parse(`[${Array(9_999).fill(1).join()}]`)).toHaveLength(9_999)
    expect(problem(() => parse(`[${Array(10_001).fill(1).join()}]`)).message).toContain('too many parts')
    expect(parse('['.repeat(32) + ']'.repeat(32))).toBeInstanceOf(Array)
    expect(problem(() => parse('['.repeat(33) + ']'.repeat(33))).message).toContain('nested too deep')
  })

  test('may have 5 000 fields in an object, and 25 000 different names', () => {
    const object = (count: number, name: string) =>
      `{${Array.from({ length: count }, (_, index) => `"${name}${index}"  :1`).join()}}`
    const parseLarge = (text: string) => parseJsonBody(Buffer.from(text), { partsMax: 100_000 })
    expect(parseLarge(`[${object(5_000, 'a')},${object(5_000, 'a')}]`)).toHaveLength(2)
    expect(problem(() => parseLarge(object(5_001, 'a'))).message).toContain('too many fields')
    const objects = (names: number) => `[${Array.from({ length: 14 }, (_, index) => object(4_000, `k${index % names}`)).join()}]`
    expect(parseLarge(objects(6))).toHaveLength(14)
    expect(problem(() => parseLarge(objects(14))).message).toContain('too many different field names')
  })

  test.each(['{', '"', '"\\', '{"a":}', ']]]', ',', '\u0000'])('is refused if it is broken: %j', (text) => {
    expect(problem(() => parse(text)).message).toContain('the body is not valid JSON')
  })

  test.each([
    ['{"a":1,"b":2,"a":1}', 'a'],
    ['{"a":1,"\\u0061" :2}', 'a'],
    ['{"columns":[{"name":"x","path":"$.a"},{"name":"y","path":"$.b","name":"z"}]}', 'columns.1.name'],
    ['[[{}],[1,{"x":{"ü":{},"ü":[]}}]]', '1.1.x.ü'],
    ['{"__proto__":1,"__proto__":2}', '__proto__'],
    ['{"":1,"":2}', ''],
  ])('may have a field only once: %s', (text, path) => {
    const { message, errors } = problem(() => parse(text))
    expect(errors).toEqual([{ path, message: 'must be given once, and has several values' }])
    expect(message).toBe(`${path}: must be given once, and has several values`)
    expect(parseJsonBody(Buffer.from(text), { mayRepeatFields: true })).toEqual(JSON.parse(text))
  })

  test.each(['{"a":{"a":1},"b":[{"a":1},{"a":1}]}', '["a","a",":","a"]', '{"a":"a","b":"b\\":"}'])(
    'may have the same name in several objects, and as a value: %s',
    (text) => expect(parse(text)).toEqual(JSON.parse(text)),
  )

  test('must be UTF-8', () => {
    expect(problem(() => parseJsonBody(new Uint8Array([0x22, 0xff, 0x22]))).message).toBe('the body must be UTF-8')
  })
})

describe('a body with many errors', () => {
  const schema = z.strictObject({ list: z.array(z.string()), either: z.union([z.array(z.int()), z.string()]).optional() })

  test.each<[string, unknown]>([
    ['entries', { list: Array(250).fill(1) }],
    ['unknown fields', { list: [], ...Object.fromEntries(Array.from({ length: 250 }, (_, index) => [`k${index}`, 1])) }],
    ['entries of a union', { list: [], either: Array(250).fill('a') }],
  ])('lists the first hundred, and says how many more there are: %s', (_, body) => {
    const { errors, errorsOmitted, message } = problem(() => requireValid(schema, body))
    expect(errors).toHaveLength(100)
    expect(errorsOmitted).toBe(150)
    expect(message).toMatch(/\(and 249 more\)$/)
  })
})
