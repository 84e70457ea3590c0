import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Connection, Database } from '#duckdb/database.ts'
import { quoteIdentifier, quoteLiteral } from '#duckdb/quote.ts'
import { MiB } from '#lib/bytes.ts'
import type { Column } from '#model/definition.ts'
import { compileView } from '#views/compile.ts'
import { formatSql } from './format-sql.ts'

let database: Database
let connection: Connection
beforeAll(async () => {
  database = await Database.open({ directories: [], memoryBytes: 128 * MiB })
  connection = await database.connect()
})
afterAll(() => database.close())

/** Quoted names and literals, words and numbers, runs of operator characters, and everything else one by one. */
const tokens = (sql: string) => sql.match(/'(?:[^']|'')*'|"(?:[^"]|"")*"|[\p{L}\p{N}_.]+|[-+*/%<>=!|~:@#&^$?]+|\S/gu)

/** DuckDB's own parse of the statement. */
async function tree(sql: string): Promise<string> {
  const { rows } = await connection.query(`SELECT json_serialize_sql(${quoteLiteral(sql)})`)
  const text = String(rows[0]?.[0])
  expect(text).toContain('"error":false')
  return text.replaceAll(/"query_location":\d+/g, '')
}

async function expectSameStatement(sql: string): Promise<void> {
  const formatted = formatSql(sql)
  expect(tokens(formatted)).toEqual(tokens(sql))
  expect(await tree(formatted)).toBe(await tree(sql))
}

describe('formatting SQL changes white space only', () => {
  test('in a view with every type, a hundred columns and filters', async () => {
    const types = [
      'BOOLEAN',
      'BIGINT',
      'HUGEINT',
      'DOUBLE',
      'DECIMAL(12,2)',
      'VARCHAR',
      'DATE',
      'TIME',
      'TIMESTAMP',
      'TIMESTAMPTZ',
    ]
    const more = ['UUID', 'JSON', 'BLOB', 'VARCHAR[]', 'TIMESTAMP[]', 'TIME[][]', 'JSON[]', 'DATE[]']
    const columns = Array.from({ length: 100 }, (_, index): Column => {
      const type = [...types, ...more][index % (types.length + more.length)] ?? ''
      const path = type.endsWith('[]') && index % 2 === 0 ? `$.l[*].c${index}` : `$.a['b ${index}'].c`
      return { name: `c${index}`, type, path, required: index % 3 === 0, cast_failures: index % 5 === 0 ? 'dlq' : 'null' }
    })
    const conditions = [
      'c1 BETWEEN -5 AND 5 OR NOT c0',
      "c5 LIKE 'a%' AND c5 NOT LIKE '_b%' ESCAPE '!' AND regexp_matches(c5, '^(a|b){2,3}$')",
      "c8 > TIMESTAMP '2026-01-01 00:00:00' AND date_part('year', c8) // 2 % 3 = -1",
      "CASE WHEN c1 IS DISTINCT FROM 3 THEN c5 IN ('x', 'y') ELSE c13[1] IS NULL END",
      'c3 * -1.5e3 - -2 >= 1 AND coalesce(c4, 1.25) <> 0',
    ]
    const { sql } = await compileView({ columns, filters: conditions.map((condition) => ({ condition })) })
    await expectSameStatement(sql)
    expect(formatSql(sql).split('\n').length).toBeGreaterThan(500)
  })

  test('with hostile names, paths and literals', async () => {
    const marks = fc.constantFrom(
      "'",
      '"',
      "''",
      '--',
      '/*',
      '*/',
      '$$',
      '`',
      '\\',
      ';',
      '(',
      ')',
      '{{x}}',
      ':a',
      '?1',
      '@v',
      '#',
      '\n',
      ' ',
    )
    const hostile = fc.array(fc.oneof(marks, fc.string({ unit: 'grapheme', maxLength: 4 })), { maxLength: 8 }).map((parts) => {
      return parts
        .join('')
        .toWellFormed()
        .replaceAll(/(?!\n)\p{Cc}/gu, '')
    })
    await fc.assert(
      fc.asyncProperty(hostile, hostile, async (name, text) => {
        const key = `"k${name.replaceAll('*', '').replaceAll(/[\\"]/g, '\\$&')}"`
        const columns: Column[] = [{ name: 'c', type: 'VARCHAR', path: `$.${key}`, cast_failures: 'dlq' }]
        const condition = `c <> ${quoteLiteral(text)} OR c LIKE ${quoteLiteral(`${text}%`)}`
        const { sql } = await compileView({ columns, filters: [{ condition }] })
        await expectSameStatement(`SELECT value_0 AS ${quoteIdentifier(`n${name}`)} FROM (${sql}) WHERE verdict_0 = 0`)
      }),
      { numRuns: 100 },
    )
  })
})

test('puts each column on a line of its own and indents subqueries', () => {
  expect(
    formatSql(`SELECT 'a,  b(SELECT 1) FROM ''x', "c, ""d" FROM (SELECT lower(z) FROM t WHERE x = ',') WHERE y`).split('\n'),
  ).toEqual([
    'SELECT',
    `  'a,  b(SELECT 1) FROM ''x',`,
    '  "c, ""d"',
    'FROM',
    '  (',
    '    SELECT',
    '      lower(z)',
    '    FROM',
    '      t',
    '    WHERE',
    "      x = ','",
    '  )',
    'WHERE',
    '  y',
  ])
})

test('returns a statement that the formatter cannot parse as it is', () => {
  expect(formatSql('SELECT (1')).toBe('SELECT (1')
})
