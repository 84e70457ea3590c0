import type { Keyring } from '#lib/keyring.ts'
import type { ChangeTx } from '../cluster/epoch.ts'
import { touchInstallation } from '../cluster/section-versions.ts'
import { fromJson, fromTime, toTime } from '../columns.ts'
import { placeOf } from '../sealed-secrets.ts'
import type { Db } from '../store.ts'

/** A signing key for access tokens, from `auth/access-tokens.ts`. Its private half is stored encrypted. */
export type StoredSigningKey = {
  readonly kid: string
  readonly private_jwk: Readonly<Record<string, unknown>>
  readonly created_at: string
}

export async function insertSigningKey(db: ChangeTx, keyring: Keyring, key: StoredSigningKey): Promise<void> {
  const { kid, private_jwk, created_at } = key
  const { key_id, text } = keyring.seal(JSON.stringify(private_jwk), placeOf('signing_keys', kid))
  await db
    .insertInto('signing_keys')
    .values({ kid, key_id, private_jwk: text, created_at: fromTime(created_at) })
    .execute()
  await touchInstallation(db)
}

/** Returns the keys, newest first. */
export async function listSigningKeys(db: Db, keyring: Keyring): Promise<readonly StoredSigningKey[]> {
  const rows = await db.selectFrom('signing_keys').selectAll().orderBy('created_at', 'desc').orderBy('kid').execute()
  return rows.map(({ kid, key_id, private_jwk: text, created_at }) => ({
    kid,
    private_jwk: fromJson(keyring.open({ key_id, text }, placeOf('signing_keys', kid))),
    created_at: toTime(created_at),
  }))
}

/** Removes keys created before `before` (epoch ms) and returns their number. The caller keeps the newest. */
export async function removeSigningKeysBefore(db: ChangeTx, before: number): Promise<number> {
  const { numDeletedRows } = await db.deleteFrom('signing_keys').where('created_at', '<', before).executeTakeFirstOrThrow()
  await touchInstallation(db)
  return Number(numDeletedRows)
}
