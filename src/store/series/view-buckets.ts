import { metricsBucketSeconds } from '#model/limits.ts'

/** Window of recent view metrics. They are counted in buckets of five minutes; the window has the buckets that began in it. */
export const dayMs = 24 * 3600 * 1000

export function bucketStart(now: number): number {
  const bucketMs = metricsBucketSeconds * 1000
  return Math.floor(now / bucketMs) * bucketMs
}
