import { z } from 'zod'
import { Id } from './id.ts'
import { dlqLimits } from './limits.ts'
import { Timestamp } from './timestamp.ts'

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
  files: z.array(DlqFile).meta({ description: `newest first, the latest ${dlqLimits.filesMax}` }),
  total: z.int().meta({ description: 'how many there are in all' }),
})
export type DlqFiles = z.infer<typeof DlqFiles>
