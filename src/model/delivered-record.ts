import { z } from 'zod'
import { Id } from './id.ts'
import { recordSampleLimits } from './limits.ts'
import { inQuery } from './page.ts'
import { TimestampInput } from './timestamp.ts'

const Limit = inQuery(z.coerce.number().int().min(1).max(recordSampleLimits.max).default(recordSampleLimits.default))
const InstantText = z.string().meta({ description: 'ISO 8601, UTC, microseconds', examples: ['2026-11-20T08:15:30.123456Z'] })

/** Fields of every stored record. */
const Envelope = z.object({
  segment_seq: z.int().min(0),
  record_index: z.int().min(0).meta({ description: 'position in the segment, from 0' }),
  ingested_at: InstantText,
  protocol: z.string(),
  topic: z.string().nullable(),
  client_id: z.string().nullable(),
  attributes: z
    .record(z.string(), z.unknown())
    .nullable()
    .meta({ description: 'other fields of the envelope, such as MQTT properties' }),
  record: z.string().nullable().meta({ description: 'the payload; null if it is not valid UTF-8' }),
  record_base64: z.string().nullable().meta({ description: 'the payload, if it is not valid UTF-8' }),
  is_cut: z
    .boolean()
    .meta({ description: `whether only the first ${recordSampleLimits.charsMax} characters of the payload are here` }),
})

/** A record as it stands in raw Parquet. */
export const DeliveredRecord = Envelope.extend({ commit_id: z.string() })
export type DeliveredRecord = z.infer<typeof DeliveredRecord>

export const DeliveredRecords = z.object({ items: z.array(DeliveredRecord) })

export const RecordsQuery = z
  .strictObject({
    limit: Limit,
    node_id: Id.optional().meta({ description: 'with `segment_seq`: only records of this segment' }),
    segment_seq: inQuery(z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional()),
    contains: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .meta({ description: 'only records whose payload has this text', examples: ['u-1'] }),
  })
  .refine(({ node_id, segment_seq }) => (node_id === undefined) === (segment_seq === undefined), {
    path: ['segment_seq'],
    message: 'node_id and segment_seq go together',
  })
export type RecordsQuery = z.infer<typeof RecordsQuery>

/** A record that a view rejected, and why. */
export const DlqRecord = Envelope.extend({
  endpoint_id: Id,
  error_code: z.string(),
  column: z.string().nullable().meta({ description: 'null if the reason concerns the whole record' }),
  item: z
    .string()
    .nullable()
    .meta({
      description: 'the path of the element that is the reason, if the view expands an array',
      examples: ['$.items[0]'],
    }),
  message: z.string(),
})
export type DlqRecord = z.infer<typeof DlqRecord>

export const DlqRecords = z.object({ items: z.array(DlqRecord) })

/** Filters for the files to read. */
const ofFiles = {
  endpoint_id: Id.optional().meta({ description: 'only records of this endpoint' }),
  created_after: TimestampInput.optional().meta({ description: 'only records of files created at this time or later' }),
  created_before: TimestampInput.optional().meta({ description: 'only records of files created before this time' }),
}

export const DlqRecordsQuery = z.strictObject({
  limit: Limit,
  ...ofFiles,
  error_code: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .meta({ description: 'only records with this reason', examples: ['cast_failed'] }),
  column: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .meta({ description: 'only records for which this column is the reason', examples: ['amount'] }),
})
export type DlqRecordsQuery = z.infer<typeof DlqRecordsQuery>

/** Records that a view rejected for the same reason. */
export const DlqReason = z.object({
  error_code: z.string(),
  column: z.string().nullable().meta({ description: 'null if the reason concerns the whole record' }),
  rows: z.int().min(0),
  message: z.string().meta({ description: 'of the latest of them: others may have another cause' }),
  last_ingested_at: InstantText.meta({ description: 'when the latest of them was received' }),
})
export type DlqReason = z.infer<typeof DlqReason>

export const DlqReasons = z.object({
  items: z.array(DlqReason).meta({ description: `the most frequent first, at most ${recordSampleLimits.reasonsMax}` }),
  files_read: z
    .int()
    .min(0)
    .meta({ description: `the newest, at most ${recordSampleLimits.searchedFilesMax}` }),
  rows_read: z.int().min(0).meta({ description: 'records in these files' }),
})
export type DlqReasons = z.infer<typeof DlqReasons>

export const DlqReasonsQuery = z.strictObject(ofFiles)
export type DlqReasonsQuery = z.infer<typeof DlqReasonsQuery>
