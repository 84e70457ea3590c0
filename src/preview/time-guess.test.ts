import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../test/support/thorough.ts'
import { guessTime } from './time-guess.ts'

const at = Date.UTC(2026, 10, 20, 8, 15, 30)
const formatOf = (name: string, ...values: readonly string[]) => guessTime(name, values)?.format
const many = (first: number, step: number) => Array.from({ length: 12 }, (_, index) => String(first + index * step))

describe('numbers since 1970', () => {
  test.each([
    ['ts', '1795162530', 'epoch_s'],
    ['createdAt', '1795162530.25', 'epoch_s'],
    ['timestamp', '1795162530500', 'epoch_ms'],
    ['load_timestamp', '1445680800424', 'epoch_ms'],
    ['eventTime', '1795162530500123', 'epoch_us'],
    ['time', '1795162530500123456', 'epoch_ns'],
  ])('%s: %s is %s', (name, value, format) => {
    expect(formatOf(name, value)).toBe(format)
  })

  test('need a name or, for milliseconds and microseconds, values that are close together', () => {
    expect(formatOf('x', '1795162530500')).toBeUndefined()
    expect(formatOf('x', ...many(at, 60_000))).toBe('epoch_ms')
    expect(formatOf('x', ...many(at * 1_000, 60_000_000))).toBe('epoch_us')
    expect(formatOf('x', ...many(at / 1_000, 60))).toBeUndefined()
    // Years apart.
    expect(formatOf('x', ...many(Date.UTC(2001, 0), 40 * 86_400_000))).toBeUndefined()
  })

  test.each([
    ['push_id', ['1795162530']],
    ['id', many(at, 1_000)],
    ['phone', ['1795162530', '2125551234']],
    ['time_count', ['1795162530500']],
    ['bytes', ['1795162530']],
    ['timeout', ['1795162530500']],
    // Twitter's ids have the time in their first bits.
    ['tweet', ['1445680800424000000', '1445680800424000321']],
    ['at', ['1795162530500', '0']],
    ['at', ['1795162530', '1795162530500']],
    ['at', ['17951625']],
    ['at', ['-1795162530']],
    ['at', ['1e12']],
    ['at', ['4102444800000']],
    ['at', ['946684799999']],
  ])('%s of %j is no time', (name, values) => {
    expect(formatOf(name, ...values)).toBeUndefined()
  })

  test('says why', () => {
    expect(guessTime('ts', [String(at), String(at + 86_400_000)])?.reason).toBe(
      'has milliseconds since 1970: all values are from 2026-11-20 to 2026-11-21, and its name says that it is a time',
    )
    expect(guessTime('x', many(at, 1_000))?.reason).toMatch(/on 2026-11-20, and the values are close together$/)
  })
})

describe('text in a format', () => {
  test.each([
    ['20/Nov/2026:08:15:30 +0100', '%d/%b/%Y:%H:%M:%S %z'],
    ['Fri, 20 Nov 2026 08:15:30 +0000', '%a, %d %b %Y %H:%M:%S %z'],
    ['Fri, 20 Nov 2026 08:15:30 GMT', '%a, %d %b %Y %H:%M:%S GMT'],
    ['Fri Nov 20 08:15:30 +0000 2026', '%a %b %d %H:%M:%S %z %Y'],
    ['Fri Nov 20 08:15:30 2026', '%a %b %d %H:%M:%S %Y'],
    ['2026/11/20 08:15:30 -0800', '%Y/%m/%d %H:%M:%S %z'],
    ['2026/11/20 08:15:30', '%Y/%m/%d %H:%M:%S'],
    ['20/11/2026 08:15', '%d/%m/%Y %H:%M'],
    ['11/20/2026 08:15', '%m/%d/%Y %H:%M'],
    ['20.11.2026', '%d.%m.%Y'],
    ['20261120T081530Z', '%Y%m%dT%H%M%SZ'],
  ])('%s is %s, whatever the name', (value, format) => {
    expect(formatOf('x', value)).toBe(format)
  })

  test('digits alone need a name, or many values', () => {
    expect(formatOf('x', '20261120')).toBeUndefined()
    expect(formatOf('date', '20261120')).toBe('%Y%m%d')
    expect(formatOf('x', ...many(20261110, 1))).toBe('%Y%m%d')
    expect(formatOf('ts', '20261120081530')).toBe('%Y%m%d%H%M%S')
    expect(formatOf('order_number', '20261120')).toBeUndefined()
  })

  test('the day and the month are told apart by a value, or not at all', () => {
    expect(formatOf('x', '05/06/2026', '07/08/2026')).toBeUndefined()
    expect(guessTime('x', ['05/06/2026', '25/08/2026'])).toEqual({
      format: '%d/%m/%Y',
      reason: 'has times in the format %d/%m/%Y: all values are written so, and "25/08/2026" shows which part is the day',
    })
    expect(formatOf('x', '05/06/2026', '08/25/2026')).toBe('%m/%d/%Y')
    expect(formatOf('x', '25/06/2026', '08/25/2026')).toBeUndefined()
  })

  test.each(['31/02/2026', '20/11/1926', '2026-11-20', 'yesterday', '', '20.11.26', '99/99/2026'])('%s is no time', (value) => {
    expect(formatOf('date', value)).toBeUndefined()
  })
})

test('any values take a short time, and never throw', () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.array(fc.string({ unit: fc.constantFrom('0', '1', '2', '/', ':', ' ', '.', 'N') })),
      (name, values) => {
        guessTime(name, values)
      },
    ),
    { numRuns: runs(200, 5_000) },
  )
})
