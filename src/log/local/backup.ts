/** Prepares copies of a WAL directory: the names of copied segments, and the seqs that a copy skips. */
import { join } from 'node:path'
import type { Files } from '#lib/files.ts'
import { listLogs } from './format/directory.ts'
import { readHighWater, writeHighWater } from './format/high-water.ts'
import { parseSegmentName } from './format/segment-file.ts'

/** Returns the name that a segment file gets when it is sealed. Undefined for one that is, and for other files. */
export function sealedNameOf(name: string): string | undefined {
  const { suffix } = parseSegmentName(name) ?? {}
  return suffix === 'open' || suffix === 'poisoned' ? `${name.slice(0, -suffix.length)}wal` : undefined
}

/** Makes each log continue so many seqs later: those in between may have been used by the original, which went on. */
export async function skipSeqs(files: Files, directory: string, count: number): Promise<void> {
  for (const name of await listLogs(files, directory)) {
    const log = join(directory, name)
    const highWater = await readHighWater(files, log)
    const seqs = (await files.list(log)).map((entry) => parseSegmentName(entry.name)?.seq ?? -1)
    const last = Math.max(typeof highWater === 'object' ? highWater.seq : -1, ...seqs)
    if (last >= 0) await writeHighWater(files, log, { seq: last + count })
  }
}
