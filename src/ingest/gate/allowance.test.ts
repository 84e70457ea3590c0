import { describe, expect, test } from 'vitest'
import { dayMs } from '#lib/time-units.ts'
import { Allowance } from './allowance.ts'

const start = Date.UTC(2026, 10, 20, 12)
const roomy = { records_per_second: 1e9, bytes_per_day: 1e15 }
const anAllowance = (quotas: Partial<typeof roomy> = {}, nodes = 1) =>
  new Allowance('account', { ...roomy, ...quotas }, nodes, start)

const usage = (day: string, bytes: number, records: number) => ({
  day,
  bytes,
  records,
  records_per_second: 0,
  account_id: 'account',
})

describe('records a second', () => {
  test('are accepted up to the quota, again after a second, and after a pause not more', () => {
    const allowance = anAllowance({ records_per_second: 3 })
    const accepted = (nowMs: number) => {
      let records = 0
      while (allowance.take(1, nowMs) === undefined) records += 1
      return records
    }
    expect([start, start, start + 1_000, start + 60_000].map(accepted)).toEqual([3, 0, 3, 3])
    expect(allowance.exceeded(start + 60_000)).toBe('records_per_second')
  })

  test('a batch above the quota is accepted, and paid back before the next one', () => {
    const allowance = anAllowance({ records_per_second: 10 })
    expect(allowance.take(105, start)).toBeUndefined()
    const { message, retryAfterSeconds, quota } = allowance.rejection('records_per_second', start)
    expect({ retryAfterSeconds, quota }).toEqual({ retryAfterSeconds: 10, quota: 'records_per_second' })
    expect(message).toContain('10 records a second')
    expect(allowance.exceeded(start + 9_599)).toBe('records_per_second')
    expect(allowance.exceeded(start + 9_601)).toBeUndefined()
  })

  test('are divided among nodes, and every node accepts some', () => {
    const allowance = anAllowance({ records_per_second: 1 }, 4)
    expect([0, 1, 3_999, 4_000, 7_999].map((ms) => allowance.take(1, start + ms))).toEqual([
      ...[undefined, 'records_per_second', 'records_per_second', undefined, 'records_per_second'],
    ])
  })

  test('continue if the clock is set back', () => {
    const allowance = anAllowance({ records_per_second: 2 })
    expect(allowance.take(2, start)).toBeUndefined()
    expect(allowance.exceeded(start - 500_000)).toBe('records_per_second')
    expect(allowance.exceeded(start - 499_500)).toBeUndefined()
  })
})

describe('bytes a day', () => {
  test('end at the quota, over all nodes, and begin again at midnight UTC', () => {
    const allowance = anAllowance({ bytes_per_day: 100 })
    allowance.count(1, 40)
    expect(allowance.exceeded(start)).toBeUndefined()
    const [reported] = allowance.unreported(start, 1_000)
    allowance.acknowledge(reported ?? usage('', 0, 0), { account_id: 'account', day: '2026-11-20', bytes: 99 })
    expect(allowance.exceeded(start)).toBeUndefined()
    allowance.count(1, 1)
    expect(allowance.exceeded(start)).toBe('bytes_per_day')
    expect(allowance.rejection('bytes_per_day', start)).toMatchObject({ retryAfterSeconds: 43_200, quota: 'bytes_per_day' })
    expect(allowance.exceeded(start + dayMs / 2)).toBeUndefined()
  })

  test('apply a changed quota at once', () => {
    const allowance = anAllowance({ bytes_per_day: 100 })
    allowance.count(1, 100)
    allowance.configure({ ...roomy, bytes_per_day: 101 }, 1)
    expect(allowance.exceeded(start)).toBeUndefined()
    allowance.configure({ ...roomy, bytes_per_day: 0 }, 1)
    expect(allowance.exceeded(start)).toBe('bytes_per_day')
  })
})

describe('the report', () => {
  test('has absolute counters and the rate since the last one, until they are acknowledged', () => {
    const allowance = anAllowance()
    expect(allowance.unreported(start, 1_000)).toEqual([])
    allowance.count(30, 3_000)
    const first = { ...usage('2026-11-20', 3_000, 30), records_per_second: 15 }
    for (const _ of ['sent', 'sent again']) expect(allowance.unreported(start, 2_000)).toEqual([first])
    allowance.acknowledge(first, undefined)
    expect(allowance.unreported(start, 2_000)).toEqual([])
    allowance.count(10, 1_000)
    expect(allowance.unreported(start, 2_000)).toEqual([{ ...usage('2026-11-20', 4_000, 40), records_per_second: 5 }])
  })

  test('still has the day before, if it was not acknowledged', () => {
    const allowance = anAllowance()
    allowance.count(1, 10)
    expect(allowance.exceeded(start + dayMs)).toBeUndefined()
    allowance.count(2, 20)
    const both = allowance.unreported(start + dayMs, 1_000)
    expect(both).toMatchObject([usage('2026-11-20', 10, 1), usage('2026-11-21', 20, 2)].map(({ day, bytes }) => ({ day, bytes })))
    for (const one of both) allowance.acknowledge(one, undefined)
    expect(allowance.unreported(start + dayMs, 1_000)).toEqual([])
  })

  test('has each day once, if the clock jumps to another day and back', () => {
    const allowance = anAllowance()
    for (const jumpMs of [0, 2 * dayMs, 0]) {
      expect(allowance.exceeded(start + jumpMs)).toBeUndefined()
      allowance.count(1, 10)
    }
    const days = allowance.unreported(start, 1_000).map(({ day, bytes }) => [day, bytes])
    expect(days).toEqual([
      ['2026-11-22', 10],
      ['2026-11-20', 20],
    ])
  })
})
