import { must } from '#lib/assert.ts'
import type { Keyring } from '#lib/keyring.ts'
import { placeOf } from './sealed-secrets.ts'
import type { Db } from './store.ts'

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
