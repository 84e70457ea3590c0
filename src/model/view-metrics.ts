import { z } from 'zod'
import { safeSum } from '#lib/safe-sum.ts'
import { Id } from './id.ts'
import { qualityLimits } from './limits.ts'
import { Timestamp } from './timestamp.ts'
import { boundCharsMax } from './types/orders.ts'
import { JsonKind } from './view-quality.ts'

const described = (description: string) => ({ description })

/** Law: processed = accepted + dropped + dlq + failed. */
export const ViewCounts = z.object({
  processed: z.int().min(0).meta(described('`accepted` + `dropped` + `dlq` + `failed`')),
  accepted: z.int().min(0),
  dropped: z.int().min(0).meta(described('records that a filter, or `dedupe_by`, left out')),
  dlq: z.int().min(0),
  failed: z.int().min(0).meta(described('records of segments on which the view failed as a whole (`view_failed`)')),
})
export type ViewCounts = z.infer<typeof ViewCounts>

/** Counts of records, and how many rows were written for the accepted ones. */
export const WrittenCounts = ViewCounts.extend({
  rows: z.int().min(0).meta(described('rows written: `accepted`, or more if the view expands an array')),
  duplicates: z
    .int()
    .min(0)
    .meta(
      described(
        'rows that `dedupe_by` left out: their records are `dropped`, unless the view expands an array and they have other rows',
      ),
    ),
})
export type WrittenCounts = z.infer<typeof WrittenCounts>

/** The outcomes that a version counted in a window of time. */
export const WindowCounts = WrittenCounts.extend({
  redriven: z
    .int()
    .min(0)
    .meta(
      described('those of `dlq` that a re-drive ran another version over, which counts them since: they are no errors any more'),
    ),
})
export type WindowCounts = z.infer<typeof WindowCounts>

const ErrorRate = z
  .number()
  .meta(
    described(
      'share of `dlq` without `redriven` and of `failed` in `processed` of the last 24 hours, in per cent; 100 if nothing was processed because the view holds back the delivery',
    ),
  )

const ColumnWindow = z.object({
  values: z.int().meta(described('accepted rows that have a value in the column')),
  nulls: z.int().meta(described('accepted rows that have NULL in the column')),
  null_rate_pct: z.number().meta(described('share of `nulls` in the accepted rows, in per cent; 0 if there are no rows')),
  cast_failures: z.int().meta(described('values that could not be cast to the type of the column: `cast_nulls` + `cast_dlq`')),
  cast_nulls: z
    .int()
    .meta(described('cast failures that became NULL, in rows that are accepted or for which the filters are unknown')),
  cast_dlq: z
    .int()
    .meta(described('cast failures that sent the row to the DLQ; a row with several errors counts for the first column only')),
  missing: z.int().meta(described('rows that went to the DLQ because the column is required and has no value')),
  min: z
    .string()
    .nullable()
    .meta(
      described(
        `smallest value of the accepted rows as text: whole numbers and decimals exact, floating point numbers in their shortest form (NaN is ignored), ISO 8601 in UTC, BOOLEAN as \`false\` or \`true\`, VARCHAR in the order of its bytes and cut to ${boundCharsMax} characters, so that it is never larger than the value. Null if there is no value, and for JSON, BLOB and lists`,
      ),
    ),
  max: z.string().nullable().meta(described('largest value, in the same format; for a longer VARCHAR, its first characters')),
})
export type ColumnWindow = z.infer<typeof ColumnWindow>

const ColumnMetrics = z.object({
  name: z.string(),
  type: z.string(),
  hidden: z
    .boolean()
    .meta(
      described(
        'whether the column is not written: then only its failures are counted, and it has no `values`, `nulls` and `min`',
      ),
    ),
  last_24h: ColumnWindow,
  all_time: ColumnWindow,
})

const UnmappedPath = z.object({
  path: z.string().meta(described(`truncated with … after ${qualityLimits.pathCharsMax} characters`)),
  types: z.array(JsonKind).meta(described('kinds of JSON values at the path')),
  records: z.int().meta(described('sampled records with a value at the path that is not null')),
  sampled_records: z.int().meta(described('records that were sampled, accepted or not')),
  seen_pct: z.number().meta(described('share of `records` in `sampled_records`, in per cent')),
  last_seen_at: Timestamp,
})

const detail = {
  columns: z.array(ColumnMetrics).optional().meta(described('with `detail=columns`: in definition order')),
  unmapped_paths: z
    .array(UnmappedPath)
    .optional()
    .meta(
      described(
        `with \`detail=columns\`: paths in the records of the last 24 hours that no column reads, without paths below them, the most frequent first, at most ${qualityLimits.pathsKeptMax}; from up to ${qualityLimits.samplesMax} records of each segment`,
      ),
    ),
}

export type ColumnDetail = {
  readonly columns: z.infer<typeof ColumnMetrics>[]
  readonly unmapped_paths: z.infer<typeof UnmappedPath>[]
}

/** Results of a view for the records of one endpoint. */
export const EndpointViewMetrics = z.object({
  endpoint_id: Id,
  endpoint_name: z.string(),
  last_24h: WindowCounts.meta(described('records that were processed in the last 24 hours, by live delivery or by a job')),
  all_time: WindowCounts,
  error_rate_pct: ErrorRate,
  has_errors: z.boolean().meta(described('whether `error_count_24h` is not 0, or `held_since` is set')),
  error_count_24h: z
    .int()
    .meta(described('`dlq` without `redriven`, `failed`, and 1 each time that the view began to hold back the delivery')),
  total_error_count: z.int().meta(described('the same of all time')),
  last_error_at: Timestamp.nullable(),
  last_error_code: z
    .string()
    .nullable()
    .meta(described('the code of a dead letter, `view_failed`, or `too_expensive` if the view exceeded a bound on its cost')),
  last_error_message: z.string().nullable(),
  last_updated_at: Timestamp,
  held_since: Timestamp.nullable().meta(
    described('since when the view, which is required, fails and holds back the delivery of the endpoint; null if it does not'),
  ),
  ...detail,
})
export type EndpointViewMetrics = z.infer<typeof EndpointViewMetrics>

export const ViewMetrics = z.object({
  endpoints: z.array(EndpointViewMetrics),
  aggregated: z.object({
    last_24h: WindowCounts,
    all_time: WindowCounts,
    error_rate_pct: ErrorRate,
    has_errors: z.boolean(),
    total_error_count_24h: z.int(),
    ...detail,
  }),
})
export type ViewMetrics = z.infer<typeof ViewMetrics>

/** The counts of records whose conversion failed as a whole. */
export function failedCounts(records: number): ViewCounts {
  return { processed: records, accepted: 0, dropped: 0, dlq: 0, failed: records }
}

/** Returns how many rows a node wrote beyond one for each accepted record. It reports no rows if there are none. */
export function moreRows({
  accepted,
  rows = accepted,
}: Pick<ViewCounts, 'accepted'> & { readonly rows?: number | undefined }): number {
  return Math.max(0, rows - accepted)
}

/** Whether every processed record is counted once. */
export function isComplete({ processed, accepted, dropped, dlq, failed }: ViewCounts): boolean {
  return processed === accepted + dropped + dlq + failed
}

export function sumWindows(counts: readonly WindowCounts[]): WindowCounts {
  const sum = (read: (each: WindowCounts) => number) => safeSum(counts.map(read))
  return {
    processed: sum(({ processed }) => processed),
    accepted: sum(({ accepted }) => accepted),
    dropped: sum(({ dropped }) => dropped),
    dlq: sum(({ dlq }) => dlq),
    failed: sum(({ failed }) => failed),
    rows: sum(({ rows }) => rows),
    duplicates: sum(({ duplicates }) => duplicates),
    redriven: sum(({ redriven }) => redriven),
  }
}

/** Returns a share in per cent with two decimals; 100 if nothing was processed because the view holds the delivery. */
export function errorRatePct({ processed, dlq, redriven, failed }: WindowCounts, isHeld: boolean): number {
  return processed === 0 && isHeld ? 100 : percentOf(dlq - redriven + failed, processed)
}

/** Returns a share in per cent with two decimals; 0 if the total is 0. Rounds neither something to 0, nor nearly all to 100. */
export function percentOf(part: number, whole: number): number {
  if (part === 0 || whole === 0) return 0
  if (part === whole) return 100
  return Math.min(Math.max(Math.round((part / whole) * 10_000), 1), 9_999) / 100
}
