/**
 * Adds a segment to the jobs that were created after it was sealed and before it was committed.
 *
 * Law: a job covers every segment of its range that was sealed before it was created, however late a node delivers it. A finished job that
 * gets one runs again. The caller holds the lock of the endpoint's commits, as `insertJob` does, so that neither misses the other.
 */
import { sql } from 'kysely'
import type { Tx } from '../store.ts'

export type LateSegment = {
  readonly id: string
  readonly endpoint_id: string
  /** Epoch ms. */
  readonly sealedAt: number
  /** Views that were applied to it already. */
  readonly applied: readonly string[]
}

export async function addToJobs(db: Tx, { id, endpoint_id, sealedAt, applied }: LateSegment): Promise<void> {
  const rows = await db
    .selectFrom('jobs')
    .select(['id', 'view_id', 'total', 'finished_at'])
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
  for (const job of byView.values()) if (!applied.includes(job.view_id)) await addUnit(db, job, id)
}

/** Does nothing if the job was canceled or has the unit, or if another job of the view is running on the endpoint. */
async function addUnit(
  db: Tx,
  { id, view_id }: { readonly id: string; readonly view_id: string },
  commit_id: string,
): Promise<void> {
  const reopened = await db
    .updateTable('jobs')
    .set({
      total: sql<number>`total + 1`,
      status: sql<string>`case when finished_at is null then status else 'running' end`,
      finished_at: null,
    })
    .where('id', '=', id)
    .where('status', '!=', 'canceled')
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('job_units').select('job_id').where('job_id', '=', id).where('commit_id', '=', commit_id))),
    )
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('jobs as other')
            .select('other.id')
            .where('other.view_id', '=', view_id)
            .whereRef('other.endpoint_id', '=', 'jobs.endpoint_id')
            .where('other.id', '!=', id)
            .where('other.finished_at', 'is', null),
        ),
      ),
    )
    .returning('total')
    .executeTakeFirst()
  if (reopened === undefined) return
  const unit = { job_id: id, commit_id, view_id, number: reopened.total, status: 'waiting', available_at: 0, deaths: 0 }
  await db.insertInto('job_units').values(unit).execute()
}
