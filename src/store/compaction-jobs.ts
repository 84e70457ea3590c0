/**
 * Jobs that compact an endpoint.
 *
 * Law: they are planned in one transaction, with the lock of the endpoint's commits, so each file is in one compaction at most.
 */
import { AppError } from '#errors.ts'
import type { Compact, CompactionPeriod } from '#model/compaction.ts'
import { newId } from '#model/id.ts'
import type { Job } from '#model/job.ts'
import { compactionLimits } from '#model/limits.ts'
import { lockCommits } from './commits.ts'
import { closedUntil, planCompactions } from './compaction-plan.ts'
import { insertCompaction, listCommitsToCompact, listUnpublished } from './compactions.ts'
import { getEndpoint } from './endpoints.ts'
import { insertCompactionJob } from './jobs.ts'
import { type Store, type Tx, transact } from './store.ts'

/** Throws not_found, validation_error, and conflict if another compaction is unfinished on the endpoint. */
export async function startCompaction(
  store: Store,
  { account_id, created_by }: { readonly account_id: string; readonly created_by: string },
  endpoint_id: string,
  { period, from, to }: Compact,
  now: number,
): Promise<Job> {
  if (from !== undefined && to !== undefined && from >= to) throw invalid('to', 'must be after from')
  return transact(store, async (db) => {
    const { region } = await getEndpoint(db, account_id, endpoint_id)
    // Segments that are committed later are outside, so any end is safe; that of a closed period leaves out the fewest.
    const end = to === undefined ? closedUntil(period, now) : Date.parse(to)
    const range = { from: from === undefined ? 0 : Date.parse(from), to: end }
    const compactions = await plan(db, { account_id, endpoint_id, period, range, failedToo: true }, now)
    const job = { id: newId(), endpoint_id, region, from: from ?? null, to: to ?? null, created_by }
    return insertCompactionJob(db, account_id, job, compactions, now)
  })
}

export type CompactionRequest = {
  readonly account_id: string
  readonly endpoint_id: string
  readonly period: CompactionPeriod
  /** Of the seals (epoch ms). */
  readonly range: { readonly from: number; readonly to: number }
  /** Whether to repeat those that failed. */
  readonly failedToo: boolean
}

/** Returns the compactions of an endpoint that are to be made: those that were planned before and are not published, and new ones. */
export async function plan(
  db: Tx,
  { account_id, endpoint_id, period, range, failedToo }: CompactionRequest,
  now: number,
): Promise<readonly string[]> {
  // Commits and additions that are recorded meanwhile are outside.
  await lockCommits(db, endpoint_id)
  const commits = await listCommitsToCompact(db, endpoint_id, range, compactionLimits.commitsMax)
  for (const compaction of planCompactions(endpoint_id, commits, period)) await insertCompaction(db, account_id, compaction, now)
  return listUnpublished(db, endpoint_id, { failedToo })
}

function invalid(path: string, message: string): AppError {
  return new AppError('validation_error', `${path} ${message}`, { errors: [{ path, message }] })
}
