import { type Definition, withListForm } from '#model/definition.ts'
import { fromJson } from '../columns.ts'
import type { Db } from '../store.ts'

/** Drafts get aligned lists, as a view that is created from now on. A version that left `draft` never changes, and keeps packed ones. */
export async function up(db: Db): Promise<void> {
  const drafts = db.selectFrom('views').select('id').where('status', '=', 'draft').where('definition', 'like', '%*%')
  for (const { id } of await drafts.execute()) {
    const { definition } = await db.selectFrom('views').select('definition').where('id', '=', id).executeTakeFirstOrThrow()
    const changed = JSON.stringify(withListForm(fromJson<Definition>(definition)))
    await db.updateTable('views').set({ definition: changed }).where('id', '=', id).execute()
  }
}
