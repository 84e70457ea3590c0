/** Endpoints that compact by themselves, and how far each one has got. */
import type { AutomaticCompaction } from '#model/compaction.ts'
import { compactionLimits } from '#model/limits.ts'
import { fromJson } from '../columns.ts'
import { countRows } from '../page.ts'
import type { Db } from '../store.ts'
import { type DueEndpoint, listDueRemovals } from './compaction-jobs.ts'
import { closedUntil } from './compaction-plan.ts'

/** Returns the endpoints after the id `after`, at most `limit`, that have a closed period or a removal left, and no unfinished compaction; and the id to continue after. */
export async function listDueEndpoints(
  db: Db,
  now: number,
  after: string,
  limit: number,
): Promise<{ readonly due: readonly DueEndpoint[]; readonly next: string | undefined }> {
  const rows = await db
    .selectFrom('endpoints')
    .select(['id', 'account_id', 'region', 'compaction', 'compacted_until'])
    .where('id', '>', after)
    .where('compaction', 'is not', null)
    .where('deleted_at', 'is', null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('jobs')
            .select('jobs.id')
            .whereRef('jobs.endpoint_id', '=', 'endpoints.id')
            .where('jobs.finished_at', 'is', null)
            .where('jobs.view_id', 'is', null),
        ),
      ),
    )
    .orderBy('id')
    .limit(limit)
    .$narrowType<{ compaction: string }>()
    .execute()
  const due: DueEndpoint[] = []
  for (const row of rows) {
    const compaction = fromJson<AutomaticCompaction>(row.compaction)
    const end = closedUntil(compaction.period, now)
    const hasPeriod = row.compacted_until === null || row.compacted_until < end
    const removal = { ...compaction, endpoint_id: row.id }
    const times = { now, failedUntil: now - compactionLimits.removalRetryMs }
    if (hasPeriod || (await listDueRemovals(db, removal, times, 1)).length > 0) due.push({ ...row, compaction, end })
  }
  return { due, next: rows.length < limit ? undefined : rows.at(-1)?.id }
}

/** Returns the number of unfinished compactions of the account. */
export function countCompactionJobs(db: Db, account_id: string): Promise<number> {
  const compactions = db.selectFrom('jobs').where(({ and }) => and({ account_id, kind: 'compaction' }))
  return countRows(compactions.where('finished_at', 'is', null))
}

/** Whether somebody canceled a compaction of the endpoint that was created at `since` (epoch ms) or later. */
export async function wasCanceledSince(db: Db, endpoint_id: string, since: number): Promise<boolean> {
  const job = await db
    .selectFrom('jobs')
    .select('id')
    .where(({ and }) => and({ endpoint_id, kind: 'compaction', status: 'canceled' }))
    .where('created_at', '>=', since)
    .limit(1)
    .executeTakeFirst()
  return job !== undefined
}

export async function setCompactedUntil(db: Db, { id, end }: Pick<DueEndpoint, 'id' | 'end'>): Promise<void> {
  await db.updateTable('endpoints').set({ compacted_until: end }).where('id', '=', id).execute()
}
