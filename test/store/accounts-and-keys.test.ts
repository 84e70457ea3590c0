import { expect } from 'vitest'
import { newId } from '#model/id.ts'
import { findFirstAccount, getAccount, listSuspendedAccountIds, updateAccount } from '#store/accounts/accounts.ts'
import {
  findApiKeyByHash,
  findRevokedKey,
  insertApiKey,
  listApiKeys,
  listApiKeysRevokedSince,
  revokeApiKey,
} from '#store/accounts/api-keys.ts'
import { recordKeyUse } from '#store/accounts/key-use.ts'
import { insertSigningKey, listSigningKeys, removeSigningKeysBefore } from '#store/accounts/signing-keys.ts'
import { currentEpoch, inNewEpoch } from '#store/cluster/epoch.ts'
import type { TestStore } from '../support/databases.ts'
import { keyring } from '../support/keyring.ts'
import { aKey, anAccount, describeStores, iso, t0 } from './fixtures.ts'

async function keysOf({ db }: TestStore, account: string) {
  return (await listApiKeys(db, account, { limit: 50, offset: 0 })).items
}

describeStores('accounts', (test) => {
  test('the first account stays the first, even if the clock is set back', async ({ store }) => {
    expect(await findFirstAccount(store.db)).toBeUndefined()
    const first = await anAccount(store, t0)
    const second = await anAccount(store, t0 - 5)
    expect(await findFirstAccount(store.db)).toMatchObject({ id: first, status: 'active', created_at: iso(t0) })
    expect(await getAccount(store.db, second)).toMatchObject({ created_at: iso(t0 + 1) })
  })

  test('suspending and resuming keep everything else', async ({ store }) => {
    const [one, two] = [await anAccount(store), await anAccount(store)]
    const before = await getAccount(store.db, one)
    const set = (status: 'active' | 'suspended') => inNewEpoch(store, (db) => updateAccount(db, one, { status }))
    for (const _ of ['first', 'again']) expect(await set('suspended')).toEqual({ ...before, status: 'suspended' })
    expect(await listSuspendedAccountIds(store.db)).toEqual([one])
    expect(await getAccount(store.db, two)).toMatchObject({ status: 'active' })
    expect(await set('active')).toEqual(before)
    expect(await listSuspendedAccountIds(store.db)).toEqual([])
  })
})

describeStores('API keys', (test) => {
  test('the same key twice is a conflict', async ({ store, account }) => {
    const key = aKey(account)
    await inNewEpoch(store, (db) => insertApiKey(db, key, t0))
    await expect(inNewEpoch(store, (db) => insertApiKey(db, { ...aKey(account), hash: key.hash }, t0))).rejects.toThrow(
      expect.objectContaining({ code: 'conflict' }),
    )
  })

  test('a list is newest first, includes revoked keys, and has no hash', async ({ store, account }) => {
    const [older, newer] = [aKey(account), aKey(account)]
    await inNewEpoch(store, (db) => insertApiKey(db, older, t0))
    await inNewEpoch(store, (db) => insertApiKey(db, newer, t0 + 1))
    const other = await anAccount(store)
    await inNewEpoch(store, (db) => insertApiKey(db, aKey(other), t0))
    await inNewEpoch(store, (db) => revokeApiKey(db, account, older.id, { at: t0 + 2, endsAccess: false }))
    const { id, name, prefix, scopes } = older
    expect(await keysOf(store, account)).toEqual([
      expect.objectContaining({ id: newer.id, revoked_at: null }),
      {
        id,
        name,
        prefix,
        scopes,
        endpoint_ids: null,
        public: false,
        origins: null,
        created_at: iso(t0),
        last_used_at: null,
        revoked_at: iso(t0 + 2),
        access_ended_at: null,
        revocation: null,
      },
    ])
  })

  test('a use is recorded to the minute, and never set back', async ({ store, account }) => {
    const [used, unused] = [aKey(account), aKey(account)]
    for (const key of [used, unused]) await inNewEpoch(store, (db) => insertApiKey(db, key, t0))
    const epoch = await currentEpoch(store.db)
    for (const at of [t0 + 61_500, t0 + 90_000, t0]) await recordKeyUse(store.db, [used.id, newId()], at)
    expect(await findApiKeyByHash(store.db, used.hash)).toMatchObject({ last_used_at: iso(t0 + 60_000) })
    expect(await findApiKeyByHash(store.db, unused.hash)).toMatchObject({ last_used_at: null })
    expect(await currentEpoch(store.db)).toBe(epoch)
  })

  test('recently revoked keys are listed, with when their tokens end', async ({ store }) => {
    const [one, two] = [await anAccount(store), await anAccount(store)]
    const [active, lately, leaked, longAgo] = [aKey(two), aKey(one), aKey(one), aKey(one)]
    for (const key of [active, lately, leaked, longAgo]) await inNewEpoch(store, (db) => insertApiKey(db, key, t0))
    await inNewEpoch(store, (db) => revokeApiKey(db, one, lately.id, { at: t0 + 100, endsAccess: false }))
    await inNewEpoch(store, (db) => revokeApiKey(db, one, longAgo.id, { at: t0 + 50, endsAccess: false }))
    await inNewEpoch(store, (db) => revokeApiKey(db, one, leaked.id, { at: t0 + 200, endsAccess: true }))
    const ends = { id: lately.id, tokens_until: iso(t0 + 100 + 15 * 60_000) }
    expect(await listApiKeysRevokedSince(store.db, t0 + 100)).toEqual([ends, { id: leaked.id, tokens_until: null }])
    expect(await findRevokedKey(store.db, lately.id)).toEqual(ends)
    expect(await findRevokedKey(store.db, active.id)).toBeUndefined()
  })
})

describeStores('signing keys', (test) => {
  test('are listed newest first and removed by age', async ({ store }) => {
    for (const [kid, at] of [
      ['old', t0],
      ['new', t0 + 10],
      ['mid', t0 + 5],
    ] as const) {
      await inNewEpoch(store, (db) =>
        insertSigningKey(db, keyring, { kid, private_jwk: { kty: 'EC', d: kid }, created_at: iso(at) }),
      )
    }
    expect((await listSigningKeys(store.db, keyring)).map(({ kid }) => kid)).toEqual(['new', 'mid', 'old'])
    expect(await inNewEpoch(store, (db) => removeSigningKeysBefore(db, t0 + 5))).toBe(1)
    expect(await listSigningKeys(store.db, keyring)).toEqual([
      { kid: 'new', private_jwk: { kty: 'EC', d: 'new' }, created_at: iso(t0 + 10) },
      { kid: 'mid', private_jwk: { kty: 'EC', d: 'mid' }, created_at: iso(t0 + 5) },
    ])
  })
})

describeStores('the epoch', (test) => {
  test('increases by one, unless the transaction fails', async ({ store }) => {
    expect(await inNewEpoch(store, async (_db, epoch) => epoch)).toBe(1)
    const failing = inNewEpoch(store, async () => {
      throw new Error('on purpose')
    })
    await expect(failing).rejects.toThrow('on purpose')
    expect(await currentEpoch(store.db)).toBe(1)
  })

  test('concurrent callers each get a different one', async ({ store }) => {
    const epochs = await Promise.all(Array.from({ length: 20 }, () => inNewEpoch(store, async (_db, epoch) => epoch)))
    expect(epochs.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
  })

  test('is visible only together with its change', async ({ store, account }) => {
    const keys: number[] = []
    const change = async () => {
      for (let made = 0; made < 10; made += 1) {
        await inNewEpoch(store, (db) => insertApiKey(db, aKey(account), t0))
      }
    }
    const watch = async () => {
      for (let looked = 0; looked < 30; looked += 1) {
        const epoch = await currentEpoch(store.db)
        keys.push((await keysOf(store, account)).length - epoch)
      }
    }
    await Promise.all([change(), change(), watch(), watch()])
    // Reads the epoch first: every change up to it must be visible.
    expect(Math.min(...keys)).toBeGreaterThanOrEqual(0)
  })
})
