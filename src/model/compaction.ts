import { z } from 'zod'
import { ArtifactFile } from './commit.ts'
import { commitLimits, compactionLimits, reportedTextMax } from './limits.ts'
import { ReportedCount } from './reported-count.ts'
import { Timestamp, TimestampInput } from './timestamp.ts'
import { ViewName } from './view.ts'

/** Period whose files become one: an hour or a day, in UTC. */
export const CompactionPeriod = z.enum(['hour', 'day'])
export type CompactionPeriod = z.infer<typeof CompactionPeriod>

/** Compaction that an endpoint runs by itself. */
export const AutomaticCompaction = z
  .strictObject({
    period: CompactionPeriod.meta({ description: 'the files of each hour, or of each day, are merged once it is closed' }),
    except_views: z
      .array(ViewName)
      .max(compactionLimits.exceptViewsMax)
      .refine((names) => new Set(names).size === names.length, 'must not name a view twice')
      .default([])
      .meta({ description: 'views whose files stay as they are: they are not merged, and not removed' }),
    remove_after_hours: z
      .int()
      .min(compactionLimits.removeAfterHours.min)
      .max(compactionLimits.removeAfterHours.max)
      .nullable()
      .default(null)
      .meta({
        description:
          'removes files this long after they were merged; null keeps them. Programs that read a folder such as `views/orders/v1/`, and do not follow markers, then miss the rows of removed files: name their views in `except_views`',
      }),
  })
  .meta({
    description: 'replaces the current setting as a whole',
    examples: [{ period: 'day', except_views: [], remove_after_hours: 168 }],
  })
export type AutomaticCompaction = z.infer<typeof AutomaticCompaction>

export const Compact = z
  .strictObject({
    period: CompactionPeriod.default('day').meta({ description: 'files of different hours, or days, are not merged' }),
    from: TimestampInput.optional().meta({ description: 'only segments sealed at or after this time' }),
    to: TimestampInput.optional().meta({ description: 'only segments sealed before this time; default: all closed periods' }),
  })
  .meta({ description: '`from` is before `to`' })
export type Compact = z.infer<typeof Compact>

/** A file that a commit or an addition lists, and the rows of the new file that it became. `id` is that of its marker. */
export const CompactedSource = z.object({
  id: z.string().max(reportedTextMax),
  first_row: ReportedCount,
  rows: ReportedCount,
})
export type CompactedSource = z.infer<typeof CompactedSource>

/**
 * The marker of a compaction, written after its file. It adds no records: it says where rows are now that other markers listed.
 * `artifacts` is empty, so that readers that know nothing of compactions find nothing new.
 */
export const CompactionMarker = z.object({
  id: z.string().max(reportedTextMax),
  endpoint_id: z.string().max(reportedTextMax),
  compacted_at: Timestamp,
  destination: z.object({
    id: z.string().max(reportedTextMax),
    bucket: z.string().max(commitLimits.keyCharsMax),
    region: z.string().max(reportedTextMax),
  }),
  artifacts: z.strictObject({}),
  compacted: ArtifactFile.extend({
    /** The kind of the sources, as markers name it. */
    kind: z.string().max(reportedTextMax),
    sources: z.array(CompactedSource).min(2).max(compactionLimits.sourcesMax),
  }),
})
export type CompactionMarker = z.infer<typeof CompactionMarker>
