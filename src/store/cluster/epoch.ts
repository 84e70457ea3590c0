/**
 * Configuration changes that nodes must apply, and the epoch, which counts them.
 *
 * Law: a change and its epoch become visible together, in one transaction. The increment is the first statement and locks its row
 * until the transaction ends, so changes run one after another. Therefore a reader at epoch n sees every change up to n, reads
 * within a change are never stale, and two changes cannot deadlock.
 */
import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { must } from '#lib/assert.ts'
import type { DatabasePosition } from '#model/database-position.ts'
import { type Db, type Store, type Tx, transact } from '../store.ts'

declare const isChange: unique symbol
/** A transaction started by `inNewEpoch`. Functions that change what nodes see require it, so none can forget the epoch. */
export type ChangeTx = Tx & { readonly [isChange]: true }

/** Runs `work` in one transaction with a new epoch. It wakes no node: `ApplyChange` (changes.ts) does. `work` runs again after a collision: it must only change the database. */
export function inNewEpoch<T>(store: Store, work: (db: ChangeTx, epoch: number) => Promise<T>): Promise<T> {
  return transact(store, async (db) => work(db as ChangeTx, await incrementEpoch(db)))
}

async function incrementEpoch(db: Tx): Promise<number> {
  const row = await db
    .updateTable('epoch')
    // Random, so that a database restored from a backup never reuses a version that a node has already seen.
    .set(({ eb }) => ({ value: eb('value', '+', 1), version: randomBytes(9).toString('base64url') }))
    .returning('value')
    .executeTakeFirst()
  return must(row, 'the row of the epoch').value
}

/** Resolves when every change that was running has ended. SQLite runs one transaction at a time, so every read waits for them. */
export async function awaitRunningChanges({ db, dialect }: Store): Promise<void> {
  if (dialect === 'postgres') await sql`select value from epoch for share`.execute(db)
}

/** Returns which state of which database this is. */
export async function currentPosition(db: Db): Promise<DatabasePosition> {
  const row = must(await db.selectFrom('epoch').selectAll().executeTakeFirst(), 'the row of the epoch')
  return { database: row.database_id, generation: row.generation, epoch: row.value, version: row.version }
}

/** Begins a generation: nodes follow this database, whatever they had before. `now` is epoch ms. */
export async function beginGeneration(db: ChangeTx, now: number): Promise<void> {
  await db
    .updateTable('epoch')
    .set({ generation: sql<number>`case when generation >= ${now} then generation + 1 else ${now} end` })
    .execute()
}

export async function currentEpoch(db: Db): Promise<number> {
  return must(await db.selectFrom('epoch').select('value').executeTakeFirst(), 'the row of the epoch').value
}
