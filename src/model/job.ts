import { z } from 'zod'
import { Id } from './id.ts'
import { PageQuery } from './page.ts'
import { Timestamp, TimestampInput } from './timestamp.ts'
import { WrittenCounts } from './view-metrics.ts'

/**
 * - `backfill`: applies a view version to segments that were committed without it
 * - `redrive`: applies a view version to the DLQ rows of another version of the view
 * - `compaction`: merges small files of an endpoint, and removes those that were merged before
 */
export const JobKind = z.enum(['backfill', 'redrive', 'compaction'])
export type JobKind = z.infer<typeof JobKind>

/** `failed`: the job ended, and some of its segments failed. */
export const JobStatus = z.enum(['running', 'paused', 'succeeded', 'failed', 'canceled'])
export type JobStatus = z.infer<typeof JobStatus>

const range = {
  from: TimestampInput.optional().meta({ description: 'only segments sealed at or after this time' }),
  to: TimestampInput.optional().meta({ description: 'only segments sealed before this time' }),
}

const publishedOnly = 'the view version is published, and the endpoint belongs to the account'

export const Backfill = z.strictObject({ endpoint_id: Id, ...range }).meta({ description: publishedOnly })
export type Backfill = z.infer<typeof Backfill>

export const Redrive = z
  .strictObject({
    endpoint_id: Id,
    ...range,
    from_version: z.int().min(1).optional().meta({
      description: 'the version whose DLQ rows are read; default: the latest other version with DLQ rows of this endpoint',
    }),
  })
  .meta({ description: `${publishedOnly}; \`from_version\` is another published or archived version of the view` })
export type Redrive = z.infer<typeof Redrive>

export const Job = z.object({
  id: Id,
  kind: JobKind,
  status: JobStatus,
  view_id: Id.nullable().meta({ description: 'null for a compaction, which covers all views and raw Parquet' }),
  view_name: z.string().nullable(),
  view_version: z.int().nullable(),
  from_version: z.int().nullable().meta({ description: 'redrive only: the version whose DLQ rows are read' }),
  endpoint_id: Id,
  endpoint_name: z.string(),
  from: Timestamp.nullable(),
  to: Timestamp.nullable(),
  segments: z.object({ total: z.int(), done: z.int(), skipped: z.int(), failed: z.int() }).meta({
    description:
      'skipped: there was nothing to do or nothing to read; see `reasons`. For a compaction: its merged files instead of segments, those that are made and those whose sources are removed',
  }),
  counters: WrittenCounts.meta({
    description: 'of this job alone. Of a compaction: rows that were moved',
  }),
  created_by: z.string(),
  created_by_name: z
    .string()
    .nullable()
    .meta({ description: 'of the person or key, as it is called now; null if it is not of the account any more' }),
  created_at: Timestamp,
  started_at: Timestamp.nullable().meta({ description: 'when a node leased the first segment' }),
  finished_at: Timestamp.nullable(),
  last_error: z.string().nullable(),
})
export type Job = z.infer<typeof Job>

export const JobDetail = Job.extend({
  reasons: z
    .array(z.object({ outcome: z.enum(['skipped', 'failed']), reason: z.string(), segments: z.int() }))
    .meta({ description: 'why segments were skipped or failed, most frequent first' }),
})
export type JobDetail = z.infer<typeof JobDetail>

export const JobsQuery = PageQuery.extend({
  status: JobStatus.optional(),
  view_id: Id.optional(),
  endpoint_id: Id.optional(),
})
export type JobsQuery = z.infer<typeof JobsQuery>
