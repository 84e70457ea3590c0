import type { Keyring } from '#lib/keyring.ts'
import { placeOf } from './sealed-secrets.ts'
import type { Db } from './store.ts'

/** Returns a secret shared by all processes of an installation. The first process creates it. */
export async function getOrInsertSecret(db: Db, keyring: Keyring, name: string, generate: () => string): Promise<string> {
  const place = placeOf('secrets', name)
  const { key_id, text } = keyring.seal(generate(), place)
  await db
    .insertInto('secrets')
    .values({ name, key_id, value: text })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute()
  const stored = await db.selectFrom('secrets').selectAll().where('name', '=', name).executeTakeFirstOrThrow()
  return keyring.open({ key_id: stored.key_id, text: stored.value }, place)
}
