/** Messages about conditions that cannot be right. */
import { describe, expect, test } from 'vitest'
import type { Column } from '#model/definition.ts'
import { columns, record, refusal } from '../../test/support/condition-record.ts'
import { decide } from '../../test/support/decide.ts'

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
    ["coalesce(s, 5) = 'a'", 'uses VARCHAR and a number as if they had one type'],
    ["greatest(s, 1) = 'a'", 'uses VARCHAR and a number as if they had one type'],
    ['s + 1 = 2', '"+" needs numbers, not text or JSON: cast it, such as CAST("s" AS DOUBLE)'],
    ['-s = 1', '"-" needs numbers'],
    ['j * 2 = 4', 'CAST("j" AS DOUBLE)'],
    ["replace(i, '1', '2') = '1'", '"replace" does not take (BIGINT, a text, a text)'],
    ['t * 2 = t', '"*" does not take (TIMESTAMP, a number)'],
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
