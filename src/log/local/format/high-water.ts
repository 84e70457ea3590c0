/**
 * The highest seq that a log may have used, in a file beside its segments: `<seq> <incarnation> <round> <crc>\n`, or `<seq>\n` if no segment
 * was opened with it. The round is that of the list of open segments (open-segments.ts).
 *
 * Law: it is durable before a frame is written to a segment with that seq, so a seq is never used twice, even if its segment was removed.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { type Files, writeDurably } from '#lib/files.ts'
import { highWaterName } from './directory.ts'

export type HighWater = {
  readonly seq: number
  /** The segment that was opened with it. Absent in files of older versions, and of copies. */
  readonly opened?: { readonly incarnation: string; readonly round: number }
}

/** Returns undefined if there is none, 'damaged' if it is not one. */
export async function readHighWater(files: Files, logDirectory: string): Promise<HighWater | undefined | 'damaged'> {
  const bytes = await files.read(join(logDirectory, highWaterName))
  if (bytes === undefined) return undefined
  const text = Buffer.from(bytes).toString('latin1')
  const [, seq, incarnation, round] = /^(\d{1,15})(?: ([a-z0-9]{10}) (\d{1,15}) [0-9a-f]{8})?\n$/.exec(text) ?? []
  if (seq === undefined) return 'damaged'
  if (incarnation === undefined) return { seq: Number(seq) }
  const highWater = { seq: Number(seq), opened: { incarnation, round: Number(round) } }
  return text === encode(highWater) ? highWater : 'damaged'
}

/** Syncs the directory too, which makes the names of other new files in it durable. */
export async function writeHighWater(files: Files, logDirectory: string, highWater: HighWater): Promise<void> {
  await writeDurably(files, join(logDirectory, highWaterName), Buffer.from(encode(highWater)))
}

function encode({ seq, opened }: HighWater): string {
  if (opened === undefined) return `${seq}\n`
  const text = `${seq} ${opened.incarnation} ${opened.round}`
  return `${text} ${crc32(text).toString(16).padStart(8, '0')}\n`
}
