import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { type Allowance, type Grant, removeEndedWindows, takeAllowances } from '#store/accounts/rate-windows.ts'
import { type Db, openStore } from '#store/store.ts'
import { newStore, postgresUrl, type TestStore } from '../support/databases.ts'

const allowance = { caller: 'key 1', max: 100 }

async function takeAllowance(db: Db, asked: Allowance): Promise<Grant> {
  const [grant] = await takeAllowances(db, [asked], 60_000)
  return must(grant, 'a grant')
}

/** Ends all windows without waiting for it. */
const endWindows = ({ db }: TestStore) => sql`update rate_windows set ends_at = 1`.execute(db)

describe.skipIf(postgresUrl === undefined)('windows of rate limits (skipped without INLET_TEST_POSTGRES)', () => {
  test('grants become smaller, add up to the limit, and end there', async () => {
    await using store = await newStore('postgres')
    const grants: number[] = []
    for (let granted = 1; granted > 0; grants.push(granted)) granted = (await takeAllowance(store.db, allowance)).granted
    expect(grants.slice(0, 3)).toEqual([12, 11, 9])
    expect(grants.reduce((sum, granted) => sum + granted)).toBe(100)
    expect(await takeAllowance(store.db, allowance)).toEqual({
      caller: 'key 1',
      granted: 0,
      taken: 100,
      endsInMs: expect.any(Number),
    })
  })

  test('concurrent processes never get more than the limit together', async () => {
    await using store = await newStore('postgres')
    const stores = [await openStore(store.url), await openStore(store.url), await openStore(store.url)]
    const grants = await Promise.all(
      Array.from({ length: 90 }, (_, index) => takeAllowance((stores[index % 3] ?? store).db, allowance)),
    )
    expect(grants.reduce((sum, { granted }) => sum + granted, 0)).toBe(100)
    await Promise.all(stores.map((each) => each.close()))
  })

  test('concurrent queries for the same callers in another order do not collide, and each caller has its own limit', async () => {
    await using store = await newStore('postgres')
    const many = Array.from({ length: 200 }, (_, index) => ({ caller: `address ${index}`, max: index + 1 }))
    const rounds = await Promise.all(
      Array.from({ length: 10 }, (_, round) => takeAllowances(store.db, round % 2 === 0 ? many : many.toReversed(), 60_000)),
    )
    const sums = Map.groupBy(rounds.flat(), ({ caller }) => caller)
    const granted = (caller: string) => (sums.get(caller) ?? []).reduce((sum, grant) => sum + grant.granted, 0)
    expect(many.filter(({ caller, max }) => granted(caller) > max)).toEqual([])
    expect(granted('address 7')).toBe(8)
  })

  test('the first request after the end begins a new window', async () => {
    await using store = await newStore('postgres')
    await takeAllowance(store.db, allowance)
    await endWindows(store)
    const { taken, endsInMs } = await takeAllowance(store.db, allowance)
    expect(taken).toBe(12)
    expect(endsInMs).toBe(60_000)
  })

  test('a lower limit than the one before grants nothing more', async () => {
    await using store = await newStore('postgres')
    await takeAllowance(store.db, allowance)
    expect(await takeAllowance(store.db, { ...allowance, max: 5 })).toMatchObject({ granted: 0, taken: 12 })
  })

  test('callers do not affect each other, and windows that are over are removed', async () => {
    await using store = await newStore('postgres')
    await takeAllowance(store.db, allowance)
    await endWindows(store)
    expect(await takeAllowance(store.db, { ...allowance, caller: 'key 2', max: 1 })).toMatchObject({ granted: 1, taken: 1 })
    expect(await removeEndedWindows(store.db)).toBe(1)
    expect(await removeEndedWindows(store.db)).toBe(0)
  })
})
