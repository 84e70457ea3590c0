/**
 * The segments that lie in a WAL directory: `<directory>/<log name>/<seq>-<incarnation>.<suffix>`.
 *
 * Owns: which files those are. Does not own: what is in them; that a segment may only be removed after its commit is durable.
 */
import { join } from 'node:path'
import type { Files } from '#lib/files.ts'
import { isLogName, parseSegmentName, type SegmentIdentity, type SegmentSuffix } from './segment-file.ts'

/** `open`: not to be delivered yet, but everything in it comes before any later seq of its log. */
type SegmentState = 'open' | 'sealed' | 'quarantined'

export type SegmentFile = SegmentIdentity & {
  readonly path: string
  readonly bytes: number
  readonly state: SegmentState
}

export const highWaterName = 'high-water'

const states: Record<SegmentSuffix, SegmentState | undefined> = {
  open: 'open',
  poisoned: 'open',
  wal: 'sealed',
  quarantine: 'quarantined',
  salvage: undefined,
}

/** All segments, by log name, then seq, then incarnation. Those that vanish while it looks are left out. */
export async function listSegments(files: Files, directory: string): Promise<readonly SegmentFile[]> {
  const segments: SegmentFile[] = []
  for (const logName of await listLogs(files, directory)) segments.push(...(await listLogSegments(files, directory, logName)))
  return segments
}

/** The segments of one log, in the same order. */
export async function listLogSegments(files: Files, directory: string, logName: string): Promise<readonly SegmentFile[]> {
  const segments: SegmentFile[] = []
  for (const { name, kind } of await files.list(join(directory, logName))) {
    const parsed = kind === 'file' ? parseSegmentName(name) : undefined
    const state = parsed === undefined ? undefined : states[parsed.suffix]
    if (parsed === undefined || state === undefined) continue
    const path = join(directory, logName, name)
    const bytes = await files.bytes(path)
    if (bytes !== undefined) segments.push({ logName, seq: parsed.seq, incarnation: parsed.incarnation, path, bytes, state })
  }
  // The path is the seq with leading zeros, then the incarnation.
  return segments.sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Names of the logs that have a directory, in order. */
export async function listLogs(files: Files, directory: string): Promise<readonly string[]> {
  const entries = await files.list(directory)
  return entries
    .filter(({ name, kind }) => kind === 'directory' && isLogName(name))
    .map(({ name }) => name)
    .sort()
}
