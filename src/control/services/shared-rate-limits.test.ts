import { describe, expect, test } from 'vitest'
import type { Allowance, Grant } from '#store/rate-windows.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { SharedRateLimits } from './shared-rate-limits.ts'

const allowance: Allowance = { caller: 'key 1', max: 10, windowMs: 60_000 }

/** Grants in the manner of the database: `grants` are the parts that this process gets, one after the other. */
function limitsOf(grants: readonly Grant[]) {
  const clock = new ManualClock()
  let asked = 0
  const take = async () => {
    const grant = grants[asked++]
    if (grant === undefined) throw new Error('the database is unreachable')
    return grant
  }
  return { clock, limits: new SharedRateLimits({ take, clock }), asked: () => asked }
}

describe('shared rate limits', () => {
  test('requests at the same time share one grant, and nobody is admitted without one', async () => {
    const { limits, asked } = limitsOf([
      { granted: 2, taken: 8, endsInMs: 30_000 },
      { granted: 1, taken: 9, endsInMs: 30_000 },
      { granted: 0, taken: 10, endsInMs: 30_000 },
    ])
    const counted = await Promise.all(Array.from({ length: 6 }, () => limits.count(allowance)))
    expect(counted.map(({ current }) => current)).toEqual([7, 8, 9, 11, 11, 11])
    expect(counted.every(({ ttl }) => ttl === 30_000)).toBe(true)
    expect(asked()).toBe(3)
  })

  test('a caller without anything left asks again only in the next window', async () => {
    const { clock, limits, asked } = limitsOf([
      { granted: 0, taken: 10, endsInMs: 5_000 },
      { granted: 1, taken: 1, endsInMs: 60_000 },
    ])
    expect((await limits.count(allowance)).current).toBe(11)
    clock.advance(4_999)
    expect(await limits.count(allowance)).toEqual({ current: 11, ttl: 1 })
    expect(asked()).toBe(1)
    clock.advance(1)
    expect(await limits.count(allowance)).toEqual({ current: 1, ttl: 60_000 })
  })

  test('what is left of a grant ends with its window', async () => {
    const { clock, limits } = limitsOf([
      { granted: 5, taken: 5, endsInMs: 1_000 },
      { granted: 1, taken: 9, endsInMs: 60_000 },
    ])
    expect((await limits.count(allowance)).current).toBe(1)
    clock.advance(1_000)
    expect((await limits.count(allowance)).current).toBe(9)
  })

  test('a failure of the database fails the requests that wait for it, and no later ones', async () => {
    const { limits } = limitsOf([])
    const both = await Promise.allSettled([limits.count(allowance), limits.count(allowance)])
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    await expect(limits.count(allowance)).rejects.toThrow('the database is unreachable')
  })
})
