import { z } from 'zod'
import { Definition } from './definition.ts'
import { Id } from './id.ts'
import { PreviewIssue, Samples } from './preview.ts'

/** Either samples, or an endpoint whose last records are used as samples. */
export const SuggestRequest = z
  .strictObject({
    samples: Samples.optional(),
    endpoint_id: Id.optional().meta({ description: 'use samples from its last segment that has raw Parquet' }),
  })
  .refine(({ samples, endpoint_id }) => (samples === undefined) !== (endpoint_id === undefined), {
    path: ['samples'],
    message: 'give either samples or endpoint_id',
  })
  .meta({ description: 'exactly one of `samples` and `endpoint_id`' })
export type SuggestRequest = z.infer<typeof SuggestRequest>

export const SuggestedColumn = z.object({
  name: z.string(),
  path: z.string(),
  type: z.string(),
  found: z.int().meta({ description: 'samples with a value at the path' }),
  nulls: z.int().meta({ description: 'samples with JSON null at the path, and no value' }),
  missing: z.int().meta({ description: 'samples without the path' }),
})
export type SuggestedColumn = z.infer<typeof SuggestedColumn>

export const Suggestion = z.object({
  definition: Definition.nullable().meta({ description: 'null if no column can be derived from the samples' }),
  warnings: z.array(PreviewIssue),
  sample_count: z.int().meta({ description: 'samples that are valid JSON' }),
  columns: z.array(SuggestedColumn).meta({ description: 'columns of the definition, in its order' }),
})
export type Suggestion = z.infer<typeof Suggestion>
