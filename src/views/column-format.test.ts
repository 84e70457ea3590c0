/** Columns whose times are numbers, or text in a format. */
import { describe, expect, test } from 'vitest'
import { AppError } from '#errors.ts'
import type { Column, Definition } from '#model/definition.ts'
import { fromSentView, toSentView } from '#model/definition.ts'
import { decide } from '../../test/support/decide.ts'
import { compileView } from './compile.ts'

const timed = (format: string, more: Partial<Column> = {}): Definition => ({
  columns: [{ name: 't', type: 'TIMESTAMP', path: '$.t', format, ...more }],
})

async function problems(definition: Definition): Promise<readonly { path: string; message: string }[]> {
  try {
    await compileView(definition)
    return []
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return error.errors ?? []
  }
}

describe('a column with a format', () => {
  test.each([
    ['epoch_s', 1795162530.5, '2026-11-20 08:15:30.5+00'],
    ['epoch_s', '1795162530', '2026-11-20 08:15:30+00'],
    ['epoch_s', -1, '1969-12-31 23:59:59+00'],
    ['epoch_ms', 1795162530500, '2026-11-20 08:15:30.5+00'],
    ['epoch_ms', '1795162530123.4', '2026-11-20 08:15:30.1234+00'],
    ['epoch_us', 1795162530123456, '2026-11-20 08:15:30.123456+00'],
    ['epoch_ns', '1795162530123456789', '2026-11-20 08:15:30.123456+00'],
    ['%d/%b/%Y:%H:%M:%S %z', '20/Nov/2026:08:15:30 +0100', '2026-11-20 07:15:30+00'],
    ['%Y%m%d', 20261120, '2026-11-20 00:00:00+00'],
  ])('%s reads %j', async (format, t, expected) => {
    for (const type of ['TIMESTAMP', 'TIMESTAMPTZ']) {
      const { rows } = await decide(timed(format, { type }), [JSON.stringify({ t })])
      expect(rows).toEqual([[expected]])
    }
  })

  const misfits = [
    '',
    'x',
    '2026-11-20T08:15:30Z',
    true,
    [1],
    { a: 1 },
    'NaN',
    'inf',
    '1e300',
    '9'.repeat(40),
    '1'.repeat(100_000),
    '\0',
    '🙂',
  ]

  test.each(['epoch_s', 'epoch_ms', 'epoch_us', 'epoch_ns', '%d/%m/%Y'])(
    '%s fails on other values, and NULL is missing',
    async (format) => {
      const records = [...misfits, null].map((t) => JSON.stringify({ t }))
      const { counts, quality } = await decide(timed(format), records)
      expect(counts).toMatchObject({ accepted: records.length, castNulls: misfits.length })
      expect(quality.columns[0]).toMatchObject({ nulls: records.length, cast_nulls: misfits.length })
      const { dlq } = await decide(timed(format, { required: true }), records)
      expect(dlq.map(({ error_code }) => error_code)).toEqual([...misfits.map(() => 'cast_failed'), 'missing_required'])
    },
  )

  test('the last day of a leap year is no day of another one', async () => {
    const texts = ['2026-001 08:15', '2026-365 23:59', '2026-366 08:15', '2024-366 08:15', '2026-367 08:15', '2026-000 08:15']
    const { rows } = await decide(
      timed('%Y-%j %H:%M'),
      texts.map((t) => JSON.stringify({ t })),
    )
    expect(rows.map(([time]) => time)).toEqual([
      '2026-01-01 08:15:00+00',
      '2026-12-31 23:59:00+00',
      null,
      '2024-12-31 08:15:00+00',
      null,
      null,
    ])
  })

  test('is read beside the same path without it, and by filters', async () => {
    const columns: Column[] = [
      { name: 'raw', type: 'BIGINT', path: '$.t' },
      { name: 'text', type: 'TIMESTAMP', path: '$.t' },
      { name: 'ms', type: 'TIMESTAMP', path: '$.t', format: 'epoch_ms' },
      { name: 's', type: 'TIMESTAMP', path: '$.t', format: 'epoch_s' },
    ]
    const filters = [{ condition: "ms > '2026-01-01' AND s IS NULL" }]
    const { rows } = await decide({ columns, filters }, ['{"t":1795162530500}', '{"t":1}'])
    expect(rows).toEqual([['1795162530500', null, '2026-11-20 08:15:30.5+00', null]])
  })

  test.each([
    [timed('epoch'), 'columns.0.format', 'must be one of epoch_s, epoch_ms, epoch_us, epoch_ns, or a format such as'],
    [timed('toString'), 'columns.0.format', 'must be one of'],
    [timed('%Y %Q'), 'columns.0.format', 'a format cannot have %Q'],
    [timed('%d/%m %H:%M'), 'columns.0.format', 'a format needs a year, such as %Y'],
    [timed('%y-%j'), 'columns.0.format', 'has the year as %Y'],
    [timed('%Y-%j %z'), 'columns.0.format', 'and no month, day of a month or %z'],
    [timed('%Y %Z'), 'columns.0.format', 'names of zones are ambiguous'],
    [timed('%Y\0'), 'columns.0.format', 'must not contain control characters'],
    [timed('%Y\ud800'), 'columns.0.format', 'must not contain control characters'],
    [timed('epoch_s', { type: 'BIGINT' }), 'columns.0.format', 'is only for columns of type TIMESTAMP or TIMESTAMPTZ'],
    [timed('epoch_s', { type: 'TIMESTAMP[]', path: '$.t[*]' }), 'columns.0.format', 'is only for columns of type'],
    [
      { columns: [{ name: 't', type: 'TIMESTAMP', value: 'epoch_s(5)', format: 'epoch_s' }] },
      'columns.0.format',
      'must be beside a path',
    ],
  ] as [Definition, string, string][])('%j is rejected', async (definition, path, message) => {
    expect(await problems(definition)).toMatchObject([{ path, message: expect.stringContaining(message) }])
  })

  test('is not sent to nodes of the release before, which do not know it', () => {
    const sent = { id: 'v', name: 'v', version: 1, definition: timed('epoch_ms') }
    const view = toSentView(sent)
    expect(view.definition.columns).not.toEqual(sent.definition.columns)
    expect(fromSentView(view)).toEqual(sent)
  })
})
