import { fromJson, toTime } from './columns.ts'
import type { ChangeTx } from './epoch.ts'
import { touchInstallation } from './section-versions.ts'
import type { Db } from './store.ts'

/** A signing key for access tokens, from `auth/access-tokens.ts`. It is stored in plain text: anyone who can read this table can sign. */
export type StoredSigningKey = {
  readonly kid: string
  readonly private_jwk: Readonly<Record<string, unknown>>
  readonly created_at: string
}

export async function insertSigningKey(db: ChangeTx, key: StoredSigningKey): Promise<void> {
  await db
    .insertInto('signing_keys')
    .values({ kid: key.kid, private_jwk: JSON.stringify(key.private_jwk), created_at: Date.parse(key.created_at) })
    .execute()
  await touchInstallation(db)
}

/** Returns the keys, newest first. */
export async function listSigningKeys(db: Db): Promise<readonly StoredSigningKey[]> {
  const rows = await db.selectFrom('signing_keys').selectAll().orderBy('created_at', 'desc').orderBy('kid').execute()
  return rows.map(({ kid, private_jwk, created_at }) => ({
    kid,
    private_jwk: fromJson(private_jwk),
    created_at: toTime(created_at),
  }))
}

/** Removes keys created before `before` (epoch ms) and returns their number. The caller keeps the newest. */
export async function removeSigningKeysBefore(db: ChangeTx, before: number): Promise<number> {
  const { numDeletedRows } = await db.deleteFrom('signing_keys').where('created_at', '<', before).executeTakeFirstOrThrow()
  await touchInstallation(db)
  return Number(numDeletedRows)
}
