/**
 * Time series of view versions: records accepted, dropped and rejected.
 *
 * Law: a commit, and the output that a job adds to one, is counted once, in the transaction that first records it, at its time. What
 * happened then stays: a job that makes it good later is counted when it does.
 */
import { sql } from 'kysely'
import { safeSum } from '#lib/safe-sum.ts'
import type { ViewOutcome } from '#model/commit.ts'
import { seriesLimits } from '#model/limits.ts'
import { bucketsOf, type SeriesWindow, type ViewSeries } from '#model/series.ts'
import { moreRows } from '#model/view-metrics.ts'
import { inChunks } from '../chunks.ts'
import { toTime } from '../columns.ts'
import { addTo, sumOf } from '../safe-sums.ts'
import type { Db, Tx } from '../store.ts'

const counterColumns = ['accepted', 'dropped', 'dlq', 'failed', 'more_rows', 'duplicates'] as const

/** Adds the outcomes of one new commit, or of one output that a job added, made at `now` (epoch ms). */
export async function addOutcomesToSeries(
  db: Tx,
  endpoint_id: string,
  outcomes: readonly ViewOutcome[],
  now: number,
): Promise<void> {
  const rows = outcomes.flatMap((outcome) => {
    const { view_id, accepted, dropped, dlq, failed, duplicates = 0 } = outcome
    return bucketsOf(now, now).map(({ step, bucketStart: bucket_start }) => ({
      ...{ view_id, endpoint_id, step, bucket_start },
      ...{ accepted, dropped, dlq, failed, more_rows: moreRows(outcome), duplicates },
    }))
  })
  const sum = (name: (typeof counterColumns)[number]) => addTo(sql.ref(`view_series.${name}`), sql.ref(`excluded.${name}`))
  for (const some of inChunks(rows))
    await db
      .insertInto('view_series')
      .values(some)
      .onConflict((conflict) =>
        conflict.columns(['view_id', 'step', 'bucket_start', 'endpoint_id']).doUpdateSet({
          ...{ accepted: sum('accepted'), dropped: sum('dropped'), dlq: sum('dlq'), failed: sum('failed') },
          ...{ more_rows: sum('more_rows'), duplicates: sum('duplicates') },
        }),
      )
      .execute()
}

/** Returns the series of the newest versions of a view that processed anything, of one endpoint or in sum. */
export async function listVersionSeries(
  db: Db,
  { account_id, name, endpoint_id }: { readonly account_id: string; readonly name: string; readonly endpoint_id: string | null },
  { step, sinceMs }: SeriesWindow,
): Promise<ViewSeries['versions']> {
  const versions = await db
    .selectFrom('views')
    .select(['id', 'version'])
    .where(({ and }) => and({ account_id, name }))
    .where(({ exists, selectFrom }) => {
      const rows = selectFrom('view_series')
        .select('view_series.view_id')
        .whereRef('view_series.view_id', '=', 'views.id')
        .where('view_series.step', '=', step)
        .where('view_series.bucket_start', '>=', sinceMs)
      return exists(endpoint_id === null ? rows : rows.where('view_series.endpoint_id', '=', endpoint_id))
    })
    .orderBy('version', 'desc')
    .limit(seriesLimits.versionsMax)
    .execute()
  if (versions.length === 0) return []
  let query = db
    .selectFrom('view_series')
    .select(['view_id', 'bucket_start'])
    .select(counterColumns.map((column) => sumOf(sql.ref(column)).as(column)))
    .where(
      'view_id',
      'in',
      versions.map(({ id }) => id),
    )
    .where('step', '=', step)
    .where('bucket_start', '>=', sinceMs)
  if (endpoint_id !== null) query = query.where('endpoint_id', '=', endpoint_id)
  const rows = await query.groupBy(['view_id', 'bucket_start']).orderBy('bucket_start').execute()
  const byView = Map.groupBy(rows, ({ view_id }) => view_id)
  return versions.map(({ id, version }) => ({
    view_id: id,
    view_version: version,
    buckets: (byView.get(id) ?? []).map(({ view_id: _, bucket_start, more_rows, ...counts }) => ({
      ...{ at: toTime(bucket_start), ...counts },
      rows: safeSum([counts.accepted, more_rows]),
    })),
  }))
}
