import { z } from 'zod'
import { DefinitionFormat, DefinitionInput } from './definition.ts'
import { Id } from './id.ts'
import { comparisonLimits } from './limits.ts'
import { Timestamp } from './timestamp.ts'

const Version = z
  .int()
  .min(1)
  .meta({ examples: [3] })

export const CompareView = z
  .strictObject({
    definition: DefinitionInput.optional().meta({
      description: 'the changed definition; without it and without `version`, the draft of the view',
    }),
    format: DefinitionFormat.optional().meta({
      description: 'language of a definition that is sent as text; default: the format of the view',
    }),
    version: Version.optional().meta({ description: 'a version of the view, in place of a definition' }),
    base_version: Version.optional().meta({
      description: 'the version to compare with; default: the newest published one, other than `version`',
    }),
    endpoint_id: Id.optional().meta({
      description: 'the endpoint whose records are read; default: those that a version of the view is attached to',
    }),
  })
  .superRefine(({ definition, version, base_version }, context) => {
    if (definition !== undefined && version !== undefined)
      context.addIssue({ code: 'custom', path: ['version'], message: 'must not be beside a definition: give one of the two' })
    if (version !== undefined && version === base_version)
      context.addIssue({ code: 'custom', path: ['base_version'], message: 'must be another version' })
  })
export type CompareView = z.infer<typeof CompareView>

const Count = z.int().min(0)
const Percent = z.number().min(0).max(100)

export const RowOutcome = z.enum(['accepted', 'dropped', 'dlq'])
export type RowOutcome = z.infer<typeof RowOutcome>

/** A record by its place in the bucket. */
const ComparedRecord = z.object({
  endpoint_id: Id,
  commit_id: z.string(),
  segment_seq: Count,
  record_index: Count.meta({ description: 'position in the segment, from 0' }),
  record: z.string().nullable().meta({ description: 'the payload; null if it is not valid UTF-8' }),
  record_base64: z.string().nullable().meta({ description: 'the payload, if it is not valid UTF-8' }),
  is_cut: z
    .boolean()
    .meta({ description: `whether only the first ${comparisonLimits.recordCharsMax} characters of the payload are here` }),
})
export type ComparedRecord = z.infer<typeof ComparedRecord>

const ItemIndex = Count.nullable().meta({
  description: 'position of the element in the record, from 0, if both definitions expand the same array; otherwise null',
})

export const DroppedBy = z.enum(['filter', 'duplicate', 'no_element'])
export type DroppedBy = z.infer<typeof DroppedBy>

const DeadLetterReason = z.object({
  error_code: z.string(),
  column: z.string().nullable().meta({ description: 'null if the reason concerns the whole record' }),
  message: z.string(),
})
export type DeadLetterReason = z.infer<typeof DeadLetterReason>

/** The outcome of one definition for all records that were read. */
export const ComparedSide = z.object({
  view_id: Id.nullable().meta({ description: 'null for a definition of the request' }),
  version: z.int().min(1).nullable(),
  expand: z.string().nullable().meta({ description: 'the array whose elements are rows; null if each record is a row' }),
  dedupe_within: z.string().nullable().meta({
    description:
      'a window that is not applied here: rows are only compared with those of their segment, so delivery may leave out more',
  }),
  rows: Count.meta({ description: 'rows of its Parquet' }),
  duplicates: Count.meta({ description: 'rows that are not written, because one before them in their segment has the same key' }),
  accepted: Count,
  dropped: Count,
  dlq: Count,
  cast_nulls: Count.meta({ description: 'values that could not be cast and became NULL' }),
  dead_letters: z
    .array(z.object({ error_code: z.string(), column: z.string().nullable(), records: Count }))
    .meta({ description: 'by reason, the most frequent first; they add up to `dlq`' }),
})
export type ComparedSide = z.infer<typeof ComparedSide>

export const OutcomeChange = z.object({
  before: RowOutcome,
  after: RowOutcome.meta({ description: 'another one than `before`' }),
  records: Count,
  samples: z.array(
    ComparedRecord.extend({
      reason_before: DeadLetterReason.nullable().meta({ description: 'null unless it was a dead letter before' }),
      reason_after: DeadLetterReason.nullable().meta({ description: 'null unless it becomes a dead letter' }),
      dropped_by: DroppedBy.nullable().meta({
        description: 'why one of the definitions drops it: a filter, all of its rows are duplicates, or its array has no element',
      }),
    }),
  ),
})
export type OutcomeChange = z.infer<typeof OutcomeChange>

export const RowChange = z.object({
  change: z.enum(['lost', 'new']).meta({ description: 'lost: only the definition before writes the row' }),
  rows: Count,
  samples: z.array(
    ComparedRecord.extend({
      item_index: ItemIndex,
      dropped_by: DroppedBy.meta({ description: 'why the other definition does not write the row' }),
    }),
  ),
})
export type RowChange = z.infer<typeof RowChange>

const ColumnSide = z.object({
  type: z.string(),
  nulls: Count.meta({ description: 'written rows in which it is NULL' }),
  null_rate_pct: Percent,
  cast_nulls: Count.meta({ description: 'values of it that could not be cast and became NULL' }),
})

export const ComparedColumn = z.object({
  name: z.string(),
  before: ColumnSide.nullable().meta({ description: 'null for a new column' }),
  after: ColumnSide.nullable().meta({ description: 'null for a column that is lost' }),
  values_differ: Count.nullable().meta({
    description:
      'rows that both write, with another value in this column; values of different types are compared as text. Null if `matched_by` is null',
  }),
  samples: z.array(
    ComparedRecord.extend({
      item_index: ItemIndex,
      value_before: z.unknown().meta({ description: 'in the form of a preview' }),
      value_after: z.unknown(),
      is_value_cut: z
        .boolean()
        .meta({ description: `whether a value is only the first ${comparisonLimits.valueCharsMax} characters of its text` }),
    }),
  ),
})
export type ComparedColumn = z.infer<typeof ComparedColumn>

export const ComparedEndpoint = z.object({
  endpoint_id: Id,
  endpoint_name: z.string(),
  records_stored: Count.meta({ description: 'records of segments that were sealed since `since`' }),
  records_read: Count,
})
export type ComparedEndpoint = z.infer<typeof ComparedEndpoint>

export const UnreadFiles = z.object({
  reason: z.enum(['gone', 'destination_deleted', 'damaged']).meta({
    description:
      'gone: no longer in the bucket; destination_deleted: its destination was deleted; damaged: no raw Parquet, its records until there may have been read',
  }),
  files: z.int().min(1),
})
export type UnreadFiles = z.infer<typeof UnreadFiles>

/** The bound that ended the reading. */
export const ReadingBound = z.enum(['endpoints', 'files', 'bytes', 'records', 'rows', 'time', 'raw_parquet', 'unread_files'])
export type ReadingBound = z.infer<typeof ReadingBound>

export const ViewComparison = z.object({
  view_name: z.string(),
  since: Timestamp.meta({ description: 'only segments sealed at this time or later are read' }),
  records_stored: Count.meta({ description: 'records of these segments' }),
  records_read: Count.meta({ description: 'how many of them were compared: a sample of the newest unless `is_complete`' }),
  is_complete: z.boolean().meta({ description: 'whether all of them were read' }),
  bounded_by: z.array(ReadingBound).meta({
    description: `why not all were read: at most ${comparisonLimits.endpointsMax} endpoints, ${comparisonLimits.filesMax} files, ${comparisonLimits.bytesMax} bytes of files, ${comparisonLimits.recordsMax} records, ${comparisonLimits.rowsMax} rows of both definitions and ${comparisonLimits.readingMs / 1000} s; \`raw_parquet\`: segments without raw Parquet; \`unread_files\`: files that could not be read`,
  }),
  unread_files: z.array(UnreadFiles).meta({ description: 'files of these segments that could not be read, by reason' }),
  endpoints: z.array(ComparedEndpoint),
  is_same: z.boolean().meta({ description: 'whether both made the same of every record that was read, in the same columns' }),
  matched_by: z.enum(['record', 'item']).nullable().meta({
    description:
      'what rows of both have in common that are compared: their record, or the element of it if both expand the same array. Null if they expand different ones, or only one expands: then values are not compared',
  }),
  before: ComparedSide,
  after: ComparedSide,
  outcome_changes: z.array(OutcomeChange).meta({
    description: `records with another outcome; the most frequent change first, with up to ${comparisonLimits.samplesMax} samples each`,
  }),
  row_changes: z.array(RowChange).meta({
    description: `rows that only one definition writes, of records that both accept; empty unless \`matched_by\` is \`item\`; with up to ${comparisonLimits.samplesMax} samples each`,
  }),
  columns: z.array(ComparedColumn).meta({
    description: `those of the changed definition, then those that are lost; with up to ${comparisonLimits.samplesMax} samples of values that differ`,
  }),
  duration_ms: z.number(),
})
export type ViewComparison = z.infer<typeof ViewComparison>
