import type { Db } from './store.ts'

/** A secret that all processes of an installation share. Whoever comes first makes it. Whoever reads this table knows it. */
export async function getOrInsertSecret(db: Db, name: string, make: () => string): Promise<string> {
  await db
    .insertInto('secrets')
    .values({ name, value: make() })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute()
  return (await db.selectFrom('secrets').select('value').where('name', '=', name).executeTakeFirstOrThrow()).value
}
