import { z } from 'zod'
import { MayLackCommitsSince } from './commit.ts'
import { Id } from './id.ts'
import { dlqLimits } from './limits.ts'
import { OptionalPageQuery } from './page.ts'
import { Timestamp, TimestampInput } from './timestamp.ts'

/** A file with the rows of one segment that a view rejected. */
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
  redriven_at: Timestamp.nullable().meta({ description: 'when a re-drive took over its rows; null if none did' }),
  download_url: z.string().nullable().meta({
    description: 'valid for one hour, needs no credentials; null if the destination was deleted or denies reading',
  }),
})
export type DlqFile = z.infer<typeof DlqFile>

export const DlqFiles = z.object({
  view_id: Id,
  view_name: z.string(),
  view_version: z.int(),
  files: z.array(DlqFile).meta({ description: `newest first; without \`limit\` the latest ${dlqLimits.filesMax}` }),
  total: z.int().meta({ description: 'number of files that match, over all pages' }),
  may_lack_commits_since: MayLackCommitsSince,
  next_cursor: z.string().nullable().optional().meta({
    description: 'present if `limit` is given: pass it as `cursor`; null on the last page',
  }),
})
export type DlqFiles = z.infer<typeof DlqFiles>

/** Position in the list, which is ordered by both fields. */
export type DlqFilePosition = { readonly created_at: number; readonly commit_id: string }

const cursorForm = /^(\d{1,15})_([\w-]{1,200})$/

/** Encodes a position as the text that clients pass back unchanged. */
export function toCursor({ created_at, commit_id }: DlqFilePosition): string {
  return `${created_at}_${commit_id}`
}

const Cursor = z
  .string()
  .regex(cursorForm, 'is not a cursor of this service: pass the next_cursor of the previous page')
  .meta({ examples: ['1795162530123_4f8c1f0e-6a53-4c0e-9d3b-0000000000f1-k3v9x2m7q1-000000000042'] })
  .transform((text): DlqFilePosition => {
    const [, created_at, commit_id = ''] = cursorForm.exec(text) ?? []
    return { created_at: Number(created_at), commit_id }
  })

export const DlqFilesQuery = z
  .strictObject({
    endpoint_id: Id.optional().meta({ description: 'only files of this endpoint' }),
    created_after: TimestampInput.optional().meta({ description: 'only files created at this time or later' }),
    created_before: TimestampInput.optional().meta({ description: 'only files created before this time' }),
    limit: OptionalPageQuery.shape.limit.meta({
      description: `page size; without it the latest ${dlqLimits.filesMax} files are returned`,
    }),
    cursor: Cursor.optional().meta({ description: 'the `next_cursor` of the previous page; needs `limit`' }),
  })
  .refine(({ cursor, limit }) => cursor === undefined || limit !== undefined, {
    path: ['limit'],
    message: 'is needed with cursor',
  })
export type DlqFilesQuery = z.infer<typeof DlqFilesQuery>
