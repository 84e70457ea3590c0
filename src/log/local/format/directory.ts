/**
 * The segment files of a WAL directory: `<directory>/<log name>/<seq>-<incarnation>.<suffix>`.
 *
 * Owns: which files count as segments. Does not own: their content, or when one may be removed.
 */
import { join } from 'node:path'
import type { DirectoryEntry, Files } from '#lib/files.ts'
import { inParallel } from '#lib/in-parallel.ts'
import type { LogListing, Segment } from '../../segment-source.ts'
import { isLogName, parseSegmentName, type SegmentSuffix } from './segment-file.ts'

export type SegmentFile = Segment & { readonly path: string }

export const highWaterName = 'high-water'
/** While this file exists, the log has no open segment and gets no new one. Only ingest writes it (write/ended-logs.ts). */
export const closedName = 'closed'

export type LogFiles = LogListing & { readonly segments: readonly SegmentFile[] }

const states: Record<SegmentSuffix, Segment['state'] | undefined> = {
  open: 'open',
  poisoned: 'open',
  wal: 'sealed',
  quarantine: 'quarantined',
  salvage: undefined,
}

/** Files of a log whose size is read at the same time. */
const sizesParallel = 8

/** Returns all segments, by log name, then seq, then incarnation. Segments removed meanwhile are left out. */
export async function listSegments(files: Files, directory: string): Promise<readonly SegmentFile[]> {
  const segments: SegmentFile[] = []
  for (const logName of await listLogs(files, directory)) segments.push(...(await listLogSegments(files, directory, logName)))
  return segments
}

/** Returns whether the log is closed, and its segments. Throws if its directory cannot be read. */
export async function readLog(files: Files, directory: string, logName: string): Promise<LogFiles> {
  const path = join(directory, logName)
  const entries = await files.list(path)
  const isClosed = entries.some(({ name }) => name === closedName)
  // Listed again once the log is known to be closed: the list then has everything that was sealed before.
  return { logName, isClosed, segments: await measureSegments(files, path, logName, isClosed ? await files.list(path) : entries) }
}

/** Returns the segments of one log, in the same order. */
async function listLogSegments(files: Files, directory: string, logName: string): Promise<readonly SegmentFile[]> {
  const path = join(directory, logName)
  return await measureSegments(files, path, logName, await files.list(path))
}

/** Returns the segments among the entries of a log's directory, in the same order. */
export async function measureSegments(
  files: Files,
  logDirectory: string,
  logName: string,
  entries: readonly DirectoryEntry[],
): Promise<readonly SegmentFile[]> {
  const segments: SegmentFile[] = []
  await inParallel(sizesParallel, entries, async ({ name, kind }) => {
    const parsed = kind === 'file' ? parseSegmentName(name) : undefined
    const state = parsed === undefined ? undefined : states[parsed.suffix]
    if (parsed === undefined || state === undefined) return
    const path = join(logDirectory, name)
    const bytes = await files.bytes(path)
    // An open one that is gone was sealed under another name, which the entries may lack: it still holds back those after it.
    if (bytes === undefined && state !== 'open') return
    segments.push({ logName, seq: parsed.seq, incarnation: parsed.incarnation, path, bytes: bytes ?? 0, state })
  })
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
