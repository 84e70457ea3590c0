import { expect } from 'vitest'
import { newJoinToken } from '#control/fleet/join-tokens.ts'
import {
  countJoin,
  insertJoinToken,
  listJoinTokens,
  lockJoinToken,
  removeJoinTokensExpiredBefore,
} from '#store/nodes/join-tokens.ts'
import { transact } from '#store/store.ts'
import type { TestStore } from '../support/databases.ts'
import { describeStores, t0 } from './fixtures.ts'

const hourMs = 3_600_000

async function aToken(store: TestStore, uses_max: number | null = null): Promise<string> {
  const { token } = newJoinToken({ name: 'rack 4', region: null, uses_max, ttl: '1h' }, t0)
  await insertJoinToken(store.db, token, t0)
  return token.id
}

/** Joins if the token is still active. */
const tryToJoin = (store: TestStore, id: string) =>
  transact(store, async (db) => {
    const isActive = (await lockJoinToken(db, id, t0))?.status === 'active'
    if (isActive) await countJoin(db, id)
    return isActive
  })

describeStores('join tokens', (test) => {
  test('are used one join after another', async ({ store }) => {
    const id = await aToken(store, 2)
    const joined = await Promise.all(Array.from({ length: 8 }, () => tryToJoin(store, id)))
    expect(joined.filter(Boolean)).toHaveLength(2)
    expect((await listJoinTokens(store.db, { limit: 9, offset: 0 }, t0)).items).toMatchObject([
      { id, uses: 2, status: 'used_up' },
    ])
  })

  test('are removed some time after they expired', async ({ store }) => {
    const id = await aToken(store)
    await removeJoinTokensExpiredBefore(store.db, t0 + hourMs)
    expect(await listJoinTokens(store.db, { limit: 9, offset: 0 }, t0 + hourMs)).toMatchObject({
      items: [{ id, status: 'expired' }],
    })
    await removeJoinTokensExpiredBefore(store.db, t0 + hourMs + 1)
    expect(await listJoinTokens(store.db, { limit: 9, offset: 0 }, t0)).toMatchObject({ total: 0 })
  })
})
