/**
 * The units of jobs, one segment each, and their leases.
 *
 * Law: a unit is finished once. Every update by a lease has the lease in its WHERE, so a lost lease changes nothing.
 * The job's row is locked before a unit is changed, so that transactions cannot deadlock.
 */
import { sql } from 'kysely'
import type { ViewOutcome } from '#model/commit.ts'
import { failedCounts, moreRows, type ViewCounts } from '#model/view-metrics.ts'
import { toStorableText } from '../columns.ts'
import { leaseLimits } from '../limits.ts'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'
import { finishJob } from './jobs.ts'

/** It has a lease if that expired. */
export type AvailableUnit = Pick<Database['job_units'], 'job_id' | 'commit_id' | 'view_id' | 'deaths' | 'lease_id'>
export type Lease = { readonly lease_id: string; readonly node_id: string; readonly incarnation: string }
export type LeasedUnit = AvailableUnit & Lease

/** Returns whether a unit of the job may be available. Checked before the job's row is locked. */
export async function hasAvailableUnits(db: Db, job_id: string, now: number): Promise<boolean> {
  const unit = await db
    .selectFrom('job_units')
    .select('commit_id')
    .where('job_id', '=', job_id)
    .where('available_at', '<=', now)
    .limit(1)
    .executeTakeFirst()
  return unit !== undefined
}

/**
 * Returns the units that a node may take now, in order. Leaves out segments that a unit of a canceled job is still working on,
 * because its node may be about to write.
 */
export async function listAvailableUnits(db: Tx, job_id: string, now: number): Promise<readonly AvailableUnit[]> {
  return db
    .selectFrom('job_units')
    .select(['job_id', 'commit_id', 'view_id', 'deaths', 'lease_id'])
    .where('job_id', '=', job_id)
    .where('available_at', '<=', now)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('job_units as other')
            .select('other.job_id')
            .whereRef('other.commit_id', '=', 'job_units.commit_id')
            .whereRef('other.view_id', '=', 'job_units.view_id')
            .whereRef('other.job_id', '<>', 'job_units.job_id')
            .where('other.status', '=', 'leased')
            .where('other.available_at', '>', now),
        ),
      ),
    )
    .orderBy('available_at')
    .orderBy('number')
    .limit(leaseLimits.unitsPerJobMax)
    .execute()
}

export async function leaseUnit(
  db: Tx,
  { job_id, commit_id, deaths }: Omit<AvailableUnit, 'lease_id'>,
  lease: Lease,
  now: number,
): Promise<void> {
  await db
    .updateTable('job_units')
    .set({ status: 'leased', available_at: now + leaseLimits.leaseMs, deaths, ...lease })
    .where(({ and }) => and({ job_id, commit_id }))
    .execute()
  await db
    .updateTable('jobs')
    .set({ started_at: sql<number>`coalesce(started_at, ${now})` })
    .where('id', '=', job_id)
    .execute()
}

/** Returns the units leased to nodes, and whether their jobs were canceled. */
export async function listLeasedUnits(
  db: Db,
  nodeIds: readonly string[],
): Promise<readonly (LeasedUnit & { readonly canceled: boolean })[]> {
  const rows = await db
    .selectFrom('job_units')
    .innerJoin('jobs', 'jobs.id', 'job_units.job_id')
    .select(['job_id', 'commit_id', 'job_units.view_id', 'deaths'])
    .select(['lease_id', 'node_id', 'incarnation', 'jobs.status as job_status'])
    .where('node_id', 'in', nodeIds)
    .where('job_units.status', '=', sql.lit('leased'))
    .execute()
  return rows.flatMap(({ lease_id, node_id, incarnation, job_status, ...unit }) =>
    lease_id === null || node_id === null || incarnation === null
      ? []
      : [{ ...unit, lease_id, node_id, incarnation, canceled: job_status === 'canceled' }],
  )
}

type LeaseKey = Pick<LeasedUnit, 'job_id' | 'commit_id' | 'lease_id'>

export async function renewLease(db: Tx, lease: LeaseKey, now: number): Promise<void> {
  await updateLeased(db, lease)
    .set({ available_at: now + leaseLimits.leaseMs })
    .execute()
}

/** Returns a unit to the queue. A node may take it from `availableAt` (epoch ms) on. */
export async function returnUnit(db: Tx, unit: LeaseKey & Pick<LeasedUnit, 'deaths'>, availableAt: number): Promise<void> {
  await updateLeased(db, unit)
    .set({ status: 'waiting', available_at: availableAt, lease_id: null, deaths: unit.deaths })
    .execute()
}

function updateLeased(db: Tx, { job_id, commit_id, lease_id }: LeaseKey) {
  return db.updateTable('job_units').where(({ and }) => and({ job_id, commit_id, lease_id, status: 'leased' }))
}

/** Locks the row of a job, whatever its status, until the transaction ends. */
export async function lockJob(
  db: Tx,
  id: string,
): Promise<Pick<Database['jobs'], 'id' | 'account_id' | 'from_view_id'> | undefined> {
  return db
    .updateTable('jobs')
    .set({ id: sql.ref('id') })
    .where('id', '=', id)
    .returning(['id', 'account_id', 'from_view_id'])
    .executeTakeFirst()
}

export async function findUnit(
  db: Tx,
  job_id: string,
  commit_id: string,
): Promise<Pick<Database['job_units'], 'lease_id' | 'node_id' | 'status' | 'view_id' | 'deaths'> | undefined> {
  return db
    .selectFrom('job_units')
    .select(['lease_id', 'node_id', 'status', 'view_id', 'deaths'])
    .where(({ and }) => and({ job_id, commit_id }))
    .executeTakeFirst()
}

export type UnitEnd =
  | { readonly status: 'done'; readonly outcome: ViewCounts & Partial<Pick<ViewOutcome, 'rows' | 'duplicates'>> }
  /** `records`: those on which the view failed as a whole. */
  | { readonly status: 'skipped' | 'failed'; readonly reason: string; readonly records?: number }

/** Finishes a unit, counts it, and finishes the job after its last unit. The caller must have locked the job's row. */
export async function finishUnit(
  db: Tx,
  { job_id, commit_id }: { readonly job_id: string; readonly commit_id: string },
  end: UnitEnd,
  now: number,
): Promise<void> {
  const reason = end.status === 'done' ? null : toStorableText(end.reason)
  const finished = await db
    .updateTable('job_units')
    .set({ status: end.status, available_at: null, reason })
    .where(({ and }) => and({ job_id, commit_id }))
    .where('status', 'in', ['waiting', 'leased'])
    .returning('commit_id')
    .executeTakeFirst()
  if (finished === undefined) return
  const counts = end.status === 'done' ? end.outcome : failedCounts(end.records ?? 0)
  const { processed, accepted, dropped, dlq, failed } = counts
  await db
    .updateTable('jobs')
    .set((row) => ({
      [end.status]: row(end.status, '+', 1),
      processed: row('processed', '+', processed),
      accepted: row('accepted', '+', accepted),
      dropped: row('dropped', '+', dropped),
      dlq: row('dlq', '+', dlq),
      failed_records: row('failed_records', '+', failed),
      more_rows: row('more_rows', '+', moreRows(counts)),
      duplicates: row('duplicates', '+', end.status === 'done' ? (end.outcome.duplicates ?? 0) : 0),
      ...(end.status === 'failed' ? { last_error: reason } : {}),
    }))
    .where('id', '=', job_id)
    .execute()
  await finishJob(db, job_id, now)
}

/** Records the latest error of work that will be retried. */
export async function recordJobError(db: Tx, id: string, reason: string): Promise<void> {
  await db
    .updateTable('jobs')
    .set({ last_error: toStorableText(reason) })
    .where('id', '=', id)
    .execute()
}
