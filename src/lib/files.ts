/**
 * Local files. Everything that must survive a crash goes through this interface, so that tests can simulate the disk.
 *
 * Law: after `sync` the bytes of a file survive a power failure; after `syncDirectory` the names in the directory do. Nothing else does.
 */
import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { forgetDirectory, makeDurableDirectory } from './durable-directory.ts'

export interface OpenFile {
  readonly path: string
  /** Writes the chunks one after the other, starting at `position`. After an error any part of them may be in the file. */
  write(chunks: readonly Uint8Array[], position: number): Promise<void>
  /** Reads `into.length` bytes and returns how many it read: fewer only at the end of the file, 0 beyond it. */
  read(into: Uint8Array, position: number): Promise<number>
  /** As `read`, for bytes that were just read and are in memory. */
  readSync?(into: Uint8Array, position: number): number
  /** Current size in bytes. */
  bytes(): Promise<number>
  truncate(bytes: number): Promise<void>
  /** Whether any name of the file is left. False once somebody has removed it. Takes 1 µs (measured), and reads no disk. */
  isLinked(): boolean
  /** Whether `path` still names this file, and not another one or none. */
  isNamed(): Promise<boolean>
  /** fdatasync: makes bytes and size durable. After an error the file must not be trusted, and not be synced again. */
  sync(): Promise<void>
  close(): Promise<void>
}

/** `read`: an existing file. `update`: an existing file, for reading and writing. `create`: a new file; throws EEXIST if it exists. */
export type OpenMode = 'read' | 'update' | 'create'

export type DirectoryEntry = { readonly name: string; readonly kind: 'file' | 'directory' | 'other' }

export interface Files {
  open(path: string, mode: OpenMode): Promise<OpenFile>
  /** Returns the content of a small file, or undefined if it is missing. */
  read(path: string): Promise<Uint8Array | undefined>
  /** Returns the size of a file in bytes, or undefined if it is missing. */
  bytes(path: string): Promise<number | undefined>
  /** Lists a directory, in no order. Returns an empty list if it is missing. */
  list(directory: string): Promise<readonly DirectoryEntry[]>
  /**
   * Returns when a file or directory changed: its content, entries, permissions or times, not the content of the files in it. Milliseconds since 1970; undefined if
   * it is missing, or the system does not tell.
   */
  changedAt(path: string): Promise<number | undefined>
  /** Creates a directory and its missing parents. Their names are durable then, whoever created them. */
  makeDirectory(path: string): Promise<void>
  /** Creates an empty directory for files that need not survive a crash. Returns its path, which is this one with some characters more. */
  makeTemporaryDirectory(path: string): Promise<string>
  /** Returns a path beside this one that nobody else uses, for a file that will replace this one. */
  temporaryPath(path: string): string
  syncDirectory(path: string): Promise<void>
  /** Renames a file or directory. Replaces an existing file at `to`. */
  rename(from: string, to: string): Promise<void>
  /** Gives a file a second name on the same file system. Throws EEXIST if that name exists. */
  link(from: string, to: string): Promise<void>
  /** Copies a file, without its bytes where the file system can share them. Replaces an existing file at `to`. */
  copy(from: string, to: string): Promise<void>
  /** Sets who may use a file or directory. */
  setAccess(path: string, mode: number, groupId: number | null): Promise<void>
  /** Removes a file. A missing one is not an error. */
  remove(path: string): Promise<void>
  /** Removes an empty directory. A missing one is not an error. Throws ENOTEMPTY if it is not empty. */
  removeDirectory(path: string): Promise<void>
  /** Removes a directory and all in it, also while others still write there. A missing one is not an error. */
  removeTree(path: string): Promise<void>
  /** Sets the modification time of a file or directory to now, which `watch` reports. */
  touch(path: string): Promise<void>
  /**
   * Calls with the name of an entry of the directory that is new, gone, or touched; null if the directory itself was touched, or the system
   * does not tell. Only a hint: some file systems report nothing. Throws if the system has no room for a watch. Returns a function that stops it.
   */
  watch(directory: string, onChange: (name: string | null) => void): () => void
  /** Returns the room of the file system that holds the path. */
  space(path: string): Promise<DiskSpace>
}

export type DiskSpace = { readonly free_bytes: number; readonly total_bytes: number }

/** Writes a file that does not exist. It survives a crash of the process, and a power failure only once it is synced. */
export async function createFile(files: Files, path: string, bytes: Uint8Array, sync = false): Promise<void> {
  const file = await files.open(path, 'create')
  try {
    await file.write([bytes], 0)
    if (sync) await file.sync()
  } finally {
    await file.close()
  }
}

/** Replaces a file atomically and durably: temporary name, fdatasync, rename, directory fsync. Creates missing directories. */
export async function writeDurably(files: Files, path: string, bytes: Uint8Array): Promise<void> {
  await replaceDurably(files, path, (file) => file.write([bytes], 0))
}

/** The same for a file that `write` writes. */
export async function replaceDurably(files: Files, path: string, write: (file: OpenFile) => Promise<unknown>): Promise<void> {
  const temporary = files.temporaryPath(path)
  await files.makeDirectory(dirname(path))
  try {
    const file = await files.open(temporary, 'create')
    try {
      await write(file)
      await file.sync()
    } finally {
      await file.close()
    }
    await files.rename(temporary, path)
  } catch (error) {
    await files.remove(temporary).catch(() => undefined)
    throw error
  }
  await files.syncDirectory(dirname(path))
}

const temporaryName = /^(.+)\.\d+-[0-9a-f]+\.tmp$/

/**
 * Removes what replacements left that a kill interrupted. `isOwn` is asked about the name of the file that was to be replaced: call it only for
 * files that no other process may be writing now. Never throws: what stays takes a little room, no more.
 */
export async function removeLeftovers(files: Files, directory: string, isOwn: (name: string) => boolean): Promise<void> {
  const entries = await files.list(directory).catch(() => [])
  for (const { name, kind } of entries) {
    const replaced = temporaryName.exec(name)?.[1]
    if (kind !== 'file' || replaced === undefined || !isOwn(replaced)) continue
    await files.remove(join(directory, name)).catch(() => undefined)
  }
}

/** Copies a part of a file to another place. Returns where the copy ends. */
export async function copyBytes(
  from: Pick<OpenFile, 'path' | 'read'>,
  { start, end }: { readonly start: number; readonly end: number },
  to: OpenFile,
  position: number,
  bufferBytes: number,
): Promise<number> {
  const buffer = new Uint8Array(Math.min(bufferBytes, end - start))
  let at = position
  for (let reading = start; reading < end; ) {
    const got = await from.read(buffer.subarray(0, Math.min(buffer.byteLength, end - reading)), reading)
    if (got === 0) throw new Error(`${from.path} ended while it was being copied`)
    await to.write([buffer.subarray(0, got)], at)
    reading += got
    at += got
  }
  return at
}

/** Returns the code of a system error, such as ENOENT. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

const openFlags: Record<OpenMode, string> = { read: 'r', update: 'r+', create: 'wx+' }

export const systemFiles: Files = {
  async open(path, mode) {
    return new SystemFile(path, await call<number>((done) => fs.open(path, openFlags[mode], 0o600, done)))
  },
  async read(path) {
    return await unlessMissing(fs.promises.readFile(path))
  },
  async bytes(path) {
    return (await stat(path))?.size
  },
  async list(directory) {
    const entries = (await unlessMissing(fs.promises.readdir(directory, { withFileTypes: true }))) ?? []
    return entries.map((entry) => ({
      name: entry.name,
      kind: entry.isFile() ? 'file' : entry.isDirectory() ? 'directory' : 'other',
    }))
  },
  async changedAt(path) {
    return (await stat(path))?.ctimeMs
  },
  async makeDirectory(path) {
    await makeDurableDirectory(path, { syncDirectory: (parent) => this.syncDirectory(parent), mode: 0o700 })
  },
  async makeTemporaryDirectory(path) {
    const make = () => fs.promises.mkdtemp(path)
    return await make().catch(async () => {
      // Somebody may have removed the directory that it is in.
      await this.makeDirectory(dirname(path))
      return await make()
    })
  },
  // Processes of several containers may have the same id.
  temporaryPath: (path) => `${path}.${process.pid}-${randomBytes(4).toString('hex')}.tmp`,
  async syncDirectory(path) {
    const descriptor = fs.openSync(path, 'r')
    try {
      await call<void>((done) => fs.fsync(descriptor, done))
    } finally {
      fs.closeSync(descriptor)
    }
  },
  rename: (from, to) => fs.promises.rename(from, to),
  link: (from, to) => fs.promises.link(from, to),
  copy: (from, to) => fs.promises.copyFile(from, to, fs.constants.COPYFILE_FICLONE),
  async setAccess(path, mode, groupId) {
    if (groupId !== null) await fs.promises.chown(path, -1, groupId)
    await fs.promises.chmod(path, mode)
  },
  async remove(path) {
    // Not rm: after a failed unlink it lists the path, and reports the error of that.
    await unlessMissing(fs.promises.unlink(path))
  },
  async removeDirectory(path) {
    await unlessMissing(fs.promises.rmdir(path))
    forgetDirectory(path)
  },
  async removeTree(path) {
    await fs.promises.rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
    forgetDirectory(path)
  },
  async touch(path) {
    const now = new Date()
    await fs.promises.utimes(path, now, now)
  },
  watch(directory, onChange) {
    const watcher = fs.watch(directory, { persistent: false }, (_event, name) =>
      // inotify gives a change of the directory itself this name.
      onChange(name === basename(directory) ? null : name),
    )
    // A directory that is removed ends its watch; a watch is only a hint.
    watcher.on('error', () => watcher.close())
    return () => watcher.close()
  },
  async space(path) {
    const { bavail, blocks, bsize } = await fs.promises.statfs(path)
    return { free_bytes: bavail * bsize, total_bytes: blocks * bsize }
  },
}

/**
 * Writes up to this size go to the page cache synchronously: that takes 15 µs, while a thread of the pool takes 65 to 700 µs (measured).
 * Only the sync waits for the disk, and it never blocks the event loop.
 */
const SYNC_WRITE_BYTES_MAX = 256 * 1024

/** Uses callbacks, not `fs.promises`: a FileHandle costs twice as much per call, and every WAL commit waits for these calls. */
class SystemFile implements OpenFile {
  readonly path: string
  /** -1 once it is closed: the system gives the number to the next file. */
  #descriptor: number

  constructor(path: string, descriptor: number) {
    this.path = path
    this.#descriptor = descriptor
  }

  async write(chunks: readonly Uint8Array[], position: number): Promise<void> {
    let rest = chunks.filter((chunk) => chunk.byteLength > 0)
    let at = position
    let bytes = 0
    for (const chunk of rest) bytes += chunk.byteLength
    while (rest.length > 0) {
      const written =
        bytes <= SYNC_WRITE_BYTES_MAX
          ? fs.writevSync(this.#descriptor, rest, at)
          : await call<number>((done) => fs.writev(this.#descriptor, rest, at, done))
      at += written
      rest = dropBytes(rest, written)
    }
  }

  async read(into: Uint8Array, position: number): Promise<number> {
    let filled = 0
    while (filled < into.byteLength) {
      const at = position + filled
      const got = await call<number>((done) => fs.read(this.#descriptor, into, filled, into.byteLength - filled, at, done))
      if (got === 0) break
      filled += got
    }
    return filled
  }

  readSync(into: Uint8Array, position: number): number {
    let filled = 0
    while (filled < into.byteLength) {
      const got = fs.readSync(this.#descriptor, into, filled, into.byteLength - filled, position + filled)
      if (got === 0) break
      filled += got
    }
    return filled
  }

  async bytes(): Promise<number> {
    return fs.fstatSync(this.#descriptor).size
  }

  isLinked(): boolean {
    try {
      return fs.fstatSync(this.#descriptor).nlink > 0
    } catch {
      // A disk that fails has not removed the file.
      return true
    }
  }

  async isNamed(): Promise<boolean> {
    const own = await call<fs.BigIntStats>((done) => fs.fstat(this.#descriptor, { bigint: true }, done))
    const named = await unlessMissing(fs.promises.stat(this.path, { bigint: true }))
    return named !== undefined && named.ino === own.ino && named.dev === own.dev
  }

  truncate(bytes: number): Promise<void> {
    return call((done) => fs.ftruncate(this.#descriptor, bytes, done))
  }

  sync(): Promise<void> {
    return call((done) => fs.fdatasync(this.#descriptor, done))
  }

  async close(): Promise<void> {
    const descriptor = this.#descriptor
    this.#descriptor = -1
    if (descriptor !== -1) fs.closeSync(descriptor)
  }
}

function call<T>(start: (done: (error: Error | null, value?: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => start((error, value) => (error === null ? resolve(value as T) : reject(error))))
}

/** Not by `fs.promises`, which takes twice the time: a node with many logs calls it for each of them. */
function stat(path: string): Promise<fs.Stats | undefined> {
  return unlessMissing(call<fs.Stats>((done) => fs.stat(path, done)))
}

async function unlessMissing<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Returns the chunks without their first `bytes` bytes. */
function dropBytes(chunks: Uint8Array[], bytes: number): Uint8Array[] {
  let skipped = 0
  for (const [index, chunk] of chunks.entries()) {
    if (skipped + chunk.byteLength > bytes) return [chunk.subarray(bytes - skipped), ...chunks.slice(index + 1)]
    skipped += chunk.byteLength
  }
  return []
}
