import { z } from 'zod'
import { KiB } from '#lib/bytes.ts'
import { nameWarningCodes } from './column-names.ts'
import { type Definition, DefinitionFormat, DefinitionInput } from './definition.ts'
import { previewLimits } from './limits.ts'
import { ViewCounts } from './view-metrics.ts'

export const Sample = z
  .string()
  .max(previewLimits.sampleBytesMax, { abort: true })
  .refine(
    (sample) => Buffer.byteLength(sample) <= previewLimits.sampleBytesMax,
    `must be at most ${previewLimits.sampleBytesMax / KiB} KiB`,
  )
  .meta({
    description: `one payload as a client would send it, of at most ${previewLimits.sampleBytesMax / KiB} KiB as UTF-8`,
    examples: ['{"type":"order","amount":12.5}'],
  })

export const Samples = z.array(Sample).min(1, 'must contain at least one sample').max(previewLimits.samplesMax)

export const PreviewRequest = z.strictObject({
  definition: DefinitionInput,
  format: DefinitionFormat.default('json').meta({ description: 'language of a definition that is sent as text' }),
  samples: Samples,
})
export type PreviewRequest = z.infer<typeof PreviewRequest>

/** A preview whose definition is parsed. */
export type DefinedPreview = { readonly definition: Definition; readonly samples: readonly string[] }

/** A part of a definition that works, but makes work for readers. */
export const DefinitionWarning = z.object({
  path: z.string(),
  code: z.enum([...nameWarningCodes, 'aligned_lists', 'shadow_not_changed']),
  message: z.string(),
  line: z.int().optional().meta({ description: 'position in a definition that was sent as text, from 1' }),
  column: z.int().optional(),
})
export type DefinitionWarning = z.infer<typeof DefinitionWarning>

export const PreviewIssue = z.object({
  sample_index: z.int().nullable().meta({ description: 'null if it concerns all samples' }),
  column: z.string().nullable(),
  code: z.string(),
  message: z.string(),
  item: z
    .string()
    .optional()
    .meta({ description: 'the element that it is about, in a view that expands an array', examples: ['$.items[0]'] }),
  path: z.string().optional().meta({ description: 'the part of the definition that it is about' }),
  place: z
    .object({ line: z.int(), column: z.int() })
    .optional()
    .meta({ description: 'where that part is in a definition that was sent as text, from 1' }),
})
export type PreviewIssue = z.infer<typeof PreviewIssue>

export const PreviewColumn = z.object({
  name: z.string(),
  type: z.string(),
  nullCount: z.int(),
  totalCount: z.int(),
  nullRate: z.number().meta({ description: 'from 0 to 1' }),
  sampleValues: z.array(z.unknown()),
})
export type PreviewColumn = z.infer<typeof PreviewColumn>

/** Not a zod record, which would drop a column with the name `__proto__`. */
const Row: z.ZodType<Readonly<Record<string, unknown>>> = z.any().meta({
  type: 'object',
  additionalProperties: {},
  description:
    'by column name; BIGINT, UBIGINT, HUGEINT, UHUGEINT and DECIMAL are strings, times are ISO 8601 and instants end in `Z`, NaN and infinities are strings',
})

/** The outcome of an element of an array that the view expands. */
export const PreviewItem = z.object({
  sample_index: z.int(),
  item: z.string().meta({ description: 'the path of the element in the sample', examples: ['$.items[0]'] }),
  outcome: z
    .enum(['accepted', 'dropped', 'dlq'])
    .meta({ description: '`dlq`: it, or another element of the sample, has an error' }),
  row: z.int().nullable().meta({ description: 'its index in `rows`; null if it is not accepted' }),
  error_code: z.string().nullable().meta({ description: 'if it has an error itself' }),
  column: z.string().nullable().meta({ description: 'the column that has the error' }),
})
export type PreviewItem = z.infer<typeof PreviewItem>

export const PreviewResult = z.object({
  success: z
    .boolean()
    .meta({ description: 'whether `errors` is empty: no sample went to the dead letter queue, and nothing else failed' }),
  rows: z.array(Row).meta({ description: 'rows of the accepted samples, in their order' }),
  items: z
    .array(PreviewItem)
    .optional()
    .meta({
      description: `only for a view that expands an array: the elements of the samples in order, at most ${previewLimits.itemsListedMax}`,
    }),
  columns: z.array(PreviewColumn),
  rowCount: z.int(),
  counts: ViewCounts.extend({
    duplicates: z.int().min(0).meta({
      description:
        'rows that `dedupe_by` leaves out, because one before them has the same values: their samples are `dropped`, unless they have other rows',
    }),
  }).meta({
    description: 'how many samples have which outcome; `failed`: all, if the preview failed as a whole',
  }),
  compiledSql: z.string(),
  warnings: z.array(PreviewIssue),
  errors: z.array(PreviewIssue),
  executionTimeMs: z.number(),
})
export type PreviewResult = z.infer<typeof PreviewResult>

/** The result of a preview without its SQL and its execution time. */
export type TriedView = Omit<PreviewResult, 'compiledSql' | 'executionTimeMs'>
