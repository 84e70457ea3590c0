/** Tables that a query may name. Each query is limited to the account. */
import { type Definition, writtenColumns } from '#model/definition.ts'
import { fromJson } from '../columns.ts'
import type { Db } from '../store.ts'

/** Lists the versions of a view. */
export function listQueriedVersions(db: Db, account_id: string, name: string) {
  return db
    .selectFrom('views')
    .select(['id', 'version', 'status'])
    .where(({ and }) => and({ account_id, name }))
    .execute()
}

export async function findQueriedColumns(db: Db, view_id: string): Promise<readonly Definition['columns'][number][] | undefined> {
  const row = await db.selectFrom('views').select('definition').where('id', '=', view_id).executeTakeFirst()
  return row && writtenColumns(fromJson<Definition>(row.definition).columns)
}

/** Lists endpoints that are not deleted and whose name or id this may be, in whatever case. The oldest is first. */
export function listQueriedEndpoints(db: Db, account_id: string, name: string) {
  return db
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
}
