import { sql } from 'kysely'
import { expect } from 'vitest'
import { Keyring, newSecretKey } from '#lib/keyring.ts'
import { insertSigningKey, listSigningKeys } from '#store/accounts/signing-keys.ts'
import { currentEpoch, inNewEpoch } from '#store/cluster/epoch.ts'
import { getOrInsertSecret } from '#store/installation-secrets.ts'
import * as encryptedSecrets from '#store/migrations/0012-encrypted-secrets.ts'
import { findKeyInUse, sealSecrets } from '#store/sealed-secrets.ts'
import type { Db } from '#store/store.ts'
import { keyring, secretKey } from '../support/keyring.ts'
import { describeStores, iso, t0 } from './fixtures.ts'

const signingKey = { kid: 'kid', private_jwk: { kty: 'EC', d: 'the private half' }, created_at: iso(t0) }
const generate = () => 'the download secret'

const textOf = async (db: Db) =>
  JSON.stringify([
    await db.selectFrom('secrets').selectAll().execute(),
    await db.selectFrom('signing_keys').selectAll().execute(),
  ])

describeStores('secrets', (test) => {
  test('are never stored as plain text, and are the same for every process', async ({ store }) => {
    expect(await findKeyInUse(store.db)).toBeUndefined()
    expect(await getOrInsertSecret(store.db, keyring, 'downloads', generate)).toBe('the download secret')
    expect(await getOrInsertSecret(store.db, keyring, 'downloads', () => 'another')).toBe('the download secret')
    await inNewEpoch(store, (db) => insertSigningKey(db, keyring, signingKey))
    expect(await listSigningKeys(store.db, keyring)).toEqual([signingKey])
    expect(await textOf(store.db)).not.toMatch(/the download|the private/)
    expect(await findKeyInUse(store.db)).toBe(keyring.keyId)
  })

  test('of a database from before encryption are encrypted once, and its signing keys count as old', async ({ store }) => {
    for (const table of ['secrets', 'signing_keys']) await store.db.schema.alterTable(table).dropColumn('key_id').execute()
    await sql`insert into secrets (name, value) values ('downloads', 'the download secret')`.execute(store.db)
    const jwk = JSON.stringify(signingKey.private_jwk)
    await sql`insert into signing_keys (kid, private_jwk, created_at) values ('kid', ${jwk}, ${t0})`.execute(store.db)
    await encryptedSecrets.up(store.db)
    expect(await sealSecrets(store, keyring)).toBe(2)
    expect(await sealSecrets(store, keyring)).toBe(0)
    expect(await textOf(store.db)).not.toMatch(/the download|the private/)
    expect(await getOrInsertSecret(store.db, keyring, 'downloads', () => 'another')).toBe('the download secret')
    const [migrated] = await listSigningKeys(store.db, keyring)
    expect(migrated).toEqual({ ...signingKey, created_at: iso(t0 - 31 * 86_400_000) })
  })

  test('are encrypted again after the key has changed, without an epoch', async ({ store }) => {
    await getOrInsertSecret(store.db, keyring, 'downloads', generate)
    await inNewEpoch(store, (db) => insertSigningKey(db, keyring, signingKey))
    const epoch = await currentEpoch(store.db)
    const next = newSecretKey()
    expect(await sealSecrets(store, new Keyring(`${next},${secretKey}`, 'the test'))).toBe(2)
    const onlyNext = new Keyring(next, 'the test')
    expect(await getOrInsertSecret(store.db, onlyNext, 'downloads', () => 'another')).toBe('the download secret')
    expect(await listSigningKeys(store.db, onlyNext)).toEqual([signingKey])
    expect(await currentEpoch(store.db)).toBe(epoch)
  })

  test('do not open with another key, or in another row; nothing is changed then', async ({ store }) => {
    await getOrInsertSecret(store.db, keyring, 'downloads', generate)
    const before = await textOf(store.db)
    const other = new Keyring(newSecretKey(), 'INLET_SECRET_KEY')
    await expect(sealSecrets(store, other)).rejects.toThrow(
      `secrets/downloads in the database is encrypted with the key ${keyring.keyId}, and INLET_SECRET_KEY has ${other.keyId}: add that key`,
    )
    expect(await textOf(store.db)).toBe(before)
    await sql`update secrets set name = 'another'`.execute(store.db)
    await expect(sealSecrets(store, keyring)).rejects.toThrow('secrets/another in the database was changed')
  })
})
