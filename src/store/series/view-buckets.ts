import { metricsBucketSeconds } from '#model/limits.ts'

/** Returns when the bucket began. Recent view metrics are counted in such buckets; their window has those that began in the last day. */
export function bucketStart(now: number): number {
  const bucketMs = metricsBucketSeconds * 1000
  return Math.floor(now / bucketMs) * bucketMs
}
