/**
 * The list of what a backup has. It is written last: a directory without it is no backup.
 */
import { join } from 'node:path'
import { z } from 'zod'
import { systemFiles } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'

/** The image of the container lets Node keep compiled code there, in the data directory. */
export const compileCacheName = 'compile-cache'

export const manifestName = 'manifest.json'

/** Higher than what an older Inlet can restore. */
const format = 1

export const BackedUpFile = z.strictObject({
  /** Below the data directory, with `/`. */
  path: z.string().regex(/^(?!\/)(?!(?:.*\/)?\.\.?(?:\/|$))[^\0]+$/),
  bytes: z.int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})
export type BackedUpFile = z.infer<typeof BackedUpFile>

export const Manifest = z.strictObject({
  format: z.literal(format),
  /** The version of Inlet that made it. */
  version: z.string(),
  /** When everything up to then was surely copied, and the earliest change that may be missing. */
  begun_at: z.iso.datetime(),
  ended_at: z.iso.datetime(),
  node_id: z.string().nullable(),
  /** `postgres`: the operator copies it. */
  database: z.enum(['sqlite', 'postgres', 'none']),
  has_secret_key: z.boolean(),
  has_buckets: z.boolean(),
  files: z.array(BackedUpFile).readonly(),
})
export type Manifest = z.infer<typeof Manifest>

export const newManifest = (manifest: Omit<Manifest, 'format'>): Manifest => ({ format, ...manifest })

/** Throws a UserError if the directory is no backup, or one that this Inlet cannot restore. */
export async function readManifest(directory: string): Promise<Manifest> {
  const bytes = await systemFiles.read(join(directory, manifestName))
  if (bytes === undefined)
    throw new UserError(`${directory} is no backup: it has no ${manifestName}, which inlet backup writes last`)
  let content: unknown
  try {
    content = JSON.parse(Buffer.from(bytes).toString())
  } catch {
    throw new UserError(`${directory} cannot be restored: its ${manifestName} is damaged`)
  }
  const found = z.looseObject({ format: z.int(), version: z.string() }).safeParse(content)
  if (found.success && found.data.format > format)
    throw new UserError(`${directory} was made by Inlet ${found.data.version}: restore it with that version or a newer one`)
  const { data } = Manifest.safeParse(content)
  if (data === undefined) throw new UserError(`${directory} cannot be restored: its ${manifestName} is damaged`)
  return data
}
