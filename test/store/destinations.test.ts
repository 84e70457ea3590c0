import { expect } from 'vitest'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import {
  claimValidation,
  getDestination,
  insertDestination,
  listBucketAccounts,
  recordValidation,
  updateDestination,
} from '#store/endpoints/destinations.ts'
import { transact } from '#store/store.ts'
import { aDestination, anAccount, aStoredDestination, describeStores, t0 } from './fixtures.ts'

const code = (name: string) => expect.objectContaining({ code: name })

describeStores('destinations', (test) => {
  test('the accounts of a bucket are listed, the first one first', async ({ store }) => {
    const ids: string[] = []
    for (const [index, bucket] of ['lake', 'pond', 'lake', 'lake'].entries()) {
      const { external_id } = await insertDestination(store.db, await anAccount(store), aDestination({ bucket }), t0 - index)
      ids.push(external_id)
    }
    expect(await listBucketAccounts(store.db, 'lake')).toEqual([ids[3], ids[2], ids[0]])
    expect(await listBucketAccounts(store.db, 'sea')).toEqual([])
  })

  test('a validation is claimed once in 30 seconds', async ({ store, account }) => {
    const { id } = await aStoredDestination(store, account)
    const claim = (now: number) => transact(store, (db) => claimValidation(db, account, id, now))
    expect(await claim(t0)).toMatchObject({ destination: { id }, revision: 1 })
    await expect(claim(t0)).rejects.toThrow(expect.objectContaining({ code: 'too_many_requests', retryAfterSeconds: 30 }))
    await expect(claim(t0 + 29_001)).rejects.toThrow(expect.objectContaining({ retryAfterSeconds: 1 }))
    expect(await claim(t0 + 30_000)).toMatchObject({ revision: 1 })
    // A clock slightly behind still throttles. A claim from a clock an hour ahead does not block for an hour.
    await expect(claim(t0)).rejects.toThrow(expect.objectContaining({ retryAfterSeconds: 30 }))
    expect(await claim(t0 + 3_600_000)).toMatchObject({ revision: 1 })
    expect(await claim(t0 + 40_000)).toMatchObject({ revision: 1 })
    await expect(claim(t0 + 41_000)).rejects.toThrow(code('too_many_requests'))
  })

  test('the result of a validation is ignored if the settings changed meanwhile', async ({ store, account }) => {
    const { id } = await aStoredDestination(store, account)
    const { revision } = await transact(store, (db) => claimValidation(db, account, id, t0))
    await inNewEpoch(store, (db) => updateDestination(db, account, id, { bucket: 'other' }, t0 + 1))
    expect(await recordValidation(store.db, account, id, { revision, error: null }, t0 + 2)).toBe(false)
    expect(await getDestination(store.db, account, id)).toMatchObject({ status: 'pending', validated_at: null })
  })

  test('text with U+0000 is rejected as a client error', async ({ store, account }) => {
    const bad = insertDestination(store.db, account, aDestination({ name: 'a\0b' }), t0)
    await expect(bad).rejects.toThrow(code('validation_error'))
  })

  test('every other character is stored unchanged', async ({ store, account }) => {
    const name = `é 漢 🜁 ' " \\ % _ \u0001 \u202e`
    const { id } = await insertDestination(store.db, account, aDestination({ name }), t0)
    expect((await getDestination(store.db, account, id)).name).toBe(name)
  })
})
