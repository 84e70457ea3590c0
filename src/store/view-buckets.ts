import { metricsBucketSeconds } from '#model/limits.ts'

/** Recent view metrics are counted in buckets of five minutes; the last day is the buckets that began in it. */
export const dayMs = 24 * 3600 * 1000

export function bucketOf(now: number): number {
  const bucketMs = metricsBucketSeconds * 1000
  return Math.floor(now / bucketMs) * bucketMs
}
