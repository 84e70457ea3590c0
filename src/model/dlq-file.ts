import { z } from 'zod'
import { Id } from './id.ts'
import { dlqLimits, pageLimits } from './limits.ts'
import { Timestamp, TimestampInput } from './timestamp.ts'

/** A file of the rows of one segment that a view refused. */
export const DlqFile = z.object({
  endpoint_id: Id,
  endpoint_name: z.string(),
  segment_seq: z.int(),
  s3_key: z.string(),
  s3_bucket: z.string(),
  region: z.string(),
  bytes: z.int(),
  rows: z.int(),
  created_at: Timestamp,
  download_url: z.string().nullable().meta({
    description: 'valid for one hour, needs no credentials; null where the destination is gone or does not let itself be read',
  }),
})
export type DlqFile = z.infer<typeof DlqFile>

export const DlqFiles = z.object({
  view_id: Id,
  view_name: z.string(),
  view_version: z.int(),
  files: z.array(DlqFile).meta({ description: `newest first; without \`limit\` the latest ${dlqLimits.filesMax}` }),
  total: z.int().meta({ description: 'how many there are in all, of those that are asked for' }),
  next_cursor: z.string().nullable().optional().meta({
    description: 'only where `limit` is given: pass it as `cursor`; null when there is no further page',
  }),
})
export type DlqFiles = z.infer<typeof DlqFiles>

/** Where a page ends: files are ordered by both. */
export type DlqFilePlace = { readonly created_at: number; readonly commit_id: string }

const cursorForm = /^(\d{1,15})_([\w-]{1,200})$/

/** The place as text that clients hand back as it is. */
export function toCursor({ created_at, commit_id }: DlqFilePlace): string {
  return `${created_at}_${commit_id}`
}

const Cursor = z
  .string()
  .regex(cursorForm, 'is none that this service gave: pass the next_cursor of the page before')
  .transform((text): DlqFilePlace => {
    const [, created_at, commit_id = ''] = cursorForm.exec(text) ?? []
    return { created_at: Number(created_at), commit_id }
  })

export const DlqFilesQuery = z
  .strictObject({
    endpoint_id: Id.optional().meta({ description: 'only those of this endpoint' }),
    created_after: TimestampInput.optional().meta({ description: 'only those created at this moment or later' }),
    created_before: TimestampInput.optional().meta({ description: 'only those created before this moment' }),
    limit: z.coerce
      .number()
      .int()
      .min(pageLimits.min)
      .max(pageLimits.max)
      .optional()
      .meta({
        description: `asks for pages; without it the latest ${dlqLimits.filesMax} are one`,
      }),
    cursor: Cursor.optional().meta({ description: 'the `next_cursor` of the page before; needs `limit`' }),
  })
  .refine(({ cursor, limit }) => cursor === undefined || limit !== undefined, {
    path: ['limit'],
    message: 'is needed with cursor',
  })
export type DlqFilesQuery = z.infer<typeof DlqFilesQuery>
