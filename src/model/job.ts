import { z } from 'zod'
import { Id } from './id.ts'
import { PageQuery } from './page.ts'
import { Timestamp, TimestampInput } from './timestamp.ts'

/**
 * - `backfill`: a view version over segments that were committed without it
 * - `redrive`: a view version over the rows that another version of the view refused
 */
export const JobKind = z.enum(['backfill', 'redrive'])
export type JobKind = z.infer<typeof JobKind>

/** `failed`: it came to its end, and some segments failed. */
export const JobStatus = z.enum(['running', 'paused', 'succeeded', 'failed', 'canceled'])
export type JobStatus = z.infer<typeof JobStatus>

const range = {
  from: TimestampInput.optional().meta({ description: 'segments sealed at this moment or later' }),
  to: TimestampInput.optional().meta({ description: 'segments sealed before this moment' }),
}

export const Backfill = z.strictObject({ endpoint_id: Id, ...range })
export type Backfill = z.infer<typeof Backfill>

export const Redrive = z.strictObject({
  endpoint_id: Id,
  ...range,
  from_version: z.int().min(1).optional().meta({
    description: 'whose refused rows; by default the latest other version that has some of this endpoint',
  }),
})
export type Redrive = z.infer<typeof Redrive>

export const Job = z.object({
  id: Id,
  kind: JobKind,
  status: JobStatus,
  view_id: Id,
  view_name: z.string(),
  view_version: z.int(),
  from_version: z.int().nullable().meta({ description: 'of a redrive: the version whose refused rows it takes' }),
  endpoint_id: Id,
  from: Timestamp.nullable(),
  to: Timestamp.nullable(),
  segments: z
    .object({ total: z.int(), done: z.int(), skipped: z.int(), failed: z.int() })
    .meta({ description: 'skipped: nothing was to be done, or nothing could be read; `reasons` says which' }),
  counters: z
    .object({ processed: z.int(), accepted: z.int(), dropped: z.int(), dlq: z.int() })
    .meta({ description: 'of this job alone: the metrics of the view count what was delivered live' }),
  created_by: z.string(),
  created_at: Timestamp,
  started_at: Timestamp.nullable().meta({ description: 'when a node took the first segment' }),
  finished_at: Timestamp.nullable(),
  last_error: z.string().nullable(),
})
export type Job = z.infer<typeof Job>

export const JobDetail = Job.extend({
  reasons: z
    .array(z.object({ outcome: z.enum(['skipped', 'failed']), reason: z.string(), segments: z.int() }))
    .meta({ description: 'why segments were skipped or failed, the most frequent first' }),
})
export type JobDetail = z.infer<typeof JobDetail>

export const JobsQuery = PageQuery.extend({ status: JobStatus.optional(), view_id: Id.optional() })
export type JobsQuery = z.infer<typeof JobsQuery>
