import { type SeriesStep, seriesLimits } from '#model/limits.ts'
import type { Db } from '../store.ts'
import { rowMs } from './endpoint-series.ts'

type Table = 'endpoint_series' | 'view_series'

/** Removes the rows of the oldest bucket of a length, if it is no longer kept. Returns their number. */
export async function removeOldestBucket(db: Db, table: Table, step: string, before: number): Promise<number> {
  const oldest = await db
    .selectFrom(table)
    .select('bucket_start')
    .where('step', '=', step)
    .orderBy('bucket_start')
    .limit(1)
    .executeTakeFirst()
  if (oldest === undefined || oldest.bucket_start >= before) return 0
  const { numDeletedRows } = await db
    .deleteFrom(table)
    .where(({ and }) => and({ step, bucket_start: oldest.bucket_start }))
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/** Returns what to remove at `now` (epoch ms): until each returns 0, one bucket at a time. */
export function seriesRemovals(db: Db, now: number): readonly (() => Promise<number>)[] {
  return (['endpoint_series', 'view_series'] as const).flatMap((table) =>
    (Object.keys(seriesLimits.keptMs) as SeriesStep[]).map(
      (step) => () => removeOldestBucket(db, table, step, now - seriesLimits.keptMs[step] - rowMs(step)),
    ),
  )
}
