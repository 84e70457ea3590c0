import { z } from 'zod'
import { CanaryRule } from './canary-rule.ts'
import { Definition, DefinitionFormat, DefinitionInput } from './definition.ts'
import { Id } from './id.ts'
import { DefinitionWarning } from './preview.ts'
import { lineOfText, paragraphs } from './text.ts'
import { Timestamp } from './timestamp.ts'

export const ViewStatus = z.enum(['draft', 'published', 'archived'])
export type ViewStatus = z.infer<typeof ViewStatus>

export const ViewName = z
  .string()
  .max(64)
  .regex(/^[a-z][a-z0-9_]*$/, 'must be lowercase letters, digits and underscores, and start with a letter')
  .meta({ examples: ['orders'] })

const Tag = lineOfText(64)
  .trim()
  .min(1)
  .meta({ examples: ['sales'] })
const Tags = z.array(Tag).max(32)
const Description = paragraphs(1024).meta({ examples: ['Orders as they arrive'] })

export const CreateView = z.strictObject({
  name: ViewName,
  definition: DefinitionInput,
  description: Description.default(''),
  format: DefinitionFormat.default('json'),
  tags: Tags.default([]),
})
export type CreateView = z.infer<typeof CreateView>

export const ChangeView = z.strictObject({
  description: Description.optional(),
  definition: DefinitionInput.optional(),
  format: DefinitionFormat.optional().meta({ description: 'default: the current format of the view' }),
  tags: Tags.optional(),
})
export type ChangeView = z.infer<typeof ChangeView>

export const CreateViewVersion = z.strictObject({
  copy_from_version: z.int().min(1).optional(),
  description: Description.optional(),
})
export type CreateViewVersion = z.infer<typeof CreateViewVersion>

export const View = z.object({
  id: Id,
  name: z.string(),
  version: z.int().min(1),
  definition: Definition,
  format: DefinitionFormat,
  status: ViewStatus,
  description: z.string(),
  tags: z.array(z.string()),
  created_by: z.string(),
  created_at: Timestamp,
  published_at: Timestamp.nullable(),
})
export type View = z.infer<typeof View>

/** The response to a request that checked the definition. */
export const CheckedView = View.extend({
  warnings: z.array(DefinitionWarning).meta({
    description:
      'names that readers of the files must quote, or that an engine does not accept, and shadows that keep an earlier definition; empty if the definition was not sent',
  }),
})
export type CheckedView = z.infer<typeof CheckedView>

export const ViewWithUsage = View.extend({ usage_count: z.int().min(0) })
export type ViewWithUsage = z.infer<typeof ViewWithUsage>

export const ViewDetail = View.extend({
  versions: z.array(View.pick({ id: true, version: true, status: true, published_at: true, created_by: true })),
  endpoints: z.array(
    z.object({
      id: Id,
      endpoint_name: z.string(),
      region: z.string(),
      binding_id: Id,
      is_required: z.boolean(),
      activated_at: Timestamp,
      canary_start_ts: Timestamp.nullable(),
      canary_rule: CanaryRule.nullable(),
    }),
  ),
  shadows: z
    .array(z.object({ id: Id, endpoint_id: Id, endpoint_name: z.string(), started_at: Timestamp }))
    .meta({ description: 'endpoints that this version shadows: it is counted there, and writes no files' }),
  stopped_canaries: z
    .array(z.object({ binding_id: Id, endpoint_id: Id, endpoint_name: z.string(), stopped_at: Timestamp, reason: z.string() }))
    .meta({ description: 'endpoints from which this version was detached by the rule of its canary, the latest first' }),
})
export type ViewDetail = z.infer<typeof ViewDetail>
