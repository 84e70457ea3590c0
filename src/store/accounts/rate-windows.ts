/**
 * Allowances of callers whose requests are counted over all control processes. Only on Postgres: SQLite has one process.
 *
 * Law: what is granted in one window never exceeds its limit. Times are those of the database, because the clocks of processes differ.
 */
import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** A grant is this part of what is left of the window, so that few requests wait for the database and little is lost to others. */
const grantShare = 8

export type Grant = {
  readonly caller: string
  /** Requests that this process may admit; 0 if nothing is left of the window. */
  readonly granted: number
  /** Requests granted in this window, to all processes together. */
  readonly taken: number
  readonly endsInMs: number
}

export type Allowance = { readonly caller: string; readonly max: number }

/**
 * Takes a part of the allowance of each caller in its current window. The first request of a caller begins a window of `windowMs`.
 * No caller may be named twice.
 */
export async function takeAllowances(db: Db, allowances: readonly Allowance[], windowMs: number): Promise<readonly Grant[]> {
  // Sorted, so that two processes do not wait for each other.
  const sorted = allowances.toSorted((a, b) => (a.caller < b.caller ? -1 : 1))
  const [callers, limits] = [sorted.map(({ caller }) => caller), sorted.map(({ max }) => max)]
  const isOver = sql`w.ends_at <= ${now}`
  const left = sql`greatest(0, excluded.allowed - w.taken)`
  const next = sql`greatest(least(1, ${left}), ${left} / ${grantShare}::int)`
  const { rows } = await sql<Grant>`
    insert into rate_windows as w (caller, allowed, ends_at, taken, granted)
    select caller, allowed, ${now} + ${windowMs}::bigint, first, first
    from unnest(${callers}::text[], ${limits}::int[]) as asked (caller, allowed), greatest(1, allowed / ${grantShare}::int) as first
    on conflict (caller) do update set
      allowed = excluded.allowed,
      ends_at = case when ${isOver} then excluded.ends_at else w.ends_at end,
      taken = case when ${isOver} then excluded.taken else w.taken + ${next} end,
      granted = case when ${isOver} then excluded.granted else ${next} end
    returning caller, granted, taken, ends_at - ${now} as "endsInMs"`.execute(db)
  return rows
}

/** Constant within one statement. */
const now = sql`(extract(epoch from statement_timestamp()) * 1000)::bigint`

/** Removes windows that are over, and returns their number. */
export async function removeEndedWindows(db: Db): Promise<number> {
  const { numAffectedRows } = await sql`delete from rate_windows where ends_at < ${now}`.execute(db)
  return Number(numAffectedRows ?? 0n)
}
