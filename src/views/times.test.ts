import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Database } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { MiB } from '#lib/bytes.ts'
import { parseType } from '#model/types/column-type.ts'
import { decide } from '../../test/support/decide.ts'
import { runs } from '../../test/support/thorough.ts'
import { castText } from './cast-sql.ts'

describe('a time with text before or after it', () => {
  const part = fc.constantFrom(
    '+',
    '-',
    ':',
    '0',
    '5',
    '30',
    '02',
    '00',
    'Z',
    ' ',
    '\t',
    '\v',
    '.',
    ' UTC',
    ' Europe/Berlin',
    '(BC)',
    'T',
    '[Europe/Berlin]',
    '[!UTC]',
  )
  /** As DuckDB reads it: with seconds, and without the name of a zone after its offset. */
  const respell = (text: string): string =>
    text.replace(/(Z|[+-]\d[\d:]*)(\[[^![\]]+\])+$/, '$1').replace(/^([^:]*:\d\d)(Z|[+-])/, '$1:00$2')
  const time = fc.tuple(
    fc.constantFrom('2026-01-01T10:00:00', '2026-01-01 10:00', '2026-01-01', '1969-12-31T23:59:59.5', '0044-03-15 (BC) 10:00:00'),
    fc.array(part, { maxLength: 7 }).map((parts) => parts.join('')),
  )

  test.each(['TIMESTAMP', 'TIMESTAMPTZ'])(
    'is the %s in the text, or none',
    async (type) => {
      const database = await Database.open({ directories: [], memoryBytes: 64 * MiB })
      try {
        const connection = await database.connect()
        const texts = fc.sample(time, runs(1_000, 4_000)).map(([start, end]) => start + end)
        const given = texts.map((text) => `(${quoteLiteral(text)})`).join(', ')
        const select = (value: string) => `SELECT CAST(${value} AS VARCHAR) FROM`
        const ours = await connection.query(`${select(castText('text', parseType(type)))} (VALUES ${given}) AS given(text)`)
        // Each in its own statement, so that no row comes before it.
        for (const [index, [value]] of ours.rows.entries()) {
          if (value === null) continue
          const text = texts[index] ?? ''
          const { rows } = await connection.query(
            `${select(`CAST(TRY_CAST(text AS TIMESTAMPTZ) AS ${type})`)} (SELECT ${quoteLiteral(respell(text))} AS text)`,
          )
          expect(value, text).toBe(rows[0]?.[0])
        }
      } finally {
        database.close()
      }
    },
    60_000,
  )

  test('does not move the times of other records', async () => {
    const columns = ['TIMESTAMP', 'TIMESTAMPTZ', 'TIMESTAMP[]', 'TIMESTAMPTZ[]'].map((type, index) => ({
      ...{ name: `c${index}`, type, path: index < 2 ? '$.at' : '$.list' },
    }))
    const record = (at: string) => JSON.stringify({ at, list: [at, null] })
    const zones = [
      ' Europe/Berlin',
      '[Europe/Berlin]',
      '+01:00[Europe/Berlin]',
      ' America/New_York',
      ' UTC+02',
      ' GMT+05:30',
      ' Etc/GMT:05+02',
      '+02:00',
    ]
    const others = ['2026-01-05', '2026-01-05T10:00:00', '2026-01-05T10:00:00Z', '2026-01-05 10:00:00+01']
    const records = zones.flatMap((zone) => [record(`2026-01-01T10:00:00${zone}`), ...others.map(record)])
    const { rows } = await decide({ columns }, records)
    const alone = await Promise.all(others.map(async (other) => (await decide({ columns }, [record(other)])).rows[0]))
    expect(rows.filter((_, index) => index % (others.length + 1) > 0)).toEqual(zones.flatMap(() => alone))
    expect(alone.slice(0, 2)).toEqual([
      ['2026-01-05 00:00:00+00', '2026-01-05 00:00:00+00', ['2026-01-05 00:00:00+00', null], ['2026-01-05 00:00:00+00', null]],
      ['2026-01-05 10:00:00+00', '2026-01-05 10:00:00+00', ['2026-01-05 10:00:00+00', null], ['2026-01-05 10:00:00+00', null]],
    ])
  })
})
