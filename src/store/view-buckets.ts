import { metricsBucketSeconds } from '#model/limits.ts'

/** What is counted of views lately is counted in buckets of five minutes; the last day is those that began in it. */
export const dayMs = 24 * 3600 * 1000

export function bucketOf(now: number): number {
  const bucketMs = metricsBucketSeconds * 1000
  return Math.floor(now / bucketMs) * bucketMs
}
