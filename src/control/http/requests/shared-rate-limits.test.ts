import { describe, expect, test } from 'vitest'
import type { Allowance, Grant } from '#store/accounts/rate-windows.ts'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { SharedRateLimits } from './shared-rate-limits.ts'

const allowance: Allowance = { caller: 'key 1', max: 10 }

type Part = Omit<Grant, 'caller'>

/** Grants in the manner of the database: `parts` are those that this process gets, one query after the other. */
function limitsOf(parts: readonly Part[]) {
  const clock = new ManualClock()
  const asked: (readonly string[])[] = []
  const take = async (allowances: readonly Allowance[]) => {
    const part = parts[asked.length]
    asked.push(allowances.map(({ caller }) => caller))
    if (part === undefined) throw new Error('the database is unreachable')
    return allowances.map(({ caller }) => ({ caller, ...part }))
  }
  return { clock, limits: new SharedRateLimits({ take, clock }), asked }
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
    expect(asked).toHaveLength(3)
  })

  test('callers that come during a query share the next one, each with a grant of its own', async () => {
    const part = { granted: 1, taken: 1, endsInMs: 30_000 }
    const { limits, asked } = limitsOf([part, part])
    const callers = ['a', 'b', 'b', 'c']
    const counted = await Promise.allSettled(callers.map((caller) => limits.count({ caller, max: 1 })))
    expect(asked).toEqual([['a'], ['b', 'c']])
    expect(counted.map((result) => result.status === 'fulfilled' && result.value.current)).toEqual([1, 1, 2, 1])
  })

  test('a caller without anything left asks again only in the next window', async () => {
    const { clock, limits, asked } = limitsOf([
      { granted: 0, taken: 10, endsInMs: 5_000 },
      { granted: 1, taken: 1, endsInMs: 60_000 },
    ])
    expect((await limits.count(allowance)).current).toBe(11)
    clock.advance(4_999)
    expect(await limits.count(allowance)).toEqual({ current: 11, ttl: 1 })
    expect(asked).toHaveLength(1)
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
