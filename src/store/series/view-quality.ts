/**
 * Column quality of views: in buckets of five minutes for the last day, and lifetime sums.
 *
 * Law: a commit, and the output that a job adds to one, is counted once, in the transaction that first records it. That transaction has locked the endpoint's row in
 * `commit_heads`, so this endpoint has no concurrent writer, and read-modify-write is safe.
 */

import { dayMs } from '#lib/time-units.ts'
import type { ViewOutcome } from '#model/commit.ts'
import { addQualities, noQuality, type QualitySum, toSum } from '#model/view-quality.ts'
import { fromJson, toTime } from '../columns.ts'
import { engineLimits } from '../engines/limits.ts'
import type { Db, Tx } from '../store.ts'
import { bucketStart } from './view-buckets.ts'

/** `bucket_start` of the row with lifetime sums. */
const ALL_TIME = -1

/** Adds the outcomes of one new commit, or of one output that a job added, made at `now` (epoch ms). */
export async function addViewQuality(db: Tx, endpoint_id: string, outcomes: readonly ViewOutcome[], now: number): Promise<void> {
  const added = new Map<string, QualitySum>()
  for (const { view_id, quality } of outcomes) if (quality !== undefined) added.set(view_id, toSum(quality, toTime(now)))
  if (added.size === 0) return
  const buckets = [bucketStart(now), ALL_TIME]
  const known = await db
    .selectFrom('view_quality')
    .selectAll()
    .where('endpoint_id', '=', endpoint_id)
    .where('view_id', 'in', [...added.keys()])
    .where('bucket_start', 'in', buckets)
    .execute()
  const rows = [...added].flatMap(([view_id, sum]) =>
    buckets.map((bucket_start) => {
      const row = known.find((each) => each.view_id === view_id && each.bucket_start === bucket_start)
      const before = row === undefined ? [] : [fromJson<QualitySum>(row.quality)]
      // Unmapped paths are kept for the last day only.
      const more = bucket_start === ALL_TIME ? { ...sum, unmapped: [] } : sum
      return { view_id, endpoint_id, bucket_start, quality: JSON.stringify(addQualities([...before, more])) }
    }),
  )
  for (let at = 0; at < rows.length; at += engineLimits.insertRowsMax) {
    await db
      .insertInto('view_quality')
      .values(rows.slice(at, at + engineLimits.insertRowsMax))
      .onConflict((conflict) =>
        conflict
          .columns(['view_id', 'endpoint_id', 'bucket_start'])
          .doUpdateSet(({ ref }) => ({ quality: ref('excluded.quality') })),
      )
      .execute()
  }
}

export type QualityWindows = { readonly last_24h: QualitySum; readonly all_time: QualitySum }

/** Returns the quality of one view version on one endpoint. The window is the 288 buckets up to now. The caller checks both ids. */
export async function getViewQuality(db: Db, view_id: string, endpoint_id: string, now: number): Promise<QualityWindows> {
  const rows = await db
    .selectFrom('view_quality')
    .select(['bucket_start', 'quality'])
    .where(({ and }) => and({ view_id, endpoint_id }))
    .where(({ eb, or }) => or([eb('bucket_start', '=', ALL_TIME), eb('bucket_start', '>', now - dayMs)]))
    .execute()
  const [lifetime, recent] = [rows.find(isAllTime), rows.filter((row) => !isAllTime(row))]
  return {
    last_24h: addQualities(recent.map(({ quality }) => fromJson<QualitySum>(quality))),
    all_time: lifetime === undefined ? noQuality : fromJson<QualitySum>(lifetime.quality),
  }
}

/** Removes the rows of the oldest bucket, if it began before `before` (epoch ms). Returns their number. Lifetime sums stay. */
export async function removeViewQualityBefore(db: Db, before: number): Promise<number> {
  const oldest = await db
    .selectFrom('view_quality')
    .select('bucket_start')
    .where('bucket_start', '>', ALL_TIME)
    .orderBy('bucket_start')
    .limit(1)
    .executeTakeFirst()
  if (oldest === undefined || oldest.bucket_start >= before) return 0
  const { numDeletedRows } = await db
    .deleteFrom('view_quality')
    .where('bucket_start', '=', oldest.bucket_start)
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

function isAllTime({ bucket_start }: { readonly bucket_start: number }): boolean {
  return bucket_start === ALL_TIME
}
