/** Tables that a query may name. Each query is limited to the account. */
import type { Definition } from '#model/definition.ts'
import { fromJson } from './columns.ts'
import type { Db } from './store.ts'

export type QueriedView = { readonly id: string; readonly version: number; readonly columns: Definition['columns'] }

/** Finds a version of a view that was published, or without a version the newest published one. */
export async function findQueriedView(
  db: Db,
  account_id: string,
  name: string,
  version: number | undefined,
): Promise<QueriedView | undefined> {
  let query = db
    .selectFrom('views')
    .select(['id', 'version', 'definition'])
    .where('account_id', '=', account_id)
    .where('name', '=', name)
    .where('status', '!=', 'draft')
  if (version !== undefined) query = query.where('version', '=', version)
  // `published` comes after `archived`.
  const row = await query.orderBy('status', 'desc').orderBy('version', 'desc').limit(1).executeTakeFirst()
  return row && { id: row.id, version: row.version, columns: fromJson<Definition>(row.definition).columns }
}

/** Finds an endpoint that is not deleted by its name, or else by its id. Upper and lower case count only if names differ in nothing else. */
export async function findQueriedEndpoint(db: Db, account_id: string, name: string): Promise<string | undefined> {
  const rows = await db
    .selectFrom('endpoints')
    .select(['id', 'name'])
    .where('account_id', '=', account_id)
    .where('deleted_at', 'is', null)
    .where(({ eb, fn, or }) =>
      // SQLite lowers ASCII alone, so the exact name is compared too.
      or([eb('name', '=', name), eb(fn('lower', ['name']), '=', name.toLowerCase()), eb('id', '=', name.toLowerCase())]),
    )
    .orderBy('created_at')
    .execute()
  return (rows.find((row) => row.name === name) ?? rows[0])?.id
}
