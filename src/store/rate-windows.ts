/**
 * Allowances of callers whose requests are counted over all control processes. Only on Postgres: SQLite has one process.
 *
 * Law: what is granted in one window never exceeds its limit. Times are those of the database, because the clocks of processes differ.
 */
import { sql } from 'kysely'
import type { Db } from './store.ts'

/** A grant is this part of what is left of the window, so that few requests wait for the database and little is lost to others. */
const grantShare = 8

export type Grant = {
  /** Requests that the caller of `takeAllowance` may admit; 0 if nothing is left of the window. */
  readonly granted: number
  /** Requests granted in this window, to all processes together. */
  readonly taken: number
  readonly endsInMs: number
}

export type Allowance = { readonly caller: string; readonly max: number; readonly windowMs: number }

/** Takes a part of the caller's allowance in the current window. The first request of a caller begins a window. */
export async function takeAllowance(db: Db, { caller, max, windowMs }: Allowance): Promise<Grant> {
  const first = Math.max(1, Math.floor(max / grantShare))
  const left = sql`greatest(0, ${max}::int - w.taken)`
  const next = sql`greatest(least(1, ${left}), ${left} / ${grantShare}::int)`
  const isOver = sql`w.ends_at <= ${now}`
  const { rows } = await sql<Grant>`
    insert into rate_windows as w (caller, ends_at, taken, granted)
    values (${caller}, ${now} + ${windowMs}::bigint, ${first}::int, ${first}::int)
    on conflict (caller) do update set
      ends_at = case when ${isOver} then excluded.ends_at else w.ends_at end,
      taken = case when ${isOver} then ${first}::int else w.taken + ${next} end,
      granted = case when ${isOver} then ${first}::int else ${next} end
    returning granted, taken, ends_at - ${now} as "endsInMs"`.execute(db)
  const [grant = { granted: 0, taken: max, endsInMs: windowMs }] = rows
  return grant
}

/** Constant within one statement. */
const now = sql`(extract(epoch from statement_timestamp()) * 1000)::bigint`

/** Removes windows that are over, and returns their number. */
export async function removeEndedWindows(db: Db): Promise<number> {
  const { numAffectedRows } = await sql`delete from rate_windows where ends_at < ${now}`.execute(db)
  return Number(numAffectedRows ?? 0n)
}
