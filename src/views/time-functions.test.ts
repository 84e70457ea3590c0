/** Functions that make times, also of hostile values. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Column } from '#model/definition.ts'
import { columns, notAccepting, record, refusal } from '../../test/support/condition-record.ts'
import { runs } from '../../test/support/thorough.ts'

const numbers: readonly Column[] = [
  ...['BIGINT', 'INTEGER', 'UBIGINT', 'HUGEINT', 'DECIMAL(38,6)', 'DOUBLE', 'FLOAT'].map((type, index) => ({
    ...{ name: `x${index}`, type, path: '$.x' },
  })),
  { name: 'big', type: 'HUGEINT', path: '$.x' },
  { name: 'exact', type: 'DECIMAL(38,9)', path: '$.x' },
  { name: 'double', type: 'DOUBLE', path: '$.x' },
  { name: 'whole', type: 'BIGINT', path: '$.x' },
]

/** Returns the values of `x` for which an expression is not the expected time. */
async function wrong(expression: string, of: readonly Column[], expected: Readonly<Record<string, string | null>>) {
  const all = Object.entries(expected).map(([x, want]) => JSON.stringify({ x, want }))
  const withWant = [...of, { name: 'want', type: 'TIMESTAMP', path: '$.want' }]
  const failing = (records: readonly string[]) =>
    notAccepting([`${expression} IS NOT DISTINCT FROM want`], withWant, records, records.length)
  if ((await failing(all)).length === 0) return []
  const found = await Promise.all(all.map(async (record) => ((await failing([record])).length === 0 ? [] : [record])))
  return found.flat()
}

describe('the time of a number', () => {
  test.each([
    ['epoch_s', 1],
    ['epoch_ms', 1_000],
    ['epoch_us', 1_000_000],
  ] as const)('%s is the same for each type of number', async (name, factor) => {
    const conditions = [0, 1, 2, 3, 4, 5].flatMap((index) => [
      `${name}(x${index}) = TIMESTAMP '1970-01-01T00:33:20Z'`,
      `${name}(x${index} + 1) > TIMESTAMP '1970-01-01T00:33:20Z' AND epoch(${name}(x${index})) = 2000`,
    ])
    expect(await notAccepting(conditions, numbers, [JSON.stringify({ x: 2_000 * factor })], 1)).toEqual([])
  })

  test('has the range of a column, and microseconds', async () => {
    expect(
      await wrong('epoch_s(exact)', numbers, {
        '253402300799.999999999': '9999-12-31T23:59:59.999999Z',
        '253402300800': null,
        '-62135596800': '0001-01-01T00:00:00Z',
        '-62135596800.000000001': null,
        '-0.000000001': '1969-12-31T23:59:59.999999Z',
        '1795162530.123456789': '2026-11-20T08:15:30.123456Z',
      }),
    ).toEqual([])
    expect(
      await wrong('epoch_ns(big)', numbers, {
        '253402300799999999999': '9999-12-31T23:59:59.999999Z',
        '253402300800000000000': null,
        '-62135596800000000000': '0001-01-01T00:00:00Z',
        '-62135596800000000001': null,
        '-1': '1969-12-31T23:59:59.999999Z',
        '1795162530123456789': '2026-11-20T08:15:30.123456Z',
        '99999999999999999999999999999999999999': null,
        '-99999999999999999999999999999999999999': null,
      }),
    ).toEqual([])
    expect(
      await wrong('epoch_ms(whole)', numbers, {
        '253402300799999': '9999-12-31T23:59:59.999Z',
        '253402300800000': null,
        '-62135596800000': '0001-01-01T00:00:00Z',
        '-62135596800001': null,
        '9223372036854775807': null,
        '-9223372036854775808': null,
        '': null,
      }),
    ).toEqual([])
    expect(
      await wrong('epoch_us(whole)', numbers, {
        '253402300799999999': '9999-12-31T23:59:59.999999Z',
        '253402300800000000': null,
        '-1': '1969-12-31T23:59:59.999999Z',
      }),
    ).toEqual([])
  })

  test('of a double has the digits that were sent', async () => {
    expect(
      await wrong('epoch_s(double)', numbers, {
        '1795162530.123456': '2026-11-20T08:15:30.123456Z',
        '1.795162530e9': '2026-11-20T08:15:30Z',
        '-0.5': '1969-12-31T23:59:59.5Z',
        '1e-300': '1970-01-01T00:00:00Z',
        '1e300': null,
        NaN: null,
        Infinity: null,
        '-inf': null,
      }),
    ).toEqual([])
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: -4e12, max: 4e12 }), { minLength: 30, maxLength: 30 }), async (all) => {
        const sent = all.map((ms) => JSON.stringify({ x: ms / 1_000 }))
        const conditions = [`epoch_ms(epoch_s(double)) = round(double * 1000)`]
        expect(await notAccepting(conditions, numbers, sent, sent.length)).toEqual([])
      }),
      { numRuns: runs(2, 20) },
    )
  })

  const constants = [
    "epoch_s(0) = TIMESTAMP '1970-01-01'",
    "epoch_s(-1.5) = TIMESTAMP '1969-12-31T23:59:58.5Z'",
    "epoch_ms(1795162530500) = '2026-11-20T08:15:30.5Z'",
    'epoch_s(NULL) IS NULL AND epoch_ms(NULL) IS NULL',
    'epoch_s(170141183460469231731687303715884105727) IS NULL AND epoch_s(1e308) IS NULL',
    "date_trunc('day', epoch_s(i)) = '1970-01-01' AND epoch_s(i) = epoch_ms(i * 1000) AND epoch_us(i) < epoch_ms(i)",
    // A time has a number, as before there were the others.
    'epoch_ms(t) = 1795162530500 AND epoch_ms(epoch_ms(i)) = i',
    "epoch_ms('2026-11-20T08:15:30.5Z') = 1795162530500 AND year(epoch_ms(i)) = 1970",
    'epoch_s(epoch(t)) = t AND epoch_ms(t::DATE) = 1795132800000',
  ]

  test('of constants and expressions', async () => {
    expect(await notAccepting(constants, columns, [record], 1)).toEqual([])
  })

  test.each([
    ['epoch_s(s) > t', '"epoch_s" takes a number, not text: cast it, such as CAST("s" AS BIGINT)'],
    ['epoch_ms(s) > t', '"epoch_ms" takes a number, not text: cast it, such as CAST("s" AS BIGINT)'],
    ['epoch_us(l) > t', '"epoch_us" takes a number, not a list'],
    ['epoch_s(i > 5) > t', 'not a BOOLEAN'],
    ["epoch_s('5') > t", '"epoch_s" takes a number: write it without quotes'],
    ['epoch_ns(t) > t', '"epoch_ns" makes a time of a number: epoch("t") has the seconds of a time'],
    ['epoch_s(i, 3) > t', '"epoch_s" takes one number, such as epoch_s(sent_at)'],
    ['epoch_ms() > t', '"epoch_ms" takes one number'],
    ['epoch_s(i) > 5', 'compares a time with a number'],
    ['epoch_s(i) - epoch_s(i) > 5', 'subtract seconds'],
  ])('%s is rejected', async (condition, message) => {
    expect(await refusal(condition)).toContain(message)
  })
})

describe('the time of a text in a format', () => {
  const text: readonly Column[] = [{ name: 'x', type: 'VARCHAR', path: '$.x' }]

  test('is an instant in UTC', async () => {
    expect(
      await wrong("strptime(x, '%d/%b/%Y:%H:%M:%S %z')", text, {
        '20/Nov/2026:08:15:30 +0000': '2026-11-20T08:15:30Z',
        '20/Nov/2026:08:15:30 +01:30': '2026-11-20T06:45:30Z',
        '20/Nov/2026:08:15:30 -0330': '2026-11-20T11:45:30Z',
        '20/Nov/2026:08:15:30 +14': '2026-11-19T18:15:30Z',
        '20/Nov/2026:08:15:30 Z': '2026-11-20T08:15:30Z',
        '20/Nov/2026:08:15:30 +1401': null,
        '20/Nov/2026:08:15:30 +99:99': null,
        '20/Nov/2026:08:15:30 -0060': null,
        '20/Nov/2026:08:15:30 Europe/Berlin': null,
        '20/Nov/2026:08:15:30 UTC': null,
        '20/Nov/2026:08:15:30': null,
        '31/Nov/2026:08:15:30 +0000': null,
      }),
    ).toEqual([])
    expect(
      await wrong("strptime(x, '%a %b %d %H:%M:%S %z %Y')", text, {
        'Fri Nov 20 08:15:30 +0100 2026': '2026-11-20T07:15:30Z',
        'Fri Nov 20 08:15:30 Z 2026': '2026-11-20T08:15:30Z',
        'Fri Nov 20 08:15:30 +1500 2026': null,
      }),
    ).toEqual([])
  })

  test('is NULL unless the whole text is a time that a column can have', async () => {
    expect(
      await wrong("strptime(x, '%Y-%m-%d %H:%M:%S.%f')", text, {
        '2026-11-20 08:15:30.123456': '2026-11-20T08:15:30.123456Z',
        '1969-12-31 23:59:59.5': '1969-12-31T23:59:59.5Z',
        '0001-01-01 00:00:00.0': '0001-01-01T00:00:00Z',
        '0000-12-31 23:59:59.9': null,
        '10000-01-01 00:00:00.0': null,
        '2026-11-20 24:00:00.0': null,
        '2026-11-20 08:15:30.0 and more': null,
        '２０２６-11-20 08:15:30.0': null,
        infinity: null,
        ' -Infinity': null,
        epoch: null,
        '': null,
        '🙂': null,
        '\\xff\\u0000\0': null,
        [`2026-11-20 08:15:30.${'1'.repeat(100_000)}`]: null,
      }),
    ).toEqual([])
    expect(await wrong("strptime(x, '%Y-%m-%d %z')", text, { infinity: null, epoch: null, ' -Infinity': null })).toEqual([])
  })

  test('does not depend on the other records', async () => {
    const offset = fc.tuple(fc.constantFrom('+', '-'), fc.integer({ min: 0, max: 13 }), fc.integer({ min: 0, max: 59 }))
    await fc.assert(
      fc.asyncProperty(fc.array(offset, { minLength: 20, maxLength: 20 }), async (offsets) => {
        const sent = offsets.map(([sign, hours, minutes]) => {
          const zone = `${sign}${String(hours).padStart(2, '0')}:${String(minutes).padStart(2, '0')}`
          return JSON.stringify({ x: `2026-11-20T08:15:30${zone}`, t: `2026-11-20T08:15:30${zone}` })
        })
        const of = [...text, { name: 't', type: 'TIMESTAMP', path: '$.t' }]
        expect(await notAccepting(["strptime(x, '%Y-%m-%dT%H:%M:%S%z') = t"], of, sent, sent.length)).toEqual([])
      }),
      { numRuns: runs(3, 30) },
    )
  })

  test.each([
    ['strptime(s, s) = t', 'the format of "strptime" must be a text constant'],
    ['strptime(s, 5) = t', 'the format of "strptime" must be a text constant'],
    ['strptime(s) = t', '"strptime" takes text and a format, such as'],
    ["strptime(s, '%Y%Q') = t", 'a format cannot have %Q'],
    ["strptime(s, '%H:%M') = t", 'a format needs a year'],
    ["strptime(s, '%Y-%') = t", 'a format cannot end with a % alone: write %% for the character'],
    ["strptime(s, '%Y %Z') = t", 'names of zones are ambiguous: use %z for an offset, or at_zone(…)'],
    ["strptime(s, '%H.%n') = t", 'use %f'],
    ["strptime(s, '%Y%z%z') = t", 'one %z'],
    ["strptime(i, '%Y') = t", '"strptime" takes text, not a number: cast it, such as CAST("i" AS VARCHAR)'],
    ["strptime(t, '%Y') = t", 'not a TIMESTAMP'],
    [Array.from({ length: 33 }, () => "strptime(s, '%Y') = t").join(' OR '), 'reads text as a time too often'],
  ])('%s is rejected', async (condition, message) => {
    expect(await refusal(condition)).toContain(message)
  })
})

describe('the local time in a zone', () => {
  const timed: readonly Column[] = [
    { name: 'x', type: 'TIMESTAMP', path: '$.x' },
    { name: 'z', type: 'TIMESTAMPTZ', path: '$.x' },
  ]

  test('has the offset of the instant', async () => {
    expect(
      await wrong("at_zone(x, 'Europe/Berlin')", timed, {
        '2026-03-29T00:59:59Z': '2026-03-29T01:59:59Z',
        '2026-03-29T01:00:00Z': '2026-03-29T03:00:00Z',
        '2026-10-25T00:30:00Z': '2026-10-25T02:30:00Z',
        '2026-10-25T01:30:00Z': '2026-10-25T02:30:00Z',
        '9999-12-31T22:59:59.999999Z': '9999-12-31T23:59:59.999999Z',
        '9999-12-31T23:00:00Z': null,
        '': null,
      }),
    ).toEqual([])
    expect(await wrong("at_zone(x, 'America/New_York')", timed, { '0001-01-01T00:00:00Z': null })).toEqual([])
    expect(
      await wrong("date_trunc('day', at_zone(z, 'America/New_York'))", timed, { '2026-11-20T04:59:59Z': '2026-11-19T00:00:00Z' }),
    ).toEqual([])
  })

  test.each(['Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'UTC'])(
    'in %s is that of other programs',
    async (timeZone) => {
      const local = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
      const instants = fc.sample(fc.integer({ min: 0, max: 1_760_000_000 }), runs(200, 5_000))
      const sent = instants.map((seconds) =>
        JSON.stringify({ x: new Date(seconds * 1_000).toISOString(), local: local.format(seconds * 1_000) }),
      )
      const of = [...timed, { name: 'local', type: 'TIMESTAMP', path: '$.local' }]
      expect(await notAccepting([`at_zone(x, '${timeZone}') = local`], of, sent, sent.length)).toEqual([])
    },
  )

  test.each([
    [
      "at_zone(t, 'Europe/Berln') = t",
      `the time zone "Europe/Berln" is not known: write a name of the IANA database, such as 'Europe/Berlin'`,
    ],
    ["at_zone(t, 'europe/berlin') = t", "write 'Europe/Berlin'"],
    ["at_zone(t, 'utc') = t", "write 'UTC'"],
    ["at_zone(t, 'CST') = t", 'is not known'],
    ["at_zone(t, '+02:00') = t", 'is not known'],
    ["at_zone(t, '''; --') = t", 'is not known'],
    ["at_zone(t, '') = t", 'is not known'],
    ['at_zone(t, s) = t', 'the zone of "at_zone" must be a text constant'],
    ['at_zone(t) = t', '"at_zone" takes a time and a zone, such as'],
    ["at_zone(i, 'UTC') = t", 'takes a TIMESTAMP, not a number: make one, such as epoch_s("i")'],
    ["at_zone(s, 'UTC') = t", 'takes a TIMESTAMP, not text: make one, such as CAST("s" AS TIMESTAMP)'],
    ["at_zone(t::DATE, 'UTC') = t", 'takes a TIMESTAMP, not a DATE'],
    ["at_zone('yesterday', 'UTC') = t", 'is not of type TIMESTAMP'],
  ])('%s is rejected', async (condition, message) => {
    expect(await refusal(condition)).toContain(message)
  })
})
