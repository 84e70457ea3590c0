/**
 * The number of the configuration that nodes work by.
 *
 * Law: a change that a node must see and its epoch become visible together. The bump holds its row until the transaction ends, so
 * epochs come in the order of the commits, and a reader at epoch n sees every change up to n.
 */
import { must } from '#lib/assert.ts'
import type { Db, Tx } from './store.ts'

/** Answers the new epoch. Call it late in the transaction: until the end nobody else can. */
export async function bumpEpoch(db: Tx): Promise<number> {
  const row = await db
    .updateTable('epoch')
    .set(({ eb }) => ({ value: eb('value', '+', 1) }))
    .returning('value')
    .executeTakeFirst()
  return must(row, 'the row of the epoch').value
}

export async function currentEpoch(db: Db): Promise<number> {
  return must(await db.selectFrom('epoch').select('value').executeTakeFirst(), 'the row of the epoch').value
}
