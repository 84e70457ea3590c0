/** The filter language as docs/views.md describes it, and hostile conditions. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Column } from '#model/definition.ts'
import { definitionLimits } from '#model/limits.ts'
import { columns, notAccepting, record, refusal } from '../../test/support/condition-record.ts'
import { decide } from '../../test/support/decide.ts'
import { runs } from '../../test/support/thorough.ts'
import { compileView } from './compile.ts'
import { allowedFunctions } from './filter-functions.ts'
import { ownFunctions } from './own-functions.ts'

/** Each function once, in a condition that is true for the record. */
const examples = [
  ...["lower(s) = ' abc '", "upper(s) = ' ABC '", "trim(s) = 'Abc'", "ltrim(s) = 'Abc '", "rtrim(s) = ' Abc'", 'length(s) = 5'],
  ...[
    'strlen(s) = 5',
    'len(l) = 2',
    'array_length(l) = 2',
    "left(s, 2) = ' A'",
    "right(s, 2) = 'c '",
    "substring(s, 2, 3) = 'Abc'",
  ],
  ...[
    "substr(s, 2, 1) = 'A'",
    "starts_with(s, ' A')",
    "ends_with(s, 'c ')",
    "prefix(s, ' A')",
    "suffix(s, 'c ')",
    "contains(s, 'bc')",
  ],
  ...["position('b' IN s) = 3", "strpos(s, 'b') = 3", "instr(s, 'b') = 3", 'nullif(i, 7) IS NULL', 'coalesce(NULL, i) = 7'],
  ...['abs(n) = 2.5', 'ceil(n) = -2', 'ceiling(n) = -2', 'floor(n) = -3', 'round(n, 0) = -3', 'trunc(n) = -2', 'sign(n) = -1'],
  ...['greatest(i, 9) = 9', 'least(i, 9) = 7', 'NOT isnan(n)', 'NOT isinf(n)', 'isfinite(n)'],
  ...[
    "date_part('hour', t) = 8",
    "date_trunc('day', t) = '2026-11-20'",
    'extract(month FROM t) = 11',
    'year(t) = 2026',
    'quarter(t) = 4',
  ],
  ...['month(t) = 11', 'week(t) = 47', 'day(t) = 20', 'dayofweek(t) = 5', 'isodow(t) = 5', 'dayofyear(t) = 324', 'hour(t) = 8'],
  ...['minute(t) = 15', 'second(t) = 30', 'epoch(t) = 1795162530.5', 'epoch_ms(t) = 1795162530500'],
  ...["epoch_s(i) = '1970-01-01T00:00:07Z'", 'epoch_ms(i) = epoch_us(i * 1000)', 'epoch_ns(n) < t', "strptime('26', '%y') < t"],
  ...[
    "split_part(s, 'b', 2) = 'c '",
    "left(sha256(s), 4) <> ''",
    'mask_ip(s) IS NULL',
    'url_host(s) IS NULL',
    'url_path(s) IS NULL',
  ],
  ...["url_param(s, 'b') IS NULL", `list_contains(json_keys('{"b":1}'), 'b')`],
  "at_zone(t, 'Europe/Berlin') = '2026-11-20 09:15:30.5'",
  ...["list_contains(l, 'a')", "array_contains(l, 'a')", "list_has(l, 'b')", "list_value('a', 'b') = l", "['a', 'b'] = l"],
  ...["s || '!' || i = ' Abc !7'", "concat(s, NULL, '!', n) = ' Abc !-2.5'", "replace(s, 'bc', '') = ' A '"],
  ...["regexp_extract(s, '[a-z]+') = 'bc'", "regexp_extract(s, '(.)(b)', 1) = 'A'", "regexp_extract(s, 'z') = ''"],
  ...["s LIKE '%b_ '", "s ILIKE '%B%'", "s SIMILAR TO ' A.*'", "regexp_matches(s, 'b')", "regexp_full_match(s, ' A[a-z]+ ')"],
]

describe('the allowed functions', () => {
  test('have an example each', () => {
    const used = new Set(examples.flatMap((example) => [...example.matchAll(/([a-z0-9_]+)\(/g)].map(([, name]) => name)))
    // It needs a secret: preview/hmac.test.ts runs it.
    used.add('hmac_sha256')
    expect([...allowedFunctions.keys(), ...ownFunctions.keys()].filter((name) => !used.has(name))).toEqual([])
  })

  test('are true in their examples', async () => {
    expect(await notAccepting(examples, columns, [record], 1)).toEqual([])
  })
})

describe('a timestamp with a zone', () => {
  const zoned: readonly Column[] = [
    { name: 'z', type: 'TIMESTAMPTZ', path: '$.z' },
    { name: 'zs', type: 'TIMESTAMPTZ[]', path: '$.zs' },
    { name: 's', type: 'VARCHAR', path: '$.s' },
  ]
  const at = JSON.stringify({ z: '2026-11-20T08:00:00+02:00', zs: ['2026-11-20T08:00:00+02:00'], s: '2026-11-20 06:00:00' })
  const zone = JSON.stringify({ z: '2026-01-01', s: '2026-01-01 00:00:00 America/New_York' })

  const conditions = [
    "z = '2026-11-20T06:00:00Z'",
    "z = TIMESTAMPTZ '2026-11-20 07:00:00+01'",
    "z BETWEEN '2026-11-20T07:59:59+02' AND '2026-11-20T08:00:01+02'",
    "date_part('hour', z) = 6 AND hour(z) = 6 AND epoch(z) = 1795154400",
    "list_contains(zs, z) AND zs[1] = '2026-11-20T06:00:00Z'",
    's = z',
    's::TIMESTAMP = z',
    "s = TIMESTAMPTZ '2026-11-20 06:00:00+00'",
  ]

  test('is compared alike, whatever zone an earlier record names', async () => {
    expect(await notAccepting(conditions, zoned, [zone, at, zone, at], 2)).toEqual([])
  })
})

describe('an instant in text', () => {
  const timed: readonly Column[] = [
    ...columns,
    { name: 'z', type: 'TIMESTAMPTZ', path: '$.t' },
    { name: 'text', type: 'VARCHAR', path: '$.t' },
    { name: 'json', type: 'JSON', path: '$.t' },
    { name: 'texts', type: 'VARCHAR[]', path: '$.ts' },
    { name: 'jsons', type: 'JSON[]', path: '$.ts' },
    { name: 'times', type: 'TIMESTAMP[]', path: '$.ts' },
    { name: 'clock', type: 'TIME', path: '$.clock' },
    { name: 'd', type: 'DATE', path: '$.d' },
  ]
  const [t, none] = ['2026-11-20T01:00:00+05:00', '2026-11-20T01:00:00 Europe/Berlin']
  const at = JSON.stringify({ s: t, t, ts: [t], clock: '20:00:00', d: '2026-11-19' })
  const zone = JSON.stringify({ s: none, t: none, ts: [none], clock: '20:00:00+01', d: '2026-11-19' })

  /** The same instant, and texts for it. */
  const instants = [
    ...['t', 'z', 'coalesce(t, z)', "CASE WHEN true THEN t ELSE '2026-01-01T00:00:00+05:00' END", 'greatest(t, z)', 'd + clock'],
    ...['times[1]', 'CAST(text AS TIMESTAMP)', 'text::TIMESTAMPTZ', "date_trunc('hour', t)", '[t][1]', 'json::TIMESTAMP'],
    ...[
      "CAST(replace(text, '+05:00', '+0500') AS TIMESTAMP)",
      '(jsons::TIMESTAMP[])[1]',
      'CAST(texts AS TIMESTAMPTZ[])[1]',
      '(json::VARCHAR)::JSON::TIMESTAMP',
    ],
    ...["if(true, t, '2026-01-01')", "nullif(t, '2026-01-01T00:00:00+14:00')", 'CAST(t AS TIMESTAMPTZ)'],
  ]
  const texts = [
    "'2026-11-19T22:00:00+02:00'",
    "TIMESTAMP '2026-11-19 15:00:00-0500'",
    "'2026-11-19 20:00'::TIMESTAMPTZ",
    'text',
    'json',
  ]

  test.each(instants)('%s has its offset applied, whatever zone another record names', async (instant) => {
    const filters = [
      ...texts.map((text) => `${instant} = ${text}`),
      `${instant} BETWEEN '2026-11-20T01:00:00+05:00' AND '2026-11-20T00:59:59+04:59'`,
      `${instant} IN ('2026-01-01', '2026-11-20T01:00:00+05:00')`,
      `'2026-11-19T20:00:00.000001Z' > ${instant}`,
    ].map((condition) => ({ condition }))
    const { counts } = await decide({ columns: [...timed], filters }, [zone, at, zone, at])
    expect(counts).toMatchObject({ accepted: 2, dropped: 2 })
  })

  test.each([
    "list_contains(times, '2026-11-19T21:00:00+01:00') AND list_contains(times, text) AND list_contains(texts, t)",
    "contains(times, json) AND t IN [text] AND list_has(['2026-11-19T21:00:00+01:00'], t)",
    "times = '[2026-11-19T21:00:00+01:00]' AND times = ['2026-11-19T21:00:00+01:00'] AND times = texts",
    "hour('2026-01-01T01:00:00+02:00') = 23 AND date_trunc('day', '2026-01-01T01:00:00+02:00') = '2025-12-31' AND t > '2026-01-01'",
    "d = '2026-11-19T23:00:00-05:00' AND clock = '20:00:00' AND text::DATE = '2026-11-20'",
    "t >= '2026-11-20T01:00:00+05:00' AND t < '2026-11-20T01:00:01+05:00'",
  ])('%s', async (condition) => {
    const { counts } = await decide({ columns: [...timed], filters: [{ condition }] }, [zone, at])
    expect(counts).toMatchObject({ accepted: 1, dropped: 1 })
  })

  test.each([
    ["t = '2026-01-01T00:00:00 Europe/Berlin'", 'is not of type TIMESTAMP'],
    ["t = '2026-01-01T00:00:00+14:01'", 'is not of type TIMESTAMP'],
    ["CAST('infinity' AS TIMESTAMP) < t", 'is not of type TIMESTAMP'],
    ["clock = '20:00:00+01'", 'is not of type TIME'],
    ["times = '[2026-01-01T00:00:00 UTC+2]'", 'is not of type TIMESTAMP[]'],
    ["t > t - '2026-01-01T00:00:00+01:00'", 'cast it'],
  ])('%s is rejected', async (condition, message) => {
    expect(await refusal(condition, timed)).toContain(message)
  })
})

describe('text and numbers', () => {
  test.each([
    's = 5',
    '5 < s',
    's = i',
    'i IN (s, 1)',
    's BETWEEN 1 AND 2',
    's IS DISTINCT FROM n',
    'lower(s) > length(s)',
    'CASE s WHEN 1 THEN true END',
    'nullif(s, 1) IS NULL',
    'list_contains(l, 5)',
    'l[1] = 1',
    '[i, 2][1] = s',
    "i = s || ''",
  ])('%s is rejected with a hint', async (condition) => {
    expect(await refusal(condition)).toMatch(
      /with a number: write the number in quotes, or cast the text with CAST\((…|"[sl]") AS DOUBLE(\[\])?\)$/,
    )
  })

  const allowed = [
    "i = '7'",
    "'-2.5' = n",
    "length(s) = '5'",
    "s <> '5'",
    'CAST(s AS DOUBLE) IS NULL OR s::INTEGER = 5',
    'i = TRUE::INTEGER * 7',
  ]

  test('that fit are allowed', async () => {
    expect(await notAccepting(allowed, columns, [record], 1)).toEqual([])
  })

  test.each(["i = 'seven'", "length(s) = 'five'", "coalesce(i, 'none') = 7"])('%s is rejected', async (condition) => {
    expect(await refusal(condition)).toMatch(/^the text ".*" is not of type /)
  })
})

describe('texts that a condition makes', () => {
  const factor = definitionLimits.textValuesMax
  const nested = (levels: number): string => (levels === 0 ? 's' : `replace(${nested(levels - 1)}, 'a', 'aa')`)

  test.each([
    [`s${' || s'.repeat(20)} = ''`],
    [`concat(${Array.from({ length: factor + 1 }, () => 's').join(', ')}) = ''`],
    [`${nested(6)} = ''`],
    [`replace(s, i::VARCHAR, '${'x'.repeat(factor + 1)}') = ''`],
    [`replace('${'a'.repeat(200)}', 'a', '${'b'.repeat(200)}') = ''`],
    [`replace(list_value(${Array.from({ length: factor + 1 }, () => 's').join(', ')})::VARCHAR, 'a', '') = ''`],
    [`upper('s')${` || '${'x'.repeat(40)}'`.repeat(60)} = ''`],
    [`${'lower('.repeat(51)}s${')'.repeat(51)} = ${'trim('.repeat(50)}s${')'.repeat(50)}`],
    [`''${' || i'.repeat(60)} = ''`],
    [`concat([${Array.from({ length: 300 }, () => 'i').join(', ')}]::VARCHAR, '') = ''`],
  ])('%s is rejected', async (condition) => {
    expect(await refusal(condition)).toContain('makes too much text')
  })

  test('are bounded for all conditions of a view together', async () => {
    const filters = Array.from({ length: factor / 2 + 1 }, () => ({
      condition: "lower(trim(s)) || '' <> '' OR upper(i::VARCHAR) = ''",
    }))
    const compile = (count: number) => compileView({ columns: [...columns], filters: filters.slice(0, count) })
    await compile(Math.floor(factor / 3))
    const path = `filters.${Math.floor(factor / 3)}.condition`
    await expect(compile(filters.length)).rejects.toThrow(
      expect.objectContaining({
        errors: expect.arrayContaining([expect.objectContaining({ path, message: expect.stringContaining('too much text') })]),
      }),
    )
  })

  test.each([
    ["replace(s, 'a', s) = ''", 'must be a text constant'],
    ["replace(s, 'a') = ''", 'takes a text'],
    ["l || ['x'] = l", 'join texts, not lists'],
    ['concat(l, l) = l', 'join texts, not lists'],
    ["regexp_extract(s, s) = ''", 'must be a text constant'],
    ["regexp_extract(s, 'a', i) = ''", 'a group from 0 to 9'],
    ["regexp_extract(s, 'a', 1.5) = ''", 'a group from 0 to 9'],
    ["regexp_extract(s, 'a', 0, 'i') = ''", 'a group from 0 to 9'],
    ["regexp_extract(s, 'a', ['x']) = ''", 'a group from 0 to 9'],
    ["regexp_extract(s, '((x?){100}){60}y') = ''", 'too large'],
    ["regexp_extract(s, 'a(b', 0) = 'b'", 'the pattern "a(b" cannot be read: missing ): a(b'],
    ["regexp_extract(s, '(a{600}){2}', 1) = ''", 'cannot be read: '],
    ["regexp_extract(s, '(?=a)(x)') = ''", 'cannot be read: '],
    ["regexp_extract(s, '(?:a)(?P<n>b)[(]c\\(', 3) = ''", 'has 1 groups'],
    ["regexp_replace(s, 'a', 'b') = ''", '"regexp_replace"'],
    ["repeat(s, 9) = ''", '"repeat"'],
  ])('%s is rejected', async (condition, message) => {
    expect(await refusal(condition)).toContain(message)
  })

  const value = 'a'.repeat(1_000)
  const { made } = fc.letrec<{ made: string }>((tie) => ({
    made: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.constantFrom('s', "'a'", "'aaaa'"),
      fc.tuple(tie('made'), tie('made')).map(([one, other]) => `(${one} || ${other})`),
      fc.tuple(tie('made'), tie('made')).map(([one, other]) => `concat(${one}, ${other})`),
      fc
        .tuple(tie('made'), fc.constantFrom("'a'", "'aaa'", 's'), fc.constantFrom("'a'", "'aaaaaaa'", "''"))
        .map(([text, removed, inserted]) => `replace(${text}, ${removed}, ${inserted})`),
      tie('made').map((text) => `[upper(lower(${text})), ''][1]`),
    ),
  }))

  test('are not longer than the bound', { timeout: 120_000 }, async () => {
    let taken = 0
    await fc.assert(
      fc.asyncProperty(made, async (text) => {
        const longest = definitionLimits.textValuesMax * value.length + definitionLimits.textBytesMax
        const definition = { columns: [...columns], filters: [{ condition: `strlen(${text}) <= ${longest}` }] }
        if ((await refusal(definition.filters[0]?.condition ?? '')) !== undefined) return
        taken += 1
        expect((await decide(definition, [JSON.stringify({ s: value })])).counts).toMatchObject({ accepted: 1 })
      }),
      { numRuns: runs(20, 150) },
    )
    expect(taken).toBeGreaterThan(runs(2, 15))
  })

  test('nested casts do not make a statement grow exponentially', async () => {
    const cast = (levels: number): string => (levels === 0 ? 's' : `${cast(levels - 1)}::TIMESTAMP::VARCHAR`)
    const often = Array.from({ length: definitionLimits.timeCastsMax + 1 }, () => 's = t').join(' OR ')
    expect(await refusal(often)).toContain('too often')
    const { sql } = await compileView({ columns: [...columns], filters: [{ condition: `${cast(30)} = ''` }] })
    expect(sql.length).toBeLessThan(50_000)
  })
})

describe('rejected conditions name the problem', () => {
  test.each([
    ['SET memory_limit = 1', 'cannot be parsed'],
    ["ATTACH 'x'", '"ATTACH"'],
    ["COPY records TO '/tmp/x'", 'cannot be parsed'],
    ["true FROM '/etc/passwd'", 'must be one expression'],
    ["true FROM read_csv('/etc/passwd')", 'must be one expression'],
    ["FROM 'x.csv'", 'must be one expression'],
    ['n > (VALUES (1))', 'a subquery'],
    ['main.records.n = 1', '"main.records.n" is not a column'],
    ['true USING SAMPLE 1', 'must be one expression'],
    ['true QUALIFY true', 'must be one expression'],
    ['n = 1e400', 'a number is too large'],
    ['CAST(s AS DECIMAL(99,1)) = 1', '"DECIMAL(99,1)"'],
    ["CAST(s AS BIT) = '1'", '"BIT"'],
    ["t AT TIME ZONE 'UTC' > t", '"timezone"'],
    ['i ** 2 > 1', 'the operator "**"'],
    ['i << 62 > 1', 'the operator "<<"'],
    ["(i, s) = (1, 'a')", '"row"'],
    ["s[1:2] = 'a'", 'a part of a list or text'],
    ["current_database() = ''", '"current_database"'],
    ["date_part('nope', t) = 1", 'nope'],
    ['lower() = s', '"lower" needs a value: write lower(…)'],
    ["regexp_matches(s, '(?=a)')", 'cannot be read: '],
    ["regexp_matches(s, '((x?){100}){60}y')", 'too large'],
    [`regexp_matches(s, '${'(x?){1000}'.repeat(3)}')`, 'too large'],
    [`regexp_matches(s, '${'('.repeat(1500)}')`, 'cannot be read: '],
    ['n > 5 /*', 'unterminated'],
    [`${'('.repeat(1_500)}${'NOT '.repeat(100)}true${')'.repeat(1_500)}`, 'nested too deep'],
    ['CASE WHEN true THEN '.repeat(68), 'cannot be parsed'],
  ])('%s', async (condition, message) => {
    expect(await refusal(condition)).toContain(message)
  })

  test('nested ten thousand deep in any way', async () => {
    for (const [open, close] of [
      ['(', ')'],
      ['NOT (', ')'],
      ['[', ']'],
      ['lower(', ')'],
      ['-(', ')'],
      ['CASE WHEN ', ' THEN 1 END'],
    ] as const) {
      const found = await refusal(`${open.repeat(10_000)}n${close.repeat(10_000)} = 1`)
      expect(found).toContain('text of 1 to 4096 characters')
    }
  })
})

/** The bounds of each type and their neighbours, which doubles cannot represent. */
const bounds: readonly (readonly [type: string, low: string, high: string])[] = [
  ['BIGINT', '9007199254740992', '9007199254740993'],
  ['BIGINT', '-9223372036854775808', '9223372036854775807'],
  ['UBIGINT', '18446744073709551614', '18446744073709551615'],
  ['HUGEINT', '-99999999999999999999999999999999999999', '99999999999999999999999999999999999999'],
  ['DECIMAL(19,2)', '12345678901234567.00', '12345678901234567.01'],
  ['DECIMAL(38,3)', '-12345678901234567890123456789012345.678', '12345678901234567890123456789012345.678'],
  ['DECIMAL(38,38)', '-0.99999999999999999999999999999999999999', '0.99999999999999999999999999999999999999'],
]

describe('constants beyond 2^53 are exact', () => {
  test.each(bounds)('%s from %s to %s', async (type, low, high) => {
    const records = [low, high].map((b) => JSON.stringify({ b }))
    for (const [condition, kept] of [
      [`b = ${low}`, [low]],
      [`b = ${high}`, [high]],
      [`b < ${high} AND b >= ${low}`, [low]],
      [`b IN (${low}, ${high})`, [low, high]],
    ] as const) {
      const { rows } = await decide({ columns: [{ name: 'b', type, path: '$.b' }], filters: [{ condition }] }, records)
      expect(rows.map(String), condition).toEqual(kept)
    }
  })

  test.each(['170141183460469231731687303715884105727', '-170141183460469231731687303715884105728'])(
    '%s is beyond every column',
    async (constant) => {
      const definition = { columns: [{ name: 'b', type: 'BIGINT', path: '$.b' }], filters: [{ condition: `b <> ${constant}` }] }
      expect((await decide(definition, ['{"b":1}'])).rows).toEqual([['1']])
    },
  )
})
