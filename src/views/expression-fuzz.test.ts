/** Hostile expressions are refused with a clear problem, or only their quoted names and texts are in the statement. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AppError, expressionProblems } from '#errors.ts'
import type { Definition } from '#model/definition.ts'
import { runs } from '../../test/support/thorough.ts'
import { compileView } from './compile.ts'
import { allowedFunctions } from './filter-functions.ts'

const columns: Definition['columns'] = [
  { name: 'amount', type: 'DOUBLE', path: '$.amount' },
  { name: 'name', type: 'VARCHAR', path: '$.name' },
  { name: 'paid', type: 'TIMESTAMP', path: '$.paid' },
  { name: 'tags', type: 'VARCHAR[]', path: '$.tags[*]' },
  { name: 'doc', type: 'JSON', path: '$.doc' },
  { name: 'odd "name\'; --', type: 'BIGINT', path: '$.odd' },
]

/** Marks that no statement of ours has. */
const mark = 'zq9'
const marked = fc.constantFrom(
  `${mark}a`,
  `"${mark}b"`,
  `'${mark}c'`,
  `/* ${mark}d */`,
  `-- ${mark}e\n`,
  `$$${mark}f$$`,
  `E'\\x27${mark}g'`,
)
const leaf = fc.oneof(
  fc.constantFrom(
    ...[
      'amount',
      'name',
      'paid',
      'tags',
      'doc',
      '"odd ""name\'; --"',
      'NULL',
      'TRUE',
      '5',
      '-1.5',
      '1e3',
      "'x'",
      "''''",
      "'2026-01-01'",
    ],
    ...[
      '$$.topic',
      '$$.protocol',
      '$$.ingested_at',
      `$$.headers['${mark}h''x']`,
      `$$.user_properties."${mark}i"`,
      '$$.nope',
      '$1',
      '?',
      '*',
    ],
  ),
  marked,
)
const functionName = fc.oneof(
  { arbitrary: fc.constantFrom(...allowedFunctions.keys()), weight: 4 },
  fc.constantFrom(
    'read_text',
    'getenv',
    'query',
    'pragma_version',
    'now',
    'random',
    'error',
    'current_setting',
    `${mark}j`,
    'main.lower',
    '"lower"',
  ),
)
const type = fc.constantFrom(
  'BIGINT',
  'VARCHAR',
  'TIMESTAMP',
  'DATE[]',
  'JSON',
  'DECIMAL(9,2)',
  `${mark}k`,
  `STRUCT(${mark}l INT)`,
)
const { expression } = fc.letrec<{ expression: string }>((tie) => {
  const inner = tie('expression')
  return {
    expression: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      leaf,
      fc.tuple(functionName, fc.array(inner, { maxLength: 3 })).map(([name, parts]) => `${name}(${parts.join(', ')})`),
      fc
        .tuple(
          inner,
          fc.constantFrom(
            '+',
            '-',
            '*',
            '/',
            '//',
            '%',
            '||',
            '=',
            '<>',
            '<',
            'AND',
            'OR',
            'LIKE',
            '~',
            'IN',
            '->>',
            '^',
            ';',
            '::',
          ),
          inner,
        )
        .map(([left, operator, right]) => `${left} ${operator} ${right}`),
      fc.tuple(inner, type).map(([part, to]) => `CAST(${part} AS ${to})`),
      fc.tuple(inner, type).map(([part, to]) => `TRY_CAST(${part} AS ${to})`),
      fc.tuple(inner, inner, inner).map(([when, then, other]) => `CASE WHEN ${when} THEN ${then} ELSE ${other} END`),
      fc.tuple(inner, inner).map(([list, at]) => `(${list})[${at}]`),
      fc.tuple(inner, inner, inner).map(([part, from, to]) => `${part} BETWEEN ${from} AND ${to}`),
      inner.map((part) => `(${part})`),
      inner.map((part) => `NOT ${part}`),
      inner.map((part) => `(SELECT ${part} FROM records)`),
      fc.tuple(inner, fc.string({ maxLength: 4 })).map(([part, noise]) => part + noise),
    ),
  }
})

/** Returns the statement without quoted names and texts. */
const bare = (sql: string) => sql.replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"/g, ' ')

test('no text of a definition becomes part of a statement', { timeout: 600_000 }, async () => {
  const declared = fc.constantFrom('BIGINT', 'DOUBLE', 'VARCHAR', 'TIMESTAMP', 'VARCHAR[]', 'BOOLEAN', 'JSON')
  const words = new Set((await compileView({ columns })).sql.match(/[a-z_]\w*/gi))
  let compiled = 0
  await fc.assert(
    fc.asyncProperty(expression, declared, fc.boolean(), async (text, to, isFilter) => {
      const definition = isFilter
        ? { columns, filters: [{ condition: text }] }
        : { columns: [...columns, { name: 'c', type: to, value: text }] }
      const result = await compileView(definition).catch((error: unknown) => error)
      if (result instanceof Error) {
        expect(result).toBeInstanceOf(AppError)
        const { code, errors = [] } = result as AppError
        expect(code).toBe('validation_error')
        expect(errors).not.toEqual([])
        const ofExpressions = errors.filter(({ path }) => path.endsWith('value') || path.endsWith('condition'))
        for (const each of ofExpressions.filter(({ code: known }) => known !== undefined))
          expect(expressionProblems).toContain(each.code)
        expect(JSON.stringify(errors)).not.toMatch(/[A-Z]\w+ Error: |INTERNAL/)
        return
      }
      compiled += 1
      const { sql } = result as { sql: string }
      expect(bare(sql)).not.toContain(mark)
      expect(bare(sql)).not.toMatch(/--|\/\*|\$\$|;/)
      for (const word of bare(sql).match(/\b(?:read_\w+|getenv|query|pragma\w*|attach|copy|random|error|current_setting)\b/gi) ??
        [])
        expect(words).toContain(word)
    }),
    { numRuns: runs(400, 30_000) },
  )
  expect(compiled).toBeGreaterThan(runs(3, 300))
})
