/**
 * Files that keep a journal of what is not durable yet, so that a power loss can be replayed after the process was killed.
 *
 * Owns: the journal entries of one process. Does not own: what a power loss takes (power-loss.ts).
 * Law: an intention is in the journal before its effect, and a sync is in the journal after it: the journal never calls something durable
 * that is not. What is removed or replaced keeps a hard link in the graveyard until its directory is synced.
 */
import { linkSync, lstatSync, openSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { errorCode, type Files, type OpenFile } from '#lib/files.ts'
import { overriding } from '../child/overriding.ts'

/** `at` and `since` are nanoseconds of the machine's monotonic clock, which all processes share. */
export type JournalEntry = { readonly at: number } & (
  | {
      readonly op: 'write'
      readonly inode: number
      readonly position: number
      readonly bytes: number
      readonly size: number
      readonly before: string
    }
  | { readonly op: 'truncate'; readonly inode: number; readonly to: number; readonly size: number; readonly before: string }
  /** Writes before `since` are durable. */
  | { readonly op: 'synced'; readonly inode: number; readonly since: number }
  | { readonly op: 'create' | 'link' | 'remove'; readonly path: string; readonly inode: number; readonly grave?: string }
  | { readonly op: 'rename'; readonly path: string; readonly to: string; readonly inode: number; readonly grave?: string }
  | { readonly op: 'makeDirectory' | 'removeDirectory'; readonly path: string }
  /** Names that changed before `since` are durable. */
  | { readonly op: 'directorySynced'; readonly path: string; readonly since: number }
)

type WithoutTime<T> = T extends unknown ? Omit<T, 'at'> : never

export type RecordingOptions = {
  /** The file for the entries of this process. */
  readonly journal: string
  /** A directory on the same file system. */
  readonly graveyard: string
  /** Whether a power loss may touch this path. */
  readonly covers: (path: string) => boolean
}

export function recordingFiles(base: Files, { journal, graveyard, covers }: RecordingOptions): Files {
  const descriptor = openSync(journal, 'a')
  let graves: { readonly directory: string; readonly path: string; readonly at: number }[] = []
  const record = (entry: WithoutTime<JournalEntry>): number => {
    const at = now()
    writeSync(descriptor, `${JSON.stringify({ at, ...entry })}\n`)
    return at
  }
  /** Returns the entry's part about what is at the path now, or undefined if nothing is. */
  const bury = (path: string): { readonly inode: number; readonly grave: string } | undefined => {
    const inode = inodeAt(path)
    if (inode === undefined) return undefined
    const grave = join(graveyard, `${inode}-${now()}`)
    linkSync(path, grave)
    graves.push({ directory: dirname(path), path: grave, at: now() })
    return { inode, grave }
  }
  const files: Files = {
    ...base,
    async open(path, mode) {
      if (!covers(path) || mode === 'read') return await base.open(path, mode)
      const file = await base.open(path, mode)
      const inode = inodeAt(path)
      if (inode === undefined) return file
      // The name of a new file cannot be foretold together with its inode. Nothing was written under it yet.
      if (mode === 'create') record({ op: 'create', path, inode })
      return recordingFile(file, inode, await file.bytes(), record)
    },
    async makeDirectory(path) {
      const missing: string[] = []
      for (let at = path; covers(at) && inodeAt(at) === undefined; at = dirname(at)) missing.unshift(at)
      for (const made of missing) record({ op: 'makeDirectory', path: made })
      await base.makeDirectory.call(files, path)
    },
    async syncDirectory(path) {
      const since = now()
      await base.syncDirectory(path)
      record({ op: 'directorySynced', path, since })
      for (const grave of graves) if (grave.directory === path && grave.at < since) rmSync(grave.path, { force: true })
      graves = graves.filter((grave) => grave.directory !== path || grave.at >= since)
    },
    async rename(from, to) {
      const inode = covers(from) ? inodeAt(from) : undefined
      if (inode !== undefined) {
        const replaced = bury(to)
        record({ op: 'rename', path: from, to, inode, ...(replaced === undefined ? {} : { grave: replaced.grave }) })
      }
      await base.rename(from, to)
    },
    async link(from, to) {
      const inode = covers(to) ? inodeAt(from) : undefined
      if (inode !== undefined) record({ op: 'link', path: to, inode })
      await base.link(from, to)
    },
    async remove(path) {
      const buried = covers(path) ? bury(path) : undefined
      if (buried !== undefined) record({ op: 'remove', path, ...buried })
      await base.remove(path)
    },
    async removeDirectory(path) {
      if (covers(path) && inodeAt(path) !== undefined) record({ op: 'removeDirectory', path })
      await base.removeDirectory(path)
    },
  }
  return files
}

function recordingFile(
  file: OpenFile,
  inode: number,
  bytes: number,
  record: (entry: WithoutTime<JournalEntry>) => number,
): OpenFile {
  let size = bytes
  const read = async (from: number, end: number): Promise<string> => {
    if (end <= from) return ''
    const old = Buffer.alloc(end - from)
    return old.subarray(0, await file.read(old, from)).toString('base64')
  }
  return overriding(file, {
    async write(chunks: readonly Uint8Array[], position: number) {
      let length = 0
      for (const chunk of chunks) length += chunk.byteLength
      const end = position + length
      record({ op: 'write', inode, position, bytes: length, size, before: await read(position, Math.min(end, size)) })
      size = Math.max(size, end)
      await file.write(chunks, position)
    },
    async truncate(to: number) {
      record({ op: 'truncate', inode, to, size, before: await read(to, size) })
      size = to
      await file.truncate(to)
    },
    async sync() {
      const since = now()
      await file.sync()
      record({ op: 'synced', inode, since })
    },
  })
}

function now(): number {
  return Number(process.hrtime.bigint())
}

function inodeAt(path: string): number | undefined {
  try {
    return lstatSync(path).ino
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return undefined
    throw error
  }
}
