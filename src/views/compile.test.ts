import { describe, expect, test } from 'vitest'
import { AppError } from '#errors.ts'
import type { Column, Definition } from '#model/definition.ts'
import { compileView } from './compile.ts'

const columns: readonly Column[] = [
  { name: 'amount', type: 'BIGINT', path: '$.amount' },
  { name: 'kind', type: 'VARCHAR', path: '$.kind' },
  { name: 'seen', type: 'TIMESTAMP', path: '$.seen' },
  { name: 'price', type: 'DECIMAL(18,2)', path: '$.price' },
  { name: 'tags', type: 'VARCHAR[]', path: '$.tags' },
  { name: 'big', type: 'HUGEINT', path: '$.big' },
  { name: 'odd "name', type: 'BOOLEAN', path: '$.odd' },
]

async function problems(definition: unknown): Promise<readonly { path: string; message: string }[]> {
  try {
    await compileView(definition as Definition)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    expect(error.code).toBe('validation_error')
    return error.errors ?? []
  }
  return []
}

async function refusal(condition: string): Promise<string | undefined> {
  const [problem] = await problems({ columns, filters: [{ condition }] })
  if (problem !== undefined) expect(problem.path).toBe('filters.0.condition')
  return problem?.message
}

describe('definitions', () => {
  test('lists every problem with its path', async () => {
    const found = await problems({
      columns: [
        { name: 'a', type: 'MONEY', path: 'a' },
        { name: 'b', type: 'VARCHAR', path: '$.b[*]' },
        { name: 'c', type: 'JSON', path: '$$.topic' },
        { name: 'd', type: 'BIGINT', path: '$.d', parquet: 'native' },
      ],
      filters: [{ condition: 'a = 1' }, { condition: 'nope = 1' }, { condition: 'a = ' }],
    })
    expect(found.map(({ path }) => path)).toEqual([
      'columns.0.type',
      'columns.0.path',
      'columns.1.type',
      'columns.2.type',
      'columns.3.parquet',
      'filters.1.condition',
      'filters.2.condition',
    ])
    expect(found[0]?.message).toContain('use one of BOOLEAN, TINYINT')
    expect(found[5]?.message).toBe('"nope" is not a column of this view')
  })

  test('accepts names of versions that were published before a rule about names', async () => {
    expect((await compileView({ columns: [{ name: 'dt', type: 'DATE', path: '$.dt' }] })).columns).toHaveLength(1)
  })

  test('checks the shape of any input', async () => {
    expect(await problems(null)).toHaveLength(1)
    expect(await problems({ columns: [] })).toMatchObject([{ path: 'columns' }])
    expect(await problems({ columns: [{ name: 'a\0', type: 'BIGINT', path: '$.a', extra: 1 }] })).not.toEqual([])
  })

  test('compiles an object once', async () => {
    const definition = { columns: [...columns] }
    expect(compileView(definition)).toBe(compileView(definition))
    const wrong = { columns: [{ name: 'a', type: 'x', path: '$' }] }
    await expect(compileView(wrong)).rejects.toThrow(AppError)
    expect(await problems(wrong)).toHaveLength(1)
  })
})

describe('allowed conditions', () => {
  test.each([
    'amount > 5',
    'AMOUNT > 5 AND NOT (kind = \'x\' OR "odd ""name")',
    "kind IN ('a', 'b') AND amount NOT IN (1, 2)",
    'amount BETWEEN 1 AND 10 AND amount NOT BETWEEN 3 AND 4',
    "kind LIKE 'a%' AND kind NOT ILIKE '%_b' AND kind LIKE 'a!%' ESCAPE '!'",
    "kind SIMILAR TO 'a+' OR regexp_matches(kind, '^a|b$')",
    'amount IS NULL OR kind IS NOT NULL OR amount IS DISTINCT FROM 3',
    '"odd ""name" IS TRUE OR "odd ""name" IS NOT FALSE OR "odd ""name" IS UNKNOWN',
    "CASE WHEN amount > 5 THEN true ELSE kind = 'x' END",
    "seen >= '2026-01-01' AND seen < TIMESTAMP '2027-01-01 00:00:00'",
    'price = 1.05 AND price > -3 AND amount = 1e3 AND amount % 2 = 0 AND -amount < +5 AND amount // 2 = amount - 1',
    "CAST(amount AS VARCHAR) = '5' OR kind::INTEGER = 5 OR TRY_CAST(kind AS DECIMAL(5,1)) > 1",
    "lower(trim(kind)) = 'x' AND length(kind) > 3 AND starts_with(kind, 'a') AND coalesce(kind, 'z') = 'z'",
    "year(seen) = 2026 OR date_part('hour', seen) < 3 OR extract(month FROM seen) = 1",
    "list_contains(tags, 'a') AND len(tags) > 1 AND tags[1] = 'b' AND tags = ['a', 'b']",
    "big = '170141183460469231731687303715884105'",
    'amount > 5 -- a note\n /* and one */ AND true',
    "kind = 'it''s; -- \"no\" /* comment */'",
    Array.from({ length: 200 }, () => 'amount > 5').join(' AND '),
    `${'('.repeat(500)}true${')'.repeat(500)}`,
  ])('%s', async (condition) => {
    expect(await refusal(condition)).toBeUndefined()
  })
})

describe('rejected conditions name the problem', () => {
  test.each([
    ['amount', 'is of type BIGINT'],
    ['NULL', 'must be a BOOLEAN expression'],
    ['nope = 1', '"nope" is not a column'],
    ['records.amount = 1', '"records.amount" is not a column'],
    ['payload IS NULL', '"payload" is not a column'],
    ['current_user = 1', '"current_user" is not a column'],
    ['rowid = 1', '"rowid" is not a column'],
    ['*', '* is not allowed'],
    ['COLUMNS(*) > 1', 'is not allowed'],
    ['(SELECT 1) = 1', 'a subquery'],
    ['amount IN (SELECT 1)', 'a subquery'],
    ['EXISTS (SELECT * FROM records)', 'a subquery'],
    ['amount = ANY([1, 2])', 'a subquery'],
    ['amount > 5; DROP TABLE records', 'must be one expression'],
    ['amount > 5; SELECT 1', 'must be one expression'],
    ['true FROM records', 'must be one expression'],
    ['true WHERE true', 'must be one expression'],
    ['true GROUP BY 1', 'must be one expression'],
    ['true ORDER BY 1', 'must be one expression'],
    ['true LIMIT 1', 'must be one expression'],
    ['DISTINCT true', 'must be one expression'],
    ['true UNION SELECT false', 'must be one expression'],
    ['true, false', 'must be one expression'],
    ['true AS x', 'must not give'],
    ['true x', 'must not give'],
    ['at > 5', 'in double quotes'],
    ['', 'text of 1 to 4096 characters'],
    ['amount >', 'cannot be parsed'],
    [') OR (true', 'cannot be parsed'],
    ["'", 'cannot be parsed'],
    ["read_text('/etc/passwd') = ''", '"read_text"'],
    ["getenv('HOME') = ''", '"getenv"'],
    ["current_setting('memory_limit') = ''", '"current_setting"'],
    ['random() < 0.5', '"random"'],
    ['now() > seen', '"now"'],
    ['count(*) > 1', '"count_star"'],
    ['sum(amount) > 1', '"sum"'],
    ['row_number() OVER () = 1', 'a window function'],
    ['amount > 1 AND sum(amount) FILTER (WHERE true) > 1', 'plainly'],
    ['lower(DISTINCT kind) = kind', 'plainly'],
    ['pg_catalog.lower(kind) = kind', 'plainly'],
    ['len(list_filter(tags, x -> true)) = 1', 'a lambda'],
    ['len(list_filter(tags, lambda x: true)) = 1', 'a lambda'],
    ["repeat(kind, 1000000000) = ''", '"repeat"'],
    ["lpad(kind, 1000000000, 'x') = ''", '"lpad"'],
    ['kind LIKE kind', 'must be a text constant'],
    ["kind GLOB 'x*'", '"~~~"'],
    ["regexp_matches(kind, lower('A'))", 'must be a text constant'],
    ["regexp_matches(kind, 'a', 'i')", 'takes a text and a pattern'],
    ["kind ~ '(a'", 'missing )'],
    ["kind ~ '(((a{1000}){1000}){1000})'", 'too large'],
    ["kind COLLATE NOCASE = 'x'", 'COLLATE'],
    ['amount = $1', 'a parameter'],
    ['amount = ?', 'a parameter'],
    ['#1 = 1', 'by its position'],
    ["kind::ENUM('a') = 'a'", 'cannot cast to'],
    ['CAST(amount AS records) = 1', 'cannot cast to'],
    ['amount > INTERVAL 1 DAY', 'is not allowed'],
    ["seen > 'yesterday-ish'", 'the text "yesterday-ish" is not of type TIMESTAMP'],
    ["amount IN (1, 'x')", 'the text "x" is not of type BIGINT'],
    ["DATE '2026-02-30' < seen", 'the text "2026-02-30" is not of type DATE'],
    ["amount > 'many'", 'the text "many" is not of type BIGINT'],
    ['kind > 5', 'compares "kind", which is text, with a number'],
    ['tags > 5', 'does not fit'],
    ["lower(amount, 1, 2) = 'x'", '"lower" takes 1 value, not 3'],
    ['amount = 340282366920938463463374607431768211455', 'too large'],
    ["kind = E'\\x00'", ''],
    ['amount > 5\0', 'control characters'],
    ['amount > 5 \ud800', 'control characters'],
    [`${'NOT '.repeat(70)}true`, 'nested too deep'],
    [`${'lower('.repeat(500)}kind${')'.repeat(500)} = 'x'`, 'nested too deep'],
    [`${'('.repeat(2000)}true${')'.repeat(2000)} AND nope`, 'is not a column'],
    [`${'- '.repeat(2000)}amount > 1`, 'is nested too deep'],
    ['('.repeat(4096), 'cannot be parsed'],
    ['['.repeat(4096), 'cannot be parsed'],
    ['CASE WHEN '.repeat(400), 'cannot be parsed'],
    [`${'('.repeat(5000)}true${')'.repeat(5000)}`, 'text of 1 to 4096 characters'],
    ["getvariable('x') = 1", '"getvariable"'],
    ['struct_pack(a := 1).a = 1', 'is not allowed'],
    ["{'a': 1}.a = 1", 'is not allowed'],
    ['[x FOR x IN tags] = tags', 'is not allowed'],
    ["kind = 'x' AND query('SELECT 1') IS NULL", '"query"'],
    ["nextval('s') = 1", '"nextval"'],
  ])('%s', async (condition, message) => {
    expect(await refusal(condition)).toContain(message)
  })
})
