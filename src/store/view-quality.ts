/**
 * How good the data of views is: in buckets of five minutes for the last day, and for ever.
 *
 * Law: counted once, in the transaction that records a commit for the first time, which holds its endpoint's row in `commit_heads`. So
 * nobody else reads and writes rows of this endpoint meanwhile, and what is read, added to and written back loses nothing.
 */
import type { ViewOutcome } from '#model/commit.ts'
import { addQualities, noQuality, type QualitySum, toSum } from '#model/view-quality.ts'
import { fromJson, toTime } from './columns.ts'
import { storeLimits } from './limits.ts'
import type { Db, Tx } from './store.ts'
import { bucketOf, dayMs } from './view-buckets.ts'

/** The row of all time, which has no bucket. */
const ALL_TIME = -1

/** Adds the outcomes of one new commit, which happened at `now` (epoch ms). */
export async function addViewQuality(db: Tx, endpoint_id: string, outcomes: readonly ViewOutcome[], now: number): Promise<void> {
  const added = new Map<string, QualitySum>()
  for (const { view_id, quality } of outcomes) if (quality !== undefined) added.set(view_id, toSum(quality, toTime(now)))
  if (added.size === 0) return
  const buckets = [bucketOf(now), ALL_TIME]
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
      // Paths are of the last day: in the row of all time they would only grow old.
      const more = bucket_start === ALL_TIME ? { ...sum, unmapped: [] } : sum
      return { view_id, endpoint_id, bucket_start, quality: JSON.stringify(addQualities([...before, more])) }
    }),
  )
  for (let at = 0; at < rows.length; at += storeLimits.insertRowsMax) {
    await db
      .insertInto('view_quality')
      .values(rows.slice(at, at + storeLimits.insertRowsMax))
      .onConflict((conflict) =>
        conflict
          .columns(['view_id', 'endpoint_id', 'bucket_start'])
          .doUpdateSet(({ ref }) => ({ quality: ref('excluded.quality') })),
      )
      .execute()
  }
}

export type QualityWindows = { readonly last_24h: QualitySum; readonly all_time: QualitySum }

/** Of one view version on one endpoint. The window is the 288 buckets up to now. The caller asks for the view and the endpoint before. */
export async function getViewQuality(db: Db, view_id: string, endpoint_id: string, now: number): Promise<QualityWindows> {
  const rows = await db
    .selectFrom('view_quality')
    .select(['bucket_start', 'quality'])
    .where('view_id', '=', view_id)
    .where('endpoint_id', '=', endpoint_id)
    .where((either) => either.or([either('bucket_start', '=', ALL_TIME), either('bucket_start', '>', now - dayMs)]))
    .execute()
  const [ever, lately] = [rows.find(isAllTime), rows.filter((row) => !isAllTime(row))]
  return {
    last_24h: addQualities(lately.map(({ quality }) => fromJson<QualitySum>(quality))),
    all_time: ever === undefined ? noQuality : fromJson<QualitySum>(ever.quality),
  }
}

/** Removes buckets that began before `before` (epoch ms). What is of all time stays. */
export async function removeViewQualityBefore(db: Db, before: number): Promise<void> {
  await db.deleteFrom('view_quality').where('bucket_start', '>', ALL_TIME).where('bucket_start', '<', before).execute()
}

function isAllTime({ bucket_start }: { readonly bucket_start: number }): boolean {
  return bucket_start === ALL_TIME
}
