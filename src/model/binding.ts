import { z } from 'zod'
import { Id } from './id.ts'
import { OptionalPageQuery, pageOf } from './page.ts'
import { Timestamp, TimestampInput } from './timestamp.ts'

export const BindingStatus = z.enum(['active', 'detached'])

export const AttachView = z.strictObject({
  view_id: Id,
  is_required: z.boolean().default(false),
  canary_start_ts: TimestampInput.nullable().default(null),
})
export type AttachView = z.infer<typeof AttachView>

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
