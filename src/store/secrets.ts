import type { Db } from './store.ts'

/** Returns a secret shared by all processes of an installation. The first process creates it. It is stored in plain text. */
export async function getOrInsertSecret(db: Db, name: string, generate: () => string): Promise<string> {
  await db
    .insertInto('secrets')
    .values({ name, value: generate() })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute()
  return (await db.selectFrom('secrets').select('value').where('name', '=', name).executeTakeFirstOrThrow()).value
}
