import { z } from 'zod'
import { Id } from './id.ts'
import { Timestamp } from './timestamp.ts'

/** Law: processed = accepted + dropped + dlq. `dropped` are the rows that a filter removed. */
export const ViewCounts = z.object({
  processed: z.int().min(0),
  accepted: z.int().min(0),
  dropped: z.int().min(0),
  dlq: z.int().min(0),
})
export type ViewCounts = z.infer<typeof ViewCounts>

const ErrorRate = z.number().meta({ description: 'DLQ rows among the processed of the last 24 hours, in per cent' })

/** What a view did with the records of one endpoint. */
export const EndpointViewMetrics = z.object({
  endpoint_id: Id,
  endpoint_name: z.string(),
  last_24h: ViewCounts,
  all_time: ViewCounts,
  error_rate_pct: ErrorRate,
  has_errors: z.boolean().meta({ description: 'whether there was an error in the last 24 hours' }),
  error_count_24h: z.int(),
  total_error_count: z.int(),
  last_error_at: Timestamp.nullable(),
  last_error_code: z.string().nullable(),
  last_error_message: z.string().nullable(),
  last_updated_at: Timestamp,
})
export type EndpointViewMetrics = z.infer<typeof EndpointViewMetrics>

export const ViewMetrics = z.object({
  endpoints: z.array(EndpointViewMetrics),
  aggregated: z.object({
    last_24h: ViewCounts,
    all_time: ViewCounts,
    error_rate_pct: ErrorRate,
    has_errors: z.boolean(),
    total_error_count_24h: z.int(),
  }),
})
export type ViewMetrics = z.infer<typeof ViewMetrics>

const noCounts: ViewCounts = { processed: 0, accepted: 0, dropped: 0, dlq: 0 }

export function sumCounts(counts: readonly ViewCounts[]): ViewCounts {
  return counts.reduce(
    (sum, { processed, accepted, dropped, dlq }) => ({
      processed: sum.processed + processed,
      accepted: sum.accepted + accepted,
      dropped: sum.dropped + dropped,
      dlq: sum.dlq + dlq,
    }),
    noCounts,
  )
}

/** In per cent with two decimals. A view that failed as a whole processed nothing: all of it is an error. */
export function errorRatePct({ processed, dlq }: ViewCounts, errorCount: number): number {
  if (processed === 0) return errorCount > 0 ? 100 : 0
  return Math.round((dlq / processed) * 10_000) / 100
}
