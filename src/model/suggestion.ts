import { z } from 'zod'
import { Definition } from './definition.ts'
import { Id } from './id.ts'
import { PreviewIssue, Samples } from './preview.ts'

/** Either samples, or the endpoint whose last records are to be the samples. */
export const SuggestRequest = z
  .strictObject({
    samples: Samples.optional(),
    endpoint_id: Id.optional().meta({ description: 'take the samples from its last segment that has raw Parquet' }),
  })
  .refine(({ samples, endpoint_id }) => (samples === undefined) !== (endpoint_id === undefined), {
    path: ['samples'],
    message: 'give either samples or endpoint_id',
  })
export type SuggestRequest = z.infer<typeof SuggestRequest>

export const SuggestedColumn = z.object({
  name: z.string(),
  path: z.string(),
  type: z.string(),
  found: z.int().meta({ description: 'samples that have a value there' }),
  nulls: z.int().meta({ description: 'samples that have JSON null there, and no value' }),
  missing: z.int().meta({ description: 'samples that have nothing there' }),
})
export type SuggestedColumn = z.infer<typeof SuggestedColumn>

export const Suggestion = z.object({
  definition: Definition.nullable().meta({ description: 'null where the samples have nothing that a column could be made of' }),
  warnings: z.array(PreviewIssue),
  sample_count: z.int().meta({ description: 'samples that are JSON' }),
  columns: z.array(SuggestedColumn).meta({ description: 'of the definition, in its order' }),
})
export type Suggestion = z.infer<typeof Suggestion>
