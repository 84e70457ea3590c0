import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../test/support/thorough.ts'
import { FairShares, type Member } from './fair-shares.ts'

const total = 1_000

/** Accounts with weights and numbers of endpoints, as members named `<account>/<endpoint>`. */
const members = fc
  .array(fc.record({ weight: fc.integer({ min: 0, max: 5 }), endpoints: fc.integer({ min: 1, max: 4 }) }), {
    minLength: 1,
    maxLength: 5,
  })
  .map((accounts) =>
    accounts.flatMap(({ weight, endpoints }, account) =>
      Array.from(
        { length: endpoints },
        (_, endpoint): Member => ({ account: `${account}`, weight, name: `${account}/${endpoint}` }),
      ),
    ),
  )

/** Takes that many units for one of the members, or releases that part of what it has. */
const step = fc.record({
  member: fc.nat(19),
  units: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 51, max: 600 })),
  isRelease: fc.boolean(),
})
const steps = fc.array(step, { minLength: 1, maxLength: 60 })
const numRuns = runs(300, 20_000)

/** Calls `afterTake` after each attempt to take. */
function play(
  shares: FairShares,
  of: readonly Member[],
  plan: readonly { readonly member: number; readonly units: number; readonly isRelease: boolean }[],
  afterTake: (attempt: {
    before: number
    units: number
    guarantee: number
    bound: string | undefined
    others: number
  }) => void = () => undefined,
): void {
  for (const { member, units, isRelease } of plan) {
    const share = shares.share(of[member % of.length]?.name ?? '')
    if (isRelease) share.release(Math.min(units, share.used))
    else {
      const [before, others] = [share.used, shares.used - share.used]
      const bound = share.take(units)
      afterTake({ before, units, guarantee: share.guarantee, bound, others })
    }
  }
}

describe('whatever happens', () => {
  test('whoever is within its guarantee is never refused, and the total is never exceeded', () => {
    fc.assert(
      fc.property(members, steps, (of, plan) => {
        const shares = new FairShares(total)
        shares.configure(of)
        play(shares, of, plan, ({ before, units, guarantee, bound }) => {
          if (before + units <= guarantee) expect(bound).toBeUndefined()
          expect(shares.used).toBeLessThanOrEqual(total)
        })
      }),
      { numRuns },
    )
  })

  test('a refusal takes nothing; what is used is the sum; and all of it can be released', () => {
    fc.assert(
      fc.property(members, steps, members, steps, (first, plan, second, more) => {
        const shares = new FairShares(total)
        const used = () => [...first, ...second].reduce((names, { name }) => names.add(name), new Set<string>())
        const sumOfUsed = () => [...used()].reduce((sum, name) => sum + shares.share(name).used, 0)
        for (const [of, steps] of [
          [first, plan],
          [second, more],
        ] as const) {
          shares.configure(of)
          play(shares, of, steps, ({ before, units, bound, others }) => {
            expect(shares.used).toBe(others + before + (bound === undefined ? units : 0))
            // A new configuration may leave the shares above the total of the guarantees, but no `take` goes above the total.
            expect(shares.used).toBeLessThanOrEqual(total)
          })
          expect(sumOfUsed()).toBe(shares.used)
        }
        for (const name of used()) shares.share(name).release(shares.share(name).used)
        expect([shares.used, shares.poolUsed]).toEqual([0, 0])
        play(shares, second, more, ({ before, units, guarantee, bound }) => {
          if (before + units <= guarantee) expect(bound).toBeUndefined()
        })
      }),
      { numRuns },
    )
  })

  test('an account that uses nothing yet finds room beyond its guarantee, however greedy the others are', () => {
    fc.assert(
      fc.property(members, steps, (of, plan) => {
        const [victim, ...others] = of.filter(({ name }) => name.endsWith('/0'))
        if (victim === undefined || others.length === 0) return
        const shares = new FairShares(total)
        shares.configure(of)
        const greedy = of.filter(({ account }) => account !== victim.account)
        play(
          shares,
          greedy,
          plan.map((one) => ({ ...one, isRelease: false })),
        )
        // Each of them leaves as much of the pool free as it uses, so at least half of what it found.
        const free = shares.pool - shares.poolUsed
        expect(free * 2 ** others.length).toBeGreaterThanOrEqual(shares.pool)
        const share = shares.share(victim.name)
        expect(share.take(share.guarantee)).toBeUndefined()
        expect(share.take(Math.floor(free / 4))).toBeUndefined()
      }),
      { numRuns },
    )
  })
})

describe('a reserve for accounts that come later', () => {
  const reserve = 125
  const divided = total - reserve
  const of = (...accounts: readonly (readonly [account: string, weight: number])[]): Member[] =>
    accounts.map(([account, weight]) => ({ account, weight, name: `${account}/0` }))
  const filled = (members: readonly Member[], account = 'a') => {
    const shares = new FairShares(total, { reserve })
    shares.configure(members)
    while (shares.share(`${account}/0`).take(1) === undefined);
    return shares
  }

  test('whoever is within its guarantee and uses no more than it leaves free is never refused, after any history', () => {
    const periods = fc.array(fc.tuple(members, steps), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(periods, (periods) => {
        const shares = new FairShares(total, { reserve })
        /** Accounts that took from the reserve since it was whole the last time. */
        const newcomers = new Set<string>()
        for (const [members, steps] of periods) {
          shares.configure(members)
          for (const one of steps) {
            const member = members[one.member % members.length]
            if (member === undefined) continue
            const account = shares.share(member.name).account
            const used = shares.used
            const ofAccount = account.used
            play(shares, [member], [one], ({ before, units, guarantee, bound }) => {
              const isWithin = before + units <= guarantee
              if (isWithin && ofAccount + units <= total - used - units) expect(bound).toBeUndefined()
              if (bound === undefined && shares.used > divided) newcomers.add(member.account)
            })
            if (shares.used <= divided) newcomers.clear()
            // Each of them left at least half of what it found.
            expect((total - shares.used) * 2 ** newcomers.size).toBeGreaterThanOrEqual(reserve)
          }
        }
      }),
      { numRuns },
    )
  })

  test('is kept by whoever is alone, and halved by each newcomer within its guarantee', () => {
    const accounts: [string, number][] = [['a', 1]]
    const shares = filled(of(...accounts))
    expect([shares.used, shares.share('a/0').boundOn(1)]).toEqual([divided, 'account'])
    const found = ['b', 'c', 'd'].map((newcomer) => {
      accounts.push([newcomer, 1])
      shares.configure(of(...accounts))
      const share = shares.share(`${newcomer}/0`)
      while (share.take(1) === undefined);
      expect([share.boundOn(1), shares.share('a/0').boundOn(1)]).toEqual(['node', 'account'])
      return share.used
    })
    expect(found).toEqual([62, 31, 16])
  })

  test('gives room to an account whose weight was raised after another one took its share', () => {
    const greedy = ['a', 'b', 'c', 'd']
    const shares = filled(of(['a', 1_000], ['b', 1], ['c', 1], ['d', 1], ['e', 1]))
    for (const account of greedy) while (shares.share(`${account}/0`).take(1) === undefined);
    const free = total - shares.used
    shares.configure(of(['a', 1], ['b', 1], ['c', 1], ['d', 1], ['e', 1_000]))
    const share = shares.share('e/0')
    expect(share.guarantee).toBeGreaterThan(free)
    while (share.take(1) === undefined);
    expect(share.used).toBe(Math.floor(free / 2))
    for (const account of greedy) expect(shares.share(`${account}/0`).boundOn(1)).toBe('account')
  })

  test('is not for whoever is above its guarantee', () => {
    const shares = filled(of(['a', 1], ['b', 1]))
    const share = shares.share('b/0')
    while (share.take(1) === undefined);
    expect(share.boundOn(1)).toBe('account')
    shares.share('a/0').force(divided - shares.used)
    expect([shares.used, share.boundOn(1)]).toEqual([divided, 'account'])
  })
})

describe('how much a busy endpoint may use while nobody else uses anything', () => {
  const most = (of: readonly Member[], name = 'a/0') => {
    const shares = new FairShares(total)
    shares.configure(of)
    while (shares.share(name).take(1) === undefined) expect(shares.used).toBeLessThanOrEqual(total)
    return shares.used
  }
  const endpoints = (account: string, count: number, weight = 1): Member[] =>
    Array.from({ length: count }, (_, index) => ({ account, weight, name: `${account}/${index}` }))

  test.each([
    ['everything, if it is the only one', endpoints('a', 1), 1_000],
    ['its guarantee and half of the pool, if there is another account', [...endpoints('a', 1), ...endpoints('b', 1)], 500],
    ['more with more weight', [...endpoints('a', 1, 9), ...endpoints('b', 1)], 700],
    ['four fifths of what its account may, beside its guarantee', endpoints('a', 2), 650],
    ['the same of many', endpoints('a', 100), 405],
  ])('%s', (_, of, expected) => {
    expect(most(of)).toBe(expected)
  })
})

describe('which bound refuses', () => {
  const two: Member[] = ['a', 'b'].flatMap((account) =>
    [0, 1].map((index) => ({ account, weight: 1, name: `${account}/${index}` })),
  )
  const filled = (...names: readonly string[]) => {
    const shares = new FairShares(total)
    shares.configure(two)
    for (const name of names) while (shares.share(name).take(1) === undefined);
    return shares
  }

  test('the share of the endpoint, then that of the account, then the node', () => {
    const shares = filled('a/0')
    expect(shares.share('a/0').boundOn(1)).toBe('endpoint')
    while (shares.share('a/1').take(1) === undefined);
    shares.share('a/1').force(100)
    expect(shares.share('a/1').boundOn(1)).toBe('account')
    expect(shares.share('b/0').boundOn(1)).toBeUndefined()
    expect(shares.share('b/0').boundOn(total)).toBe('node')
  })

  test('half of what is allowed is said before it is used up', () => {
    const shares = new FairShares(total)
    shares.configure([{ account: 'a', weight: 1, name: 'a/0' }])
    const share = shares.share('a/0')
    share.force(500)
    expect(share.isHalfUsed).toBe(false)
    share.force(1)
    expect(share.isHalfUsed).toBe(true)
  })
})

describe('a new configuration', () => {
  const alone: Member[] = [{ account: 'a', weight: 1, name: 'a/0' }]
  const both: Member[] = [...alone, { account: 'b', weight: 1, name: 'b/0' }]

  test('revokes nothing, but lets nobody grow who is above its new share', () => {
    const shares = new FairShares(total)
    shares.configure(alone)
    shares.share('a/0').take(900)
    shares.configure(both)
    expect([shares.used, shares.share('a/0').boundOn(1)]).toEqual([900, 'account'])
    expect(shares.share('b/0').take(100)).toBeUndefined()
    expect(shares.share('b/0').take(1)).toBe('node')
    shares.share('a/0').release(900)
    expect(shares.share('b/0').take(150)).toBeUndefined()
  })

  test('what a removed endpoint still holds counts for its account, so that new endpoints bring no more room', () => {
    const shares = new FairShares(total)
    shares.configure(both)
    while (shares.share('a/0').take(1) === undefined);
    shares.configure([
      { account: 'a', weight: 1, name: 'a/1' },
      { account: 'b', weight: 1, name: 'b/0' },
    ])
    shares.share('a/1').take(shares.share('a/1').guarantee)
    expect(shares.share('a/1').take(1)).toBe('account')
    expect(shares.share('b/0').take(shares.share('b/0').guarantee)).toBeUndefined()
  })

  test('an account that fills endpoint after endpoint and deletes them gets no more than its share', () => {
    const shares = new FairShares(total)
    const victim: Member = { account: 'b', weight: 1, name: 'b/0' }
    for (let index = 0; index < 20; index += 1) {
      shares.configure([{ account: 'a', weight: 1, name: `a/${index}` }, victim])
      while (shares.share(`a/${index}`).take(1) === undefined);
    }
    expect(shares.used).toBe(500)
    expect(shares.share('b/0').take(375)).toBeUndefined()
    // Once what the deleted ones hold is gone, the guarantee is free again.
    for (let index = 0; index < 19; index += 1) shares.share(`a/${index}`).release(shares.share(`a/${index}`).used)
    expect(shares.isOutdated).toBe(true)
    shares.configure([{ account: 'a', weight: 1, name: 'a/19' }, victim])
    expect([shares.isOutdated, shares.share('a/19').guarantee]).toEqual([false, 250])
  })

  test('adopts what was found before the first one', () => {
    const shares = new FairShares(total)
    shares.share('a/0').force(300)
    shares.configure(both)
    expect([shares.share('a/0').used, shares.poolUsed]).toEqual([300, 50])
    expect(shares.largest(5)).toEqual([['a', 300]])
  })
})
