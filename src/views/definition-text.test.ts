import { describe, expect, test } from 'vitest'
import { AppError } from '#errors.ts'
import type { DefinitionFormat } from '#model/definition.ts'
import { definitionLimits } from '#model/limits.ts'
import { parseDefinitionText } from './definition-text.ts'

function problem(text: string, format: DefinitionFormat = 'yaml') {
  try {
    parseDefinitionText(text, format)
  } catch (error) {
    if (error instanceof AppError) return error.errors?.[0]
    throw error
  }
  throw new Error('it was read')
}

const read = (text: string, format: DefinitionFormat = 'yaml') => parseDefinitionText(text, format).value

const yaml = `# Orders
columns:
  - name: id
    type: BIGINT   # exact
    path: $.id
    required: true
  - { name: tags, type: 'VARCHAR[]', path: "$.tags[*]" }
  - name: at
    type: &time TIMESTAMP
    path: $.at
  - name: until
    type: *time
    path: $.until
filters:
  - condition: >-
      id > 5 AND
      at IS NOT NULL
`

describe('YAML', () => {
  test('may have comments, quotes, folded texts and anchors', () => {
    expect(read(yaml)).toEqual({
      columns: [
        { name: 'id', type: 'BIGINT', path: '$.id', required: true },
        { name: 'tags', type: 'VARCHAR[]', path: '$.tags[*]' },
        { name: 'at', type: 'TIMESTAMP', path: '$.at' },
        { name: 'until', type: 'TIMESTAMP', path: '$.until' },
      ],
      filters: [{ condition: 'id > 5 AND at IS NOT NULL' }],
    })
  })

  test('has only the types of YAML 1.2: no, on and dates are text', () => {
    expect(read('[no, on, yes, 2026-01-01, 0x10, 1e3, .inf, ~, "1"]')).toEqual([
      ...['no', 'on', 'yes', '2026-01-01', 16, 1000, Number.POSITIVE_INFINITY, null, '1'],
    ])
  })

  test.each([
    ['columns.0.type', 4, 11],
    ['columns.1.path', 7, 44],
    // The content of an alias is located at the alias.
    ['columns.3.type', 12, 11],
    ['filters.0.condition', 15, 16],
    ['filters.0', 15, 5],
    // A missing part is located where it should be.
    ['columns.9.name', 3, 3],
    ['columns.2.required', 8, 5],
    ['', 2, 1],
  ])('locates %s at line %i, column %i', (path, line, column) => {
    const [located] = parseDefinitionText(yaml, 'yaml').located([{ path, message: 'm' }])
    expect(located).toEqual({ path, message: 'm', line, column })
  })

  test('locates a part without a value where it should be', () => {
    expect(parseDefinitionText('a:\n  b:\n', 'yaml').located([{ path: 'a.b', message: '' }])).toMatchObject([
      { line: 2, column: 5 },
    ])
  })

  test.each<[string, string, string, number | undefined, number | undefined]>([
    ['a syntax error', 'columns:\n  - name: "id\n', 'is not valid YAML', 3, 1],
    ['a tab', 'columns:\n\t- a', 'is not valid YAML', 2, 1],
    ['a key twice', 'columns: []\nfilters: []\ncolumns: []\n', 'the same key twice', 3, 1],
    ['a tag', 'columns: !!js/function "x"', 'must not have tags', 1, 10],
    ['a tag of bytes', 'columns: !!binary aGk=', 'must not have tags', 1, 10],
    ['two documents', 'a: 1\n---\nb: 2', 'must be one document', 2, 1],
    ['another version', '%YAML 1.1\n---\na: yes', '%YAML', 1, 1],
    ['a key that is not text', '{a: 1}: 2', 'keys must be strings', 1, 1],
    ['an alias to nothing', 'a: *b', 'Unresolved alias', undefined, undefined],
    ['lists in lists', '['.repeat(200_000), 'nested too deep', undefined, undefined],
    ['maps in maps', '{a: '.repeat(60_000), 'nested too deep', undefined, undefined],
    ['lists in lists on one line', '- '.repeat(100_000), 'nested too deep', undefined, undefined],
    ['keys in keys', '? '.repeat(100_000), 'nested too deep', undefined, undefined],
    [
      'growing indentation',
      Array.from({ length: 500 }, (_, n) => `${' '.repeat(n)}a:`).join('\n'),
      'indented',
      undefined,
      undefined,
    ],
    ['many parts', '- 1\n'.repeat(60_000), 'too many parts', undefined, undefined],
  ])('rejects %s', (_, text, message, line, column) => {
    expect(problem(text.slice(0, definitionLimits.textCharsMax))).toEqual({
      path: '',
      message: expect.stringContaining(message),
      ...(line === undefined ? {} : { line, column }),
    })
  })

  test.each([
    ['keys of a map', (count: number) => Array.from({ length: count }, (_, index) => `k${index}:\n`).join('')],
    ['keys of a flow map', (count: number) => `{${Array.from({ length: count }, (_, index) => `k${index},`).join('')}}`],
  ])('takes time in proportion to %s', (_, textOf) => {
    const spent = (count: number) => {
      const text = textOf(count)
      const errors = Array.from({ length: 100 }, (_, index) => ({ path: `k${count - index - 1}`, message: '' }))
      const started = process.cpuUsage()
      parseDefinitionText(text, 'yaml').located(errors)
      return process.cpuUsage(started).user
    }
    spent(2_000)
    // Eight times as many: quadratic time would be 64 times as long.
    const [some, many] = [1_500, 12_000].map((count) => Math.min(...Array.from({ length: 3 }, () => spent(count))))
    expect(many).toBeLessThan(24 * (some ?? 0))
  })

  test('rejects many aliases', () => {
    const text = Array.from({ length: 201 }, (_, index) => `- &a${index} x\n- *a${index}\n`).join('')
    expect(problem(text)?.message).toBe('has too many aliases: at most 200 are allowed')
    expect(read(text.split('\n').slice(0, 400).join('\n'))).toHaveLength(400)
  })

  test('rejects a billion laughs', () => {
    const lists = Array.from(
      { length: 12 },
      (_, n) =>
        `a${n}: &a${n} [${
          n === 0
            ? 'ha'
            : Array(9)
                .fill(`*a${n - 1}`)
                .join(', ')
        }]`,
    )
    expect(problem(lists.join('\n'))?.message).toContain('alias count')
  })

  test('treats names that are special in JavaScript like any other', () => {
    const value = read('__proto__: { polluted: 1 }\nconstructor: 2') as object
    expect(Object.keys(value)).toEqual(['__proto__', 'constructor'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  })
})

describe('JSON', () => {
  const json = '{\n  "columns": [\n\t{"name": "a", "type": "X", "path": "$.a"}\n  ]\n}'

  test('is located as well', () => {
    expect(read(json, 'json')).toEqual(JSON.parse(json))
    expect(parseDefinitionText(json, 'json').located([{ path: 'columns.0.type', message: '' }])).toMatchObject([
      { line: 3, column: 24 },
    ])
  })

  test('must be JSON, not YAML', () => {
    expect(problem('columns: []', 'json')?.message).toMatch(/is not valid JSON: .* \(set format to yaml if it is YAML/)
    expect(problem('{\n "a": 1,\n}', 'json')).toMatchObject({ line: 3, column: 1 })
    expect(problem('', 'json')?.message).toContain('is not valid JSON')
  })

  test('rejects duplicate keys', () => {
    expect(problem('{"a": 1,\n"a": 2}', 'json')).toMatchObject({
      message: expect.stringContaining('the same key twice'),
      line: 2,
      column: 1,
    })
  })

  test('locates parts after escapes, empty lines and keys on their own lines', () => {
    expect(read('{"a"\n\n:\n"\\u00fc\\ud83d\\ude00\\/"}', 'json')).toEqual({ a: 'ü😀/' })
  })
})
