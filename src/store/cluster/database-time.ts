import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Returns the wall clock of a Postgres server (epoch ms). */
export async function readDatabaseTime(db: Db): Promise<number> {
  const { rows } = await sql<{ ms: number }>`select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as ms`.execute(db)
  const [row] = rows
  if (row === undefined) throw new Error('the database returned no time')
  return row.ms
}
