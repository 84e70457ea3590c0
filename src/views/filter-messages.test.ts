/** Messages about conditions that cannot be right. */
import { describe, expect, test } from 'vitest'
import type { Column } from '#model/definition.ts'
import { columns, record, refusal } from '../../test/support/condition-record.ts'
import { decide } from '../../test/support/decide.ts'
import { compileView } from './compile.ts'

describe('a condition that cannot be right is rejected in the words of its author', () => {
  const given: readonly Column[] = [
    ...columns,
    { name: 'd', type: 'DATE', path: '$.d' },
    { name: 'clock', type: 'TIME', path: '$.clock' },
    { name: 'j', type: 'JSON', path: '$.j' },
  ]

  test.each([
    ...['t > 5', '5 < t', 'd = 5', '5 < d', 'clock > i', 't BETWEEN 1 AND 2', 't IN (1)', 'n IN (t)'].map((condition) => [
      condition,
      'compares a time with a number',
    ]),
    ["coalesce(s, 5) = 'a'", 'uses text and a number as if they had one type'],
    ["greatest(s, 1) = 'a'", 'uses text and a number as if they had one type'],
    ['s + 1 = 2', '"+" needs numbers, not text or JSON: cast it, such as CAST("s" AS DOUBLE)'],
    ['-s = 1', '"-" needs numbers'],
    ['j * 2 = 4', 'CAST("j" AS DOUBLE)'],
    ["replace(i, '1', '2') = '1'", '"replace" takes text, not a BIGINT: cast it, such as CAST("i" AS VARCHAR)'],
    ['t * 2 = t', '"*" takes a number, not a TIMESTAMP: use epoch("t") for its seconds'],
    ['s LIKE s', 'the pattern of LIKE must be a text constant'],
    ['s NOT ILIKE s', 'the pattern of NOT ILIKE must be'],
    ["s NOT LIKE s ESCAPE 'x'", 'the pattern of NOT LIKE must be'],
    ...['t > now()', 't > current_timestamp', 'd = CURRENT_DATE', 'd = today()', 't > localtimestamp'].map((condition) => [
      condition,
      'a view gives the same result whenever it runs',
    ]),
    ["regexp_matches(s, 'a(b')", 'the pattern "a(b" cannot be read: missing ): a(b'],
    ["s SIMILAR TO 'a(b'", 'the pattern "a(b" cannot be read: '],
    ["regexp_full_match(s, '(a{600}){2}')", 'cannot be read: '],
    ['t - t = 0', 'subtract seconds, as in epoch(a) - epoch(b)'],
    ['t - d > 5', 'subtract seconds'],
    ['j = 5', 'compares "j", which is JSON, with a number: cast the JSON with CAST("j" AS DOUBLE)'],
    ['5 < j', 'which is JSON, with a number'],
    ['   ', 'must be one expression'],
  ] as [string, string][])('%s', async (condition, message) => {
    const found = await refusal(condition, given)
    expect(found).toContain(message)
    expect(found).not.toMatch(/Error:|_LITERAL/)
  })

  test.each(['epoch(t) - epoch(t) = 0', 'd - d = 0 OR i = 7', 'CAST(j AS DOUBLE) = 5', "j = '5' OR i = 7"])(
    '%s is allowed',
    async (condition) => {
      const decided = await decide({ columns: [...given], filters: [{ condition }] }, [`{"j":5,${record.slice(1)}`])
      expect(decided.counts).toMatchObject({ accepted: 1 })
    },
  )
})

describe('a value that is used as if it had another type', () => {
  const given: readonly Column[] = [
    ...columns,
    ...[
      ['bo', 'BOOLEAN'],
      ['u', 'UUID'],
      ['b', 'BLOB'],
      ['j', 'JSON'],
    ].map(([name = '', type = '']) => ({ name, type, path: `$.${name}` })),
  ]
  const records = [
    { s: 'true', n: 2, i: 1, bo: true, u: 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6' },
    { s: 'maybe', n: 2, i: 1, bo: true },
    { s: 'f', n: 0, i: 0, bo: false },
  ].map((each) => JSON.stringify(each))

  const asText = `uses "s", which is text, as a condition: compare it, such as "s" = 'yes', or cast it with CAST("s" AS BOOLEAN)`
  const asNumber = 'uses "n", which is a number, as a condition: compare it, such as "n" <> 0'
  const compared = (type: string) =>
    `compares "s", which is text, with a value of type ${type}: cast it with CAST("s" AS ${type})`

  test.each([
    ['s AND n > 1', asText, 0],
    ['n > 1 OR s', asText, 9],
    ['NOT s', asText, 4],
    ['s IS TRUE', asText, 0],
    ['n > 1 AND s IS NOT FALSE', asText, 10],
    ['if(s, TRUE, FALSE)', asText, 3],
    ['CASE WHEN s THEN bo END', asText, 10],
    ['NOT n', asNumber, 4],
    ['n IS NOT TRUE', asNumber, 0],
    ["NOT ('a' || s)", 'uses text as a condition', 9],
    ["'true' AND bo", 'uses text as a condition', 0],
    ['NOT l', 'compare it, such as len("l") > 0', 4],
    ['NOT j', 'uses "j", which is JSON, as a condition', 4],
    ['NOT t', 'uses "t", which is a TIMESTAMP, as a condition: compare it, such as "t" IS NOT NULL', 4],
    ['bo = s', compared('BOOLEAN'), 5],
    ['u = s', compared('UUID'), 4],
    ['b = s', compared('BLOB'), 4],
    ['bo IN (TRUE, s)', compared('BOOLEAN'), 13],
    ['CASE bo WHEN s THEN TRUE END', compared('BOOLEAN'), 13],
    ['nullif(u, s) IS NULL', compared('UUID'), 10],
    ['bo = j', 'cast it with CAST("j" AS BOOLEAN)', 5],
    [
      'list_contains(l, bo)',
      'compares elements of "l", which are text, with a value of type BOOLEAN: cast it with CAST("l" AS',
      14,
    ],
  ] as [string, string, number][])('%s is refused in a new definition', async (condition, message, at) => {
    const definition = { columns: [...given], filters: [{ condition }] }
    const excerpt = `${condition}\n${' '.repeat(at)}^`
    await expect(compileView(definition, { isNew: true })).rejects.toMatchObject({
      errors: [{ path: 'filters.0.condition', code: 'wrong_type', message: expect.stringContaining(message), excerpt }],
    })
  })

  // The text `maybe` makes the whole condition unknown.
  test.each([
    ['s AND n > 1', 1],
    ['NOT s', 1],
    ['s IS TRUE', 1],
    ['n IS TRUE', 2],
    ['if(s, TRUE, FALSE)', 1],
    ['CASE WHEN s THEN bo END', 1],
    ['bo = s', 2],
    ['bo = s OR n > 1', 2],
    ['u = s OR i = 0', 0],
  ] as [string, number][])('%s of a published version means what it meant', async (condition, accepted) => {
    const { counts } = await decide({ columns: [...given], filters: [{ condition }] }, records)
    expect(counts.accepted).toBe(accepted)
  })

  test.each([
    ...['bo', 'NOT bo', 'bo IS NOT TRUE', "(s = 'true') IS TRUE", 'NULL OR bo', 'NOT (NULL AND bo)', "bo = 'true'"],
    ...[
      'CAST(s AS BOOLEAN) IS TRUE',
      'CAST(s AS BOOLEAN) AND bo',
      'bo IN (TRUE, NULL)',
      "u <> 'f81d4fae-7dec-11d0-a765-00a0c91e6bf7'",
    ],
    ...[
      'u = CAST(s AS UUID) OR TRUE',
      'CASE WHEN NULL THEN FALSE ELSE TRUE END',
      'coalesce(bo, FALSE)',
      'if(bo IS NULL, FALSE, TRUE)',
    ],
  ])('%s is allowed', async (condition) => {
    expect(await refusal(condition, given)).toBeUndefined()
  })
})
