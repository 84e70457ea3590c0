/**
 * Changes to the configuration that nodes work by, and the number that counts them.
 *
 * Law: a change and its epoch become visible together, in one transaction. The bump is the first statement and holds its row until
 * the transaction ends, so changes run one after another: epochs come in the order of the commits, a reader at epoch n sees every
 * change up to n, what a change reads cannot be outdated by another, and no two changes can deadlock.
 */
import { randomBytes } from 'node:crypto'
import { must } from '#lib/assert.ts'
import { type Db, type Store, type Tx, transact } from './store.ts'

declare const bumped: unique symbol
/** A transaction that `applyChange` began. Functions that change what nodes see take it, so none can forget the epoch. */
export type ChangeTx = Tx & { readonly [bumped]: true }

/** Runs `work` in one transaction with a new epoch. After a collision it runs again: it must have no effects outside the database. */
export function applyChange<T>(store: Store, work: (db: ChangeTx, epoch: number) => Promise<T>): Promise<T> {
  return transact(store, async (db) => work(db as ChangeTx, await bumpEpoch(db)))
}

async function bumpEpoch(db: Tx): Promise<number> {
  const row = await db
    .updateTable('epoch')
    // The version is random: a database that was restored from a copy must not give a name to other content that a node knows already.
    .set(({ eb }) => ({ value: eb('value', '+', 1), version: randomBytes(9).toString('base64url') }))
    .returning('value')
    .executeTakeFirst()
  return must(row, 'the row of the epoch').value
}

export async function currentEpoch(db: Db): Promise<number> {
  return must(await db.selectFrom('epoch').select('value').executeTakeFirst(), 'the row of the epoch').value
}
