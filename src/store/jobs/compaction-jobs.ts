/**
 * Jobs that compact an endpoint, started by a person or by control itself.
 *
 * Law: a file is in one compaction at most. The plan is made from what was read before the transaction; if another compaction of the endpoint was
 * planned in between, the primary key of its files or the job refuses this one.
 */
import { AppError } from '#errors.ts'
import type { AutomaticCompaction, Compact, CompactionPeriod } from '#model/compaction.ts'
import { newId } from '#model/id.ts'
import type { Job } from '#model/job.ts'
import { compactionLimits } from '#model/limits.ts'
import { requireAllCommits } from '../commits/missing-commits.ts'
import { getEndpoint } from '../endpoints/endpoints.ts'
import { type Db, type Store, transact } from '../store.ts'
import { closedUntil, planCompactions } from './compaction-plan.ts'
import {
  beginRemovals,
  insertCompaction,
  listCommitsToCompact,
  listRemovable,
  listUnpublished,
  type NewCompaction,
} from './compactions.ts'
import { insertCompactionJob } from './jobs.ts'

/** `created_by` of jobs that nobody asked for. */
export const automatic = 'automatic'

/**
 * Starts a job that merges what somebody asks for, and repeats what failed before. Returns undefined if there is nothing to merge. Throws not_found,
 * validation_error, and conflict if another compaction is unfinished on the endpoint.
 */
export async function startCompaction(
  store: Store,
  { account_id, created_by }: { readonly account_id: string; readonly created_by: string },
  endpoint_id: string,
  { period, from, to }: Compact,
  now: number,
): Promise<Job | undefined> {
  if (from !== undefined && to !== undefined && from >= to) throw invalid('to', 'must be after from')
  const { region, compaction } = await getEndpoint(store.db, account_id, endpoint_id)
  // Segments that are committed later are outside, so any end is safe; that of a closed period leaves out the fewest.
  const end = to === undefined ? closedUntil(period, now) : Date.parse(to)
  const range = { from: from === undefined ? 0 : Date.parse(from), to: end }
  const { except_views = [], remove_after_hours = null } = compaction ?? {}
  const request = { endpoint_id, period, range, except_views, remove_after_hours }
  const job = { id: newId(), endpoint_id, region, from: from ?? null, to: to ?? null, created_by }
  return start(store, account_id, request, { job, failedToo: true }, now)
}

/** An endpoint that compacts by itself, and has a closed period that it did not look at. */
export type DueEndpoint = {
  readonly id: string
  readonly account_id: string
  readonly region: string
  readonly compaction: AutomaticCompaction
  readonly compacted_until: number | null
  /** End of the last closed period. */
  readonly end: number
}

/**
 * Starts a job for the closed periods of an endpoint. Returns undefined if there is nothing left to merge. It looks back a while, for segments that were
 * committed late and for backfills. Throws conflict if another compaction is unfinished.
 */
export async function startAutomaticCompaction(
  store: Store,
  { id: endpoint_id, account_id, region, compaction, compacted_until, end }: DueEndpoint,
  now: number,
): Promise<Job | undefined> {
  const { period, except_views, remove_after_hours } = compaction
  const lookBack = end - compactionLimits.lookBackMs[period]
  const range = { from: Math.min(compacted_until ?? lookBack, lookBack), to: end }
  const job = { id: newId(), endpoint_id, region, from: toIso(range.from), to: toIso(end), created_by: automatic }
  return start(
    store,
    account_id,
    { endpoint_id, period, range, except_views, remove_after_hours },
    { job, failedToo: false },
    now,
  )
}

type CompactionRequest = {
  readonly endpoint_id: string
  readonly period: CompactionPeriod
  /** Range of the seals (epoch ms). */
  readonly range: { readonly from: number; readonly to: number }
  readonly except_views: readonly string[]
  readonly remove_after_hours: number | null
}

type JobToStart = {
  readonly job: Parameters<typeof insertCompactionJob>[2]
  /** Whether to repeat at once what failed. */
  readonly failedToo: boolean
}

/** The job makes the files that were planned before and are not published, and new ones. It removes what was merged long enough ago. */
async function start(
  store: Store,
  account_id: string,
  request: CompactionRequest,
  { job, failedToo }: JobToStart,
  now: number,
): Promise<Job | undefined> {
  await requireAllCommits(store.db, job.region, account_id)
  const planned = await plan(store.db, request)
  return transact(store, async (db) => {
    for (const compaction of planned) await insertCompaction(db, account_id, compaction, now)
    const unpublished = await listUnpublished(db, request.endpoint_id, { failedToo })
    const failedUntil = failedToo ? now : now - compactionLimits.removalRetryMs
    const removable = await listDueRemovals(db, request, { now, failedUntil }, compactionLimits.removalsPerJobMax)
    await beginRemovals(db, removable, now)
    const units = [...unpublished, ...removable]
    return units.length === 0 ? undefined : insertCompactionJob(db, account_id, job, units, now)
  })
}

/** Returns compactions whose sources were merged so long ago that they are removed. */
export async function listDueRemovals(
  db: Db,
  {
    endpoint_id,
    remove_after_hours,
    except_views,
  }: Pick<CompactionRequest, 'endpoint_id' | 'remove_after_hours' | 'except_views'>,
  { now, failedUntil }: { readonly now: number; readonly failedUntil: number },
  limit: number,
): Promise<readonly string[]> {
  if (remove_after_hours === null || remove_after_hours === undefined) return []
  return listRemovable(
    db,
    endpoint_id,
    { publishedUntil: now - remove_after_hours * 3_600_000, failedUntil, except_views },
    limit,
  )
}

/** Returns the compactions for the oldest files that can be merged: those of one page of commits. */
async function plan(db: Db, { endpoint_id, period, range, except_views }: CompactionRequest): Promise<readonly NewCompaction[]> {
  const { commitsMax } = compactionLimits
  for (let after: { readonly sealed_at: number; readonly id: string } | undefined; ; ) {
    const commits = await listCommitsToCompact(db, endpoint_id, range, { after, limit: commitsMax })
    const planned = planCompactions(endpoint_id, commits, { period, except_views })
    after = commits.at(-1)
    if (planned.length > 0 || after === undefined || commits.length < commitsMax) return planned
  }
}

function toIso(at: number): string {
  return new Date(at).toISOString()
}

function invalid(path: string, message: string): AppError {
  return new AppError('validation_error', `${path} ${message}`, { errors: [{ path, message }] })
}
