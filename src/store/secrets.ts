import type { Db } from './store.ts'

/** A secret shared by all processes of an installation; the first one creates it. Anyone who can read this table knows it. */
export async function getOrInsertSecret(db: Db, name: string, make: () => string): Promise<string> {
  await db
    .insertInto('secrets')
    .values({ name, value: make() })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute()
  return (await db.selectFrom('secrets').select('value').where('name', '=', name).executeTakeFirstOrThrow()).value
}
