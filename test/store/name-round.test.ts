import { expect } from 'vitest'
import { newId, newLabel } from '#model/id.ts'
import { NameRound } from '#naming/checks/name-round.ts'
import { markProvisioned } from '#store/endpoints/endpoints.ts'
import { listEndpointsToLookUp } from '#store/naming/dns-checks.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { anAccount, aStoredEndpoint, describeStores, t0 } from './fixtures.ts'

const count = 900

describeStores('rounds of look-ups', (test) => {
  test('give each name a turn within a few ticks unless fewer are allowed, and a new endpoint one in each', async ({ store }) => {
    const account_id = await anAccount(store)
    const row = { account_id, region: 'loc', since_epoch: 0, desired_state: 'active', created_at: t0 }
    const labels = Array.from({ length: count }, () => newLabel(12))
    const values = labels.map((label) => ({ ...row, id: newId(), label, name: label }))
    for (let start = 0; start < count; start += 300)
      await store.db
        .insertInto('endpoints')
        .values(values.slice(start, start + 300))
        .execute()
    const all = (await listEndpointsToLookUp(store.db, '', count + 1)).map(({ id }) => id)
    expect(all).toHaveLength(count)
    await markProvisioned(store.db, all, t0)
    const clock = new ManualClock()
    /** The sizes of so many ticks, a second after each other, and which endpoints had their turn how often. */
    const run = async (round: NameRound, ticks: number) => {
      const sizes: number[] = []
      const turns = new Map<string, number>()
      for (let tick = 0; tick < ticks; tick++) {
        const endpoints = await round.next(store.db)
        sizes.push(endpoints.length)
        for (const { id } of endpoints) turns.set(id, (turns.get(id) ?? 0) + 1)
        clock.advance(1_000)
      }
      return { sizes, turns }
    }
    const round = new NameRound({ namesMax: 2_500, clock })
    const { sizes, turns } = await run(round, 8)
    expect(sizes).toEqual([226, 226, 226, 222, 226, 226, 226, 222])
    expect([turns.size, new Set(turns.values())]).toEqual([count, new Set([2])])

    const few = await run(new NameRound({ namesMax: 100, clock }), 11)
    expect([few.turns.size, Math.max(...few.sizes)]).toEqual([count, 100])

    const fresh = await aStoredEndpoint(store, account_id, { region: 'loc' })
    expect((await run(round, 4)).turns.get(fresh.id)).toBe(4)
    const seldom = await run(new NameRound({ namesMax: 1, clock }), 3)
    expect(seldom.sizes).toEqual([1, 1, 1])
  })

  test('begin four seconds after each other at the earliest', async ({ store }) => {
    const { id } = await aStoredEndpoint(store, await anAccount(store))
    await markProvisioned(store.db, [id], t0)
    const clock = new ManualClock()
    const round = new NameRound({ namesMax: 2_500, clock })
    const sizes: number[] = []
    for (let tick = 0; tick < 9; tick++, clock.advance(1_000)) sizes.push((await round.next(store.db)).length)
    expect(sizes).toEqual([1, 0, 0, 0, 1, 0, 0, 0, 1])
  })
})
