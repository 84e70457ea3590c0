/**
 * Backfills, re-drives and compactions. The units of a job are in `job-units.ts`.
 *
 * Law: a view version and an endpoint have at most one unfinished job, and an endpoint at most one unfinished compaction. A status change has the expected status in its WHERE.
 */
import { type RawBuilder, sql } from 'kysely'
import { AppError } from '#errors.ts'
import type { Job, JobDetail, JobKind, JobStatus, JobsQuery } from '#model/job.ts'
import { jobLimits } from '#model/limits.ts'
import type { Page } from '#model/page.ts'
import { inChunks } from '../chunks.ts'
import { fromTimeOrNull, toTime, toTimeOrNull } from '../columns.ts'
import { lockCommits } from '../commits/commits.ts'
import { resumeLate } from '../commits/late-segments.ts'
import { requireAllCommits } from '../commits/missing-commits.ts'
import { translateErrors } from '../engines/database-error.ts'
import { leaseLimits } from '../limits.ts'
import { countRows, readPage } from '../page.ts'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'

const notFound = () => new AppError('not_found', 'no such job')
const alreadyActive = new AppError(
  'conflict',
  'another job with this version of the view is running or paused on this endpoint: wait until it finishes, or cancel it',
)

const alreadyCompacting = new AppError(
  'conflict',
  'another compaction is running or paused on this endpoint: wait until it finishes, or cancel it',
)

const noCounts = {
  total: 0,
  done: 0,
  skipped: 0,
  failed: 0,
  processed: 0,
  accepted: 0,
  dropped: 0,
  dlq: 0,
  failed_records: 0,
  more_rows: 0,
  duplicates: 0,
}

export type NewJob = {
  readonly id: string
  readonly kind: Exclude<JobKind, 'compaction'>
  readonly view_id: string
  /** For a re-drive: the version whose rejected rows it reads. */
  readonly from_view_id: string | null
  readonly endpoint_id: string
  readonly region: string
  readonly from: string | null
  readonly to: string | null
  readonly created_by: string
}

/**
 * Inserts a job with its units: the segments of the range that are committed now. A job without units succeeds at once. Segments that were
 * sealed before and are committed later are added then (late-segments.ts).
 * Throws conflict if an unfinished job could create the same artifacts or the account has too many jobs, and validation_error for
 * too many segments.
 */
export async function insertJob(db: Tx, account_id: string, job: NewJob, now: number): Promise<Job> {
  const { id, kind, view_id, from_view_id, endpoint_id, region, created_by } = job
  await requireAllCommits(db, region, account_id)
  await lockCommits(db, endpoint_id)
  const unfinished = db.selectFrom('jobs').where('account_id', '=', account_id).where('finished_at', 'is', null)
  const active = await countRows(unfinished.where('kind', '!=', 'compaction'))
  const activeMax = jobLimits.activePerAccountMax
  if (active >= activeMax) throw new AppError('conflict', `the account has ${activeMax} unfinished jobs: cancel one, or wait`)
  const insert = db.insertInto('jobs').values({
    ...{ id, account_id, kind, status: 'running', view_id, from_view_id, endpoint_id, region, ...noCounts, created_by },
    from_at: fromTimeOrNull(job.from),
    to_at: fromTimeOrNull(job.to),
    created_at: now,
    looked_at: 0,
  })
  await translateErrors(insert.execute(), { unique: alreadyActive })
  await insertUnits(db, job)
  const total = await countRows(db.selectFrom('job_units').where('job_id', '=', id))
  if (total > jobLimits.segmentsMax) {
    throw new AppError('validation_error', `the range has more than ${jobLimits.segmentsMax} segments`, {
      errors: [{ path: 'from', message: `must be later: the range has more than ${jobLimits.segmentsMax} segments` }],
    })
  }
  await db.updateTable('jobs').set({ total }).where('id', '=', id).execute()
  await finishJob(db, id, now)
  return getJob(db, account_id, id)
}

export type NewCompactionJob = Pick<NewJob, 'id' | 'endpoint_id' | 'region' | 'from' | 'to' | 'created_by'>

/** Inserts a job that makes these new files. Throws conflict if another one is unfinished on the endpoint. */
export async function insertCompactionJob(
  db: Tx,
  account_id: string,
  { from, to, ...job }: NewCompactionJob,
  compactions: readonly string[],
  now: number,
): Promise<Job> {
  await requireAllCommits(db, job.region, account_id)
  const insert = db.insertInto('jobs').values({
    ...{ ...job, account_id, kind: 'compaction', status: 'running', view_id: null, from_view_id: null, ...noCounts },
    total: compactions.length,
    from_at: fromTimeOrNull(from),
    to_at: fromTimeOrNull(to),
    created_at: now,
    looked_at: 0,
  })
  await translateErrors(insert.execute(), { unique: alreadyCompacting })
  const unit = { job_id: job.id, view_id: null, status: 'waiting', available_at: 0, deaths: 0 }
  const units = compactions.map((id, index) => ({ ...unit, commit_id: id, number: index + 1 }))
  for (const some of inChunks(units)) await db.insertInto('job_units').values(some).execute()
  return getJob(db, account_id, job.id)
}

async function insertUnits(db: Tx, { id, view_id, from_view_id, endpoint_id, from, to }: NewJob): Promise<void> {
  const hasRejectedRows = sql`exists (select 1 from dlq_files where dlq_files.commit_id = commits.id and dlq_files.view_id = ${from_view_id})`
  const conditions: readonly RawBuilder<unknown>[] = [
    sql`endpoint_id = ${endpoint_id}`,
    ...(from === null ? [] : [sql`sealed_at >= ${Date.parse(from)}`]),
    ...(to === null ? [] : [sql`sealed_at < ${Date.parse(to)}`]),
    ...(from_view_id === null ? [] : [hasRejectedRows]),
  ]
  await sql`
    insert into job_units (job_id, commit_id, view_id, number, status, available_at, deaths)
    select ${id}, id, ${view_id}, row_number() over (order by sealed_at, id), 'waiting', 0, 0 from (
      select id, sealed_at from commits where ${sql.join(conditions, sql` and `)} order by sealed_at, id
      limit ${sql.lit(jobLimits.segmentsMax + 1)}
    ) as chosen`.execute(db)
}

/** Finishes a job that has no units left. */
export async function finishJob(db: Tx, id: string, now: number): Promise<void> {
  const finished = await db
    .updateTable('jobs')
    .set({ finished_at: now, status: sql<string>`case when failed > 0 then 'failed' else 'succeeded' end` })
    .where('id', '=', id)
    .where('status', 'in', ['running', 'paused'])
    .where(sql<boolean>`done + skipped + failed >= total`)
    .returning(['view_id', 'endpoint_id'])
    .executeTakeFirst()
  if (finished !== undefined) await resumeLate(db, finished)
}

/** Throws not_found. */
export async function getJob(db: Db, account_id: string, id: string): Promise<Job> {
  const row = await selectJobs(db).where('jobs.account_id', '=', account_id).where('jobs.id', '=', id).executeTakeFirst()
  if (row === undefined) throw notFound()
  return toJob(row)
}

/** Returns why units of a job were skipped or failed, with counts, most frequent first. */
export async function listJobReasons(db: Db, id: string): Promise<JobDetail['reasons']> {
  const rows = await db
    .selectFrom('job_units')
    .select(['status', 'reason'])
    .select(({ fn }) => fn.countAll<number>().as('segments'))
    .where('job_id', '=', id)
    .where('status', 'in', ['skipped', 'failed'])
    .groupBy(['status', 'reason'])
    .orderBy('segments', 'desc')
    .orderBy('reason')
    .limit(jobLimits.reasonsMax)
    .execute()
  return rows.map(({ status, reason, segments }) => ({
    outcome: status === 'failed' ? 'failed' : 'skipped',
    reason: reason ?? '',
    segments,
  }))
}

/** Returns one page, newest first. */
export async function listJobs(
  db: Db,
  account_id: string,
  { status, view_id, endpoint_id, ...page }: JobsQuery,
): Promise<Page<Job>> {
  let found = selectJobs(db).where('jobs.account_id', '=', account_id)
  if (status !== undefined) found = found.where('jobs.status', '=', status)
  if (view_id !== undefined) found = found.where('jobs.view_id', '=', view_id)
  if (endpoint_id !== undefined) found = found.where('jobs.endpoint_id', '=', endpoint_id)
  return readPage(found.orderBy('jobs.created_at', 'desc').orderBy('jobs.id'), page, toJob)
}

/**
 * Pauses, resumes or cancels. Idempotent. Throws not_found, and validation_error for a finished job.
 * Before a pause, nodes finish the segments they work on; a cancel interrupts them.
 */
export async function setJobStatus(
  db: Tx,
  account_id: string,
  id: string,
  status: 'running' | 'paused' | 'canceled',
  now: number,
): Promise<Job> {
  await db
    .updateTable('jobs')
    .set({ status, ...(status === 'canceled' ? { finished_at: now } : {}) })
    .where(({ and }) => and({ account_id, id }))
    .where('status', 'in', ['running', 'paused'])
    .execute()
  const job = await getJob(db, account_id, id)
  if (job.status === 'canceled') await resumeLate(db, { view_id: job.view_id, endpoint_id: job.endpoint_id })
  if (job.status !== status)
    throw new AppError('validation_error', `the job has ${job.status === 'canceled' ? 'been canceled' : job.status}`)
  return job
}

/** Returns running jobs of a region, least recently served first, but for those of these accounts. */
export async function listRunningJobIds(db: Db, region: string, without: readonly string[]): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('jobs')
    .select('id')
    .where(({ and }) => and({ region, status: 'running' }))
    .$if(without.length > 0, (query) => query.where('account_id', 'not in', without))
    .orderBy('looked_at')
    .limit(leaseLimits.jobsPerRequestMax)
    .execute()
  return rows.map(({ id }) => id)
}

/** Without a view it is a compaction. */
export type RunningJob = Pick<Database['jobs'], 'id' | 'account_id' | 'view_id' | 'from_view_id' | 'endpoint_id'>

/** Locks the job's row until the transaction ends. Returns undefined if the job is no longer running. */
export async function lockRunningJob(db: Tx, id: string, now: number): Promise<RunningJob | undefined> {
  return db
    .updateTable('jobs')
    .set({ looked_at: now })
    .where(({ and }) => and({ id, status: 'running' }))
    .returning(['id', 'account_id', 'view_id', 'from_view_id', 'endpoint_id'])
    .executeTakeFirst()
}

/** Removes units of one job that ended before `before` (epoch ms), at most `limit`, or the job itself if it has none. Returns the number of rows. */
export async function removeJobFinishedBefore(db: Db, before: number, limit: number): Promise<number> {
  const job = await db
    .selectFrom('jobs')
    .select('id')
    .where('finished_at', '<', before)
    .orderBy('finished_at')
    .limit(1)
    .executeTakeFirst()
  if (job === undefined) return 0
  const units = db.selectFrom('job_units').select('commit_id').where('job_id', '=', job.id).limit(limit)
  const { numDeletedRows } = await db
    .deleteFrom('job_units')
    .where('job_id', '=', job.id)
    .where('commit_id', 'in', units)
    .executeTakeFirstOrThrow()
  if (numDeletedRows > 0n) return Number(numDeletedRows)
  // It may have got a late segment since, and run again.
  await db.deleteFrom('jobs').where('id', '=', job.id).where('finished_at', '<', before).execute()
  return 1
}

function selectJobs(db: Db) {
  return db
    .selectFrom('jobs')
    .leftJoin('views', 'views.id', 'jobs.view_id')
    .innerJoin('endpoints', 'endpoints.id', 'jobs.endpoint_id')
    .leftJoin('views as source', 'source.id', 'jobs.from_view_id')
    .selectAll('jobs')
    .select(['views.name as view_name', 'views.version as view_version', 'source.version as from_version'])
    .select('endpoints.name as endpoint_name')
    .select(
      sql<string | null>`coalesce(
        (select people.name from people inner join memberships on memberships.person_id = people.id
          where memberships.account_id = jobs.account_id and people.id = substr(jobs.created_by, ${sql.lit('person:'.length + 1)})),
        (select api_keys.name from api_keys
          where api_keys.account_id = jobs.account_id and api_keys.id = substr(jobs.created_by, ${sql.lit('key:'.length + 1)}))
      )`.as('created_by_name'),
    )
}

type Row = Database['jobs'] & {
  view_name: string | null
  view_version: number | null
  from_version: number | null
  endpoint_name: string
  created_by_name: string | null
}

function toJob(row: Row): Job {
  const { id, kind, status, view_id, view_name, view_version, from_version, created_by, created_by_name, last_error } = row
  const { endpoint_id, endpoint_name } = row
  const { total, done, skipped, failed, processed, accepted, dropped, dlq, failed_records, more_rows, duplicates } = row
  return {
    ...{
      id,
      view_id,
      view_name,
      view_version,
      from_version,
      endpoint_id,
      endpoint_name,
      created_by,
      created_by_name,
      last_error,
    },
    kind: kind as JobKind,
    status: status as JobStatus,
    from: toTimeOrNull(row.from_at),
    to: toTimeOrNull(row.to_at),
    segments: { total, done, skipped, failed },
    counters: { processed, accepted, dropped, dlq, failed: failed_records, rows: accepted + more_rows, duplicates },
    created_at: toTime(row.created_at),
    started_at: toTimeOrNull(row.started_at),
    finished_at: toTimeOrNull(row.finished_at),
  }
}
