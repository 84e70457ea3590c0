import { must } from '#lib/assert.ts'
import type { Keyring } from '#lib/keyring.ts'
import { placeOf } from './sealed-secrets.ts'
import { type Db, type Store, transact } from './store.ts'

/** Returns a secret shared by all processes of an installation. The first process creates it. */
export async function getOrInsertSecret(
  db: Db,
  keyring: Keyring,
  name: string,
  generate: () => string | Promise<string>,
): Promise<string> {
  const known = await findSecret(db, keyring, name)
  if (known !== undefined) return known
  const { key_id, text } = keyring.seal(await generate(), placeOf('secrets', name))
  await db
    .insertInto('secrets')
    .values({ name, key_id, value: text })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute()
  return must(await findSecret(db, keyring, name), `the secret ${name}`)
}

export async function findSecret(db: Db, keyring: Keyring, name: string): Promise<string | undefined> {
  const stored = await db.selectFrom('secrets').selectAll().where('name', '=', name).executeTakeFirst()
  return stored && keyring.open({ key_id: stored.key_id, text: stored.value }, placeOf('secrets', name))
}

/** Stores a secret in place of the one before, and returns that. */
export function replaceSecret(store: Store, keyring: Keyring, name: string, secret: string): Promise<string | undefined> {
  const place = placeOf('secrets', name)
  const { key_id, text: value } = keyring.seal(secret, place)
  return transact(store, async (db) => {
    const before = await db.selectFrom('secrets').selectAll().where('name', '=', name).executeTakeFirst()
    await db
      .insertInto('secrets')
      .values({ name, key_id, value })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ key_id, value }))
      .execute()
    return before && keyring.open({ key_id: before.key_id, text: before.value }, place)
  })
}
