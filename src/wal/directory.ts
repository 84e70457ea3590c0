/**
 * The segment files of a WAL directory: `<directory>/<log name>/<seq>-<incarnation>.<suffix>`.
 *
 * Owns: which files count as segments. Does not own: their content, or when one may be removed.
 */
import { join } from 'node:path'
import type { Files } from '#lib/files.ts'
import { isLogName, parseSegmentName, type SegmentIdentity, type SegmentSuffix } from './segment-file.ts'

/** `open`: not sealed yet. Its frames come before those of any later seq of its log. */
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

/** Returns all segments, by log name, then seq, then incarnation. Segments removed meanwhile are left out. */
export async function listSegments(files: Files, directory: string): Promise<readonly SegmentFile[]> {
  const segments: SegmentFile[] = []
  for (const logName of await listLogs(files, directory)) segments.push(...(await listLogSegments(files, directory, logName)))
  return segments
}

/** Returns the segments of one log, in the same order. */
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
  // A path ends with the seq in leading zeros, then the incarnation.
  return segments.sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Returns the names of all logs that have a directory, sorted. */
export async function listLogs(files: Files, directory: string): Promise<readonly string[]> {
  const entries = await files.list(directory)
  return entries
    .filter(({ name, kind }) => kind === 'directory' && isLogName(name))
    .map(({ name }) => name)
    .sort()
}
