/**
 * Adds a segment to the jobs that were created after it was sealed and before it was committed.
 *
 * Law: a job covers every segment of its range that was sealed before it was created, however late a node delivers it. A finished job that
 * gets one runs again, once no other job of the view runs on the endpoint. The caller holds the lock of the endpoint's commits, as `insertJob` does, so that neither misses the other.
 */
import { sql } from 'kysely'
import { countRows } from '../page.ts'
import type { Database } from '../schema.ts'
import type { Tx } from '../store.ts'

export type LateSegment = {
  readonly id: string
  readonly endpoint_id: string
  /** Epoch ms. */
  readonly sealedAt: number
  /** Views that were applied to it already. */
  readonly applied: readonly string[]
}

type ViewJob = { readonly id: string; readonly view_id: string; readonly endpoint_id: string }

export async function addToJobs(db: Tx, { id, endpoint_id, sealedAt, applied }: LateSegment): Promise<void> {
  const rows = await db
    .selectFrom('jobs')
    .select(['id', 'view_id', 'finished_at'])
    .where('endpoint_id', '=', endpoint_id)
    .where('created_at', '>', sealedAt)
    .where('status', '!=', 'canceled')
    .where(({ eb, or }) => or([eb('from_at', 'is', null), eb('from_at', '<=', sealedAt)]))
    .where(({ eb, or }) => or([eb('to_at', 'is', null), eb('to_at', '>', sealedAt)]))
    .where(({ eb, or, exists, selectFrom }) =>
      or([
        eb('from_view_id', 'is', null),
        exists(
          selectFrom('dlq_files')
            .select('dlq_files.commit_id')
            .where('dlq_files.commit_id', '=', id)
            .whereRef('dlq_files.view_id', '=', 'jobs.from_view_id'),
        ),
      ]),
    )
    .orderBy('created_at')
    .execute()
  // A compaction has no view. It leaves late segments to the next one.
  const jobs = rows.flatMap(({ view_id, ...job }) => (view_id === null ? [] : [{ ...job, view_id }]))
  // A view runs one job at a time: the unfinished one if there is one, otherwise the latest.
  const byView = new Map<string, (typeof jobs)[number]>()
  for (const job of jobs) if (byView.get(job.view_id)?.finished_at !== null) byView.set(job.view_id, job)
  for (const job of byView.values()) if (!applied.includes(job.view_id)) await addUnit(db, { ...job, endpoint_id }, id)
}

/** Does nothing if the job was canceled or has the unit. A finished job runs again as soon as no other one of the view runs on the endpoint. */
async function addUnit(db: Tx, { id, view_id, endpoint_id }: ViewJob, commit_id: string): Promise<void> {
  await lockUnfinished(db, { view_id, endpoint_id })
  const added = await db
    .updateTable('jobs')
    .set({ total: sql<number>`total + 1` })
    .where('id', '=', id)
    .where('status', '!=', 'canceled')
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('job_units').select('job_id').where('job_id', '=', id).where('commit_id', '=', commit_id))),
    )
    .returning('total')
    .executeTakeFirst()
  if (added === undefined) return
  const unit = { job_id: id, commit_id, view_id, number: added.total, status: 'waiting', available_at: 0, deaths: 0 }
  await db.insertInto('job_units').values(unit).execute()
  await resumeLate(db, { view_id, endpoint_id })
}

type Place = Pick<Database['jobs'], 'view_id' | 'endpoint_id'>

/** Locks the row of the job of the view that is unfinished on the endpoint, if there is one: it does not end before this transaction. */
async function lockUnfinished(db: Tx, { view_id, endpoint_id }: Place): Promise<void> {
  await db
    .updateTable('jobs')
    .set({ id: sql.ref('id') })
    .where(({ and }) => and({ view_id, endpoint_id }))
    .where('finished_at', 'is', null)
    .execute()
}

/** Runs a finished job of the view on the endpoint again that got a late segment, once no other one is unfinished there. */
export async function resumeLate(db: Tx, { view_id, endpoint_id }: Place): Promise<void> {
  if (view_id === null) return
  const jobs = db.selectFrom('jobs').where(({ and }) => and({ view_id, endpoint_id }))
  if ((await countRows(jobs.where('finished_at', 'is', null))) > 0) return
  const late = await jobs
    .select('id')
    .where('status', 'in', ['succeeded', 'failed'])
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('job_units').select('job_id').whereRef('job_id', '=', 'jobs.id').where('job_units.status', '=', 'waiting'),
      ),
    )
    .orderBy('created_at')
    .limit(1)
    .executeTakeFirst()
  if (late === undefined) return
  await db.updateTable('jobs').set({ status: 'running', finished_at: null }).where('id', '=', late.id).execute()
}
