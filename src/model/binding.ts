import { z } from 'zod'
import { CanaryRule, defaultCanaryRule, SetCanaryRule } from './canary-rule.ts'
import { Id } from './id.ts'
import { OptionalPageQuery, pageOf } from './page.ts'
import { Timestamp, TimestampInput } from './timestamp.ts'

export const BindingStatus = z.enum(['active', 'detached'])

export const AttachView = z.strictObject({
  view_id: Id,
  is_required: z.boolean().default(false),
  canary_start_ts: TimestampInput.nullable().default(null),
  canary_rule: SetCanaryRule.nullable()
    .optional()
    .meta({
      description:
        'when the version is detached by itself, because it does worse than the version beside it. If not set: with the defaults of the fields if there is a `canary_start_ts`, else never. null: never',
      examples: [{ dead_letters_pct: 0.5 }],
    }),
})
export type AttachView = z.infer<typeof AttachView>

/** Returns the rule of an attachment. A canary has one unless it says otherwise. */
export function ruleOf({ canary_start_ts, canary_rule }: Pick<AttachView, 'canary_start_ts' | 'canary_rule'>): CanaryRule | null {
  if (canary_rule !== undefined) return canary_rule
  return canary_start_ts === null ? null : defaultCanaryRule
}

export const Binding = z.object({
  id: Id,
  endpoint_id: Id,
  endpoint_name: z.string(),
  view_id: Id,
  view_name: z.string(),
  view_version: z.int(),
  is_required: z.boolean(),
  activated_at: Timestamp,
  activated_by: z.string(),
  deactivated_at: Timestamp.nullable(),
  canary_start_ts: Timestamp.nullable(),
  canary_rule: CanaryRule.nullable().meta({ description: 'when it is detached by itself; null: never' }),
  stopped_reason: z.string().nullable().meta({ description: 'why its rule detached it; null if that did not happen' }),
  status: BindingStatus,
})
export type Binding = z.infer<typeof Binding>

/** Without either of the two, all bindings are listed. */
export const BindingsQuery = OptionalPageQuery
export type BindingsQuery = z.infer<typeof BindingsQuery>

/** The specification has no pagination fields here, so they are present only for a client that asks for a page. */
export const BindingList = pageOf(Binding).partial({ total: true, limit: true, offset: true, next_offset: true })
export type BindingList = z.infer<typeof BindingList>

/** The response to an attachment. */
export const AttachedView = Binding.extend({
  warnings: z.array(z.string()).meta({ description: 'why the view may not do what was meant; usually empty' }),
})
export type AttachedView = z.infer<typeof AttachedView>

/** The warning, and the status reason of the endpoint, where views are attached that no output format asks for. */
export const viewsWriteNothing =
  'output_formats leaves out parquet_views, so attached views write nothing: add it with PATCH /v1/endpoints/{id}, or detach them'
