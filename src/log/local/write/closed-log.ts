/**
 * The file `closed` in a log's directory: the log has no open segment, and gets no new one.
 *
 * Owns: writing and removing that file. Does not own: when a log is closed (log-writer.ts), the removal of the directory (ended-logs.ts).
 * Law: the file is written after the last segment is sealed, and removed durably before another one is opened. So whoever reads it first
 * and lists the segments after that knows everything that the log will ever have.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { type Files, writeDurably } from '#lib/files.ts'
import { closedName } from '../format/directory.ts'
import { parseSegmentName } from '../format/segment-file.ts'

/** Creates the directory if need be. Returns false, and writes nothing, while a segment is not sealed. Idempotent. */
export async function closeLog(files: Files, logDirectory: string): Promise<boolean> {
  // Only files are segments, as for recovery and delivery: a directory of such a name is never sealed, and holds nothing.
  const names = (await files.list(logDirectory)).filter(({ kind }) => kind === 'file').map(({ name }) => name)
  if (names.some(isUnsealed)) return false
  if (!names.includes(closedName)) await writeDurably(files, join(logDirectory, closedName), Buffer.from('closed\n'))
  return true
}

/** The log may be written to once this resolves. */
export async function reopenLog(files: Files, logDirectory: string): Promise<void> {
  const path = join(logDirectory, closedName)
  if ((await files.bytes(path)) === undefined) return
  await files.remove(path)
  await files.syncDirectory(logDirectory)
}

function isUnsealed(name: string): boolean {
  const suffix = parseSegmentName(name)?.suffix
  return suffix === 'open' || suffix === 'poisoned'
}
