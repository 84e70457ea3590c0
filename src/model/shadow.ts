import { z } from 'zod'
import { Id } from './id.ts'
import { Timestamp } from './timestamp.ts'

export const StartShadow = z.strictObject({
  view_id: Id.meta({ description: 'a draft or a published version' }),
})
export type StartShadow = z.infer<typeof StartShadow>

/** A definition that runs on the segments of an endpoint to be counted, and writes no files. */
export const Shadow = z.object({
  id: Id,
  endpoint_id: Id,
  endpoint_name: z.string(),
  view_id: Id,
  view_name: z.string(),
  view_version: z.int(),
  started_at: Timestamp,
  started_by: z.string(),
})
export type Shadow = z.infer<typeof Shadow>

export const Shadows = z.object({ items: z.array(Shadow).meta({ description: 'the latest first' }) })
