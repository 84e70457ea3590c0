import { expect } from 'vitest'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import { insertEndpoint, listEndpointFacts, listEndpoints } from '#store/endpoints/endpoints.ts'
import { anAccount, anEndpoint, aStoredEndpoint, describeStores, t0 } from './fixtures.ts'

const code = (name: string) => expect.objectContaining({ code: name })

describeStores('endpoints', (test) => {
  test('have unique labels in a region', async ({ store, account }) => {
    const { label } = await aStoredEndpoint(store, account)
    await aStoredEndpoint(store, account, { label, region: 'fra', name: 'other' })
    await expect(aStoredEndpoint(store, account, { label })).rejects.toThrow(code('conflict'))
  })

  test('a list pages newest first, without gaps or repetitions', async ({ store, account }) => {
    // Several in one millisecond: the order must be stable.
    for (let made = 0; made < 7; made += 1)
      await inNewEpoch(store, (db) => insertEndpoint(db, account, anEndpoint(), t0 + Math.floor(made / 3)))
    await aStoredEndpoint(store, await anAccount(store))
    const pages = []
    for (let offset = 0; offset < 7; offset += 2) {
      pages.push(...(await listEndpoints(store.db, account, { limit: 2, offset })).items)
    }
    const all = await listEndpointFacts(store.db, account)
    expect(pages).toMatchObject(all)
    expect(new Set(all.map(({ id }) => id)).size).toBe(7)
    expect(all.map(({ created_at }) => created_at)).toEqual(
      all
        .map(({ created_at }) => created_at)
        .toSorted()
        .reverse(),
    )
  })
})
