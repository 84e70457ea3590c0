/**
 * Time series of an endpoint or a view, in buckets of a few lengths.
 *
 * Owns: the lengths, the fields of a bucket, adding buckets up. Does not own: counting (ingest), storage (store/).
 * Law: sums and maxima do not depend on their order, so buckets of nodes and of shorter lengths add up.
 */
import { z } from 'zod'
import { durationBins, quantileOf } from '#lib/duration-histogram.ts'
import { safeSum } from '#lib/safe-sum.ts'
import { Id } from './id.ts'
import { type SeriesStep, seriesLimits } from './limits.ts'
import { ReportedCount } from './reported-count.ts'
import { Timestamp, TimestampInput } from './timestamp.ts'

const described = (description: string) => ({ description })

const binPattern = /^(0|[1-9]\d{0,2})$/
const Reason = z.string().regex(/^[a-z_]{1,40}$/)

/** Durations by bin of `lib/duration-histogram.ts`. */
const Durations = z.record(
  z
    .string()
    .regex(binPattern)
    .refine((bin) => Number(bin) < durationBins),
  ReportedCount,
)

/** Counts that ingest of one node has for an endpoint in one bucket. */
export const IngestCounts = z.strictObject({
  records: ReportedCount,
  /** Size of the payloads, as they are stored. */
  bytes: ReportedCount,
  /** HTTP requests and MQTT messages that were stored. */
  requests: ReportedCount,
  /** Requests, messages and connections by why they were refused. */
  refused: z.record(Reason, ReportedCount),
  /** From the end of a request to its acknowledgement. */
  acknowledged_after: Durations,
})
export type IngestCounts = z.infer<typeof IngestCounts>

/** Counts that commits add to a bucket. */
export type CommitCounts = {
  readonly commits: number
  readonly committed_records: number
  /** From the seal of a segment to its commit. */
  readonly committed_after: Readonly<Record<string, number>>
  readonly committed_after_ms_max: number
}

/** A bucket as it is stored. `undelivered_bytes_max`: the highest sample of what nodes held and no commit had. */
export type EndpointCounts = IngestCounts & CommitCounts & { readonly undelivered_bytes_max: number }

export function addEndpointCounts(parts: readonly Partial<EndpointCounts>[]): EndpointCounts {
  return {
    ...addIngestCounts(parts),
    commits: sumOf(parts, 'commits'),
    committed_records: sumOf(parts, 'committed_records'),
    committed_after: sumByName(parts, 'committed_after'),
    committed_after_ms_max: maxOf(parts, 'committed_after_ms_max'),
    undelivered_bytes_max: maxOf(parts, 'undelivered_bytes_max'),
  }
}

export function addIngestCounts(parts: readonly Partial<IngestCounts>[]): IngestCounts {
  return {
    records: sumOf(parts, 'records'),
    bytes: sumOf(parts, 'bytes'),
    requests: sumOf(parts, 'requests'),
    refused: sumByName(parts, 'refused'),
    acknowledged_after: sumByName(parts, 'acknowledged_after'),
  }
}

function sumOf<Name extends string>(parts: readonly { readonly [name in Name]?: number }[], name: Name): number {
  return safeSum(parts.map(({ [name]: value }) => value ?? 0))
}

function maxOf<Name extends string>(parts: readonly { readonly [name in Name]?: number }[], name: Name): number {
  return parts.reduce((max, { [name]: value = 0 }) => Math.max(max, value), 0)
}

function sumByName<Name extends string>(
  parts: readonly { readonly [name in Name]?: Readonly<Record<string, number>> }[],
  name: Name,
): Record<string, number> {
  const sum: Record<string, number> = {}
  for (const { [name]: counts } of parts) for (const each in counts) sum[each] = safeSum([sum[each] ?? 0, counts[each] ?? 0])
  return sum
}

const Count = z.int().min(0)
const Milliseconds = z.number().min(0)
const start = Timestamp.meta(described('when the bucket begins, in UTC'))

/** A bucket of an endpoint as the API returns it. */
export const EndpointBucket = z.object({
  at: start,
  records: Count.meta(described('records accepted')),
  bytes: Count.meta(described('bytes of these records')),
  requests: Count.meta(described('HTTP requests and MQTT messages accepted')),
  refused: z
    .record(z.string(), Count)
    .meta(described('requests, messages and connections that were refused after their endpoint was known, by reason')),
  ack_latency_ms: z
    .object({ p50: Milliseconds, p99: Milliseconds })
    .nullable()
    .meta(described('from the last byte of a request to its acknowledgement; null if nothing was accepted')),
  commits: Count.meta(described('segments delivered')),
  committed_records: Count.meta(described('records delivered')),
  commit_lag_ms: z
    .object({ p50: Milliseconds, max: Milliseconds })
    .nullable()
    .meta(described('from the seal of a segment to its commit; null if nothing was delivered')),
  undelivered_bytes_max: Count.nullable().meta(
    described(
      'most bytes that were acknowledged, on the disks of nodes, and in no commit, of samples about once a minute; null if none found any',
    ),
  ),
})
export type EndpointBucket = z.infer<typeof EndpointBucket>

export function toEndpointBucket(at: string, counts: EndpointCounts): EndpointBucket {
  const { records, bytes, requests, refused, acknowledged_after, commits, committed_records } = counts
  const [p50, p99] = [quantileOf(acknowledged_after, 0.5), quantileOf(acknowledged_after, 0.99)]
  const [lag, max] = [quantileOf(counts.committed_after, 0.5), counts.committed_after_ms_max]
  return {
    ...{ at, records, bytes, requests, refused, commits, committed_records },
    ack_latency_ms: p50 === null || p99 === null ? null : { p50, p99 },
    // A bin is a range: its middle may be above the longest of its durations.
    commit_lag_ms: lag === null ? null : { p50: Math.min(lag, max), max },
    undelivered_bytes_max: counts.undelivered_bytes_max || null,
  }
}

export const ViewBucket = z.object({
  at: start,
  accepted: Count,
  dropped: Count,
  dlq: Count,
  failed: Count.meta(described('records of segments on which the view failed as a whole')),
  rows: Count.meta(
    described('rows written: as many as records accepted, unless the view expands an array or leaves out duplicates'),
  ),
  duplicates: Count.meta(described('rows left out because another one had the same values in `dedupe_by`')),
})
export type ViewBucket = z.infer<typeof ViewBucket>

/** Lengths of buckets. */
export const stepSeconds = { '10s': 10, '1m': 60, '5m': 300, '1h': 3_600 } as const satisfies Record<SeriesStep, number>
const steps = Object.keys(stepSeconds) as [SeriesStep, ...SeriesStep[]]

const since = TimestampInput.optional().meta({
  description: 'the first bucket begins here or later; one hour ago if not set, and never longer ago than its step is kept',
})
export const SeriesQuery = z.strictObject({
  since,
  step: z
    .enum(steps)
    .optional()
    .meta({
      description: `length of a bucket: 10s is kept for an hour, 1m for 2 days, 5m and 1h for 30 days; if not set, the shortest that gives at most ${seriesLimits.bucketsPreferred} buckets`,
    }),
})
export type SeriesQuery = z.infer<typeof SeriesQuery>

const Window = {
  since: Timestamp.meta(described('when the first bucket begins')),
  until: Timestamp.meta(described('when this was read: the last bucket is not over')),
  step_seconds: z.int().meta(described('length of a bucket')),
}

export const EndpointSeries = z.object({
  endpoint_id: Id,
  ...Window,
  buckets: z.array(EndpointBucket).meta(described('in the order of time; those in which nothing happened are left out')),
})
export type EndpointSeries = z.infer<typeof EndpointSeries>

export const ViewSeries = z.object({
  view_name: z.string(),
  endpoint_id: Id.nullable(),
  ...Window,
  versions: z
    .array(
      z.object({
        view_id: Id,
        view_version: z.int(),
        buckets: z.array(ViewBucket).meta(described('in the order of time; those in which nothing happened are left out')),
      }),
    )
    .meta(described('versions of the view that processed records since then, the newest first')),
})
export type ViewSeries = z.infer<typeof ViewSeries>

export type SeriesWindow = { readonly sinceMs: number; readonly step: SeriesStep; readonly stepMs: number }

/** Returns the buckets that a query is about. `now` in epoch ms. */
export function seriesWindow({ since: asked, step: wanted }: SeriesQuery, now: number): SeriesWindow {
  const from = asked === undefined ? now - seriesLimits.windowMsDefault : Date.parse(asked)
  const step = wanted ?? steps.find((each) => isPreferred(each, now - from)) ?? '1h'
  const stepMs = stepSeconds[step] * 1000
  const oldest = now - seriesLimits.keptMs[step]
  return { step, stepMs, sinceMs: Math.ceil(Math.min(now, Math.max(from, oldest)) / stepMs) * stepMs }
}

/** A client that asks for an hour computed `since` a moment ago, so a window may be longer by less than a bucket. */
function isPreferred(step: SeriesStep, windowMs: number): boolean {
  const stepMs = stepSeconds[step] * 1000
  return windowMs < Math.min(seriesLimits.keptMs[step], seriesLimits.bucketsPreferred * stepMs) + stepMs
}

/** Returns the starts of the buckets, of each length that is still kept, that have what happened at a time (epoch ms). */
export function bucketsOf(at: number, now: number): readonly { readonly step: SeriesStep; readonly bucketStart: number }[] {
  return steps.flatMap((step) => {
    const stepMs = stepSeconds[step] * 1000
    return at < now - seriesLimits.keptMs[step] ? [] : [{ step, bucketStart: Math.floor(at / stepMs) * stepMs }]
  })
}
