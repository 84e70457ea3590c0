/**
 * The highest seq that a log may have used, in a file beside its segments: `<seq>\n`.
 *
 * Law: it is durable before a segment with that seq takes a frame, so a seq never comes again although its segment was deleted.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { type Files, writeDurably } from '#lib/files.ts'
import { highWaterName } from './directory.ts'

/** `undefined` where there is none; 'damaged' where it can't be read as a number. */
export async function readHighWater(files: Files, logDirectory: string): Promise<number | undefined | 'damaged'> {
  const bytes = await files.read(join(logDirectory, highWaterName))
  if (bytes === undefined) return undefined
  const [, digits] = /^(\d{1,15})\n$/.exec(Buffer.from(bytes).toString('latin1')) ?? []
  return digits === undefined ? 'damaged' : Number(digits)
}

/** Makes the names of other files that were just created in this directory durable as well. */
export async function writeHighWater(files: Files, logDirectory: string, seq: number): Promise<void> {
  await writeDurably(files, join(logDirectory, highWaterName), Buffer.from(`${seq}\n`))
}
