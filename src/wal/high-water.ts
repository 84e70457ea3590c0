/**
 * The highest seq that a log may have used, in a file beside its segments: `<seq>\n`.
 *
 * Law: it is durable before a frame is written to a segment with that seq, so a seq is never used twice, even if its segment was removed.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { type Files, writeDurably } from '#lib/files.ts'
import { highWaterName } from './directory.ts'

/** Returns undefined if there is none, 'damaged' if it is not a number. */
export async function readHighWater(files: Files, logDirectory: string): Promise<number | undefined | 'damaged'> {
  const bytes = await files.read(join(logDirectory, highWaterName))
  if (bytes === undefined) return undefined
  const [, digits] = /^(\d{1,15})\n$/.exec(Buffer.from(bytes).toString('latin1')) ?? []
  return digits === undefined ? 'damaged' : Number(digits)
}

/** Syncs the directory too, which makes the names of other new files in it durable. */
export async function writeHighWater(files: Files, logDirectory: string, seq: number): Promise<void> {
  await writeDurably(files, join(logDirectory, highWaterName), Buffer.from(`${seq}\n`))
}
