/**
 * A disk in memory that loses data: a model of a page cache over a disk, with faults and power cuts.
 *
 * - Unsynced bytes may vanish, survive or be torn, independently for each 512-byte sector. So may a change of the size.
 * - Names that were created, renamed or removed without a directory fsync are lost from some point on, independently for each directory.
 * - After a failed fdatasync some sectors never reach the disk, but the kernel believes they did: reads show them until a crash.
 */
import { Buffer } from 'node:buffer'
import { basename, dirname, join } from 'node:path'
import type { DirectoryEntry, Files, OpenFile, OpenMode } from '#lib/files.ts'
import type { Random } from '#lib/random.ts'

export type DiskOperation = {
  readonly kind:
    | 'open'
    | 'write'
    | 'read'
    | 'sync'
    | 'truncate'
    | 'close'
    | 'rename'
    | 'link'
    | 'copy'
    | 'remove'
    | 'removeDirectory'
    | 'touch'
    | 'list'
    | 'makeDirectory'
    | 'syncDirectory'
  readonly path: string
  readonly bytes?: number
}

/** `written`: the bytes of a failing write that reach the file nevertheless. `isDone`: it fails, but has its effect. */
export type Fault =
  | { readonly error: string; readonly written?: number; readonly isDone?: boolean }
  | 'crash before'
  | 'crash after'
  | 'kill before'
  | 'kill after'

const SECTOR_BYTES = 512

class Inode {
  bytes = Buffer.alloc(0)
  durable = Buffer.alloc(0)
  readonly dirty = new Set<number>()
}

type Names = Map<string, Inode | 'directory'>
type NameChange = (names: Names) => void

export class FaultyDisk {
  /** Returns the fault of an operation, if any. */
  fault: (operation: DiskOperation) => Fault | undefined = () => undefined
  /** Capacity of the disk in bytes. */
  capacityBytes = Number.POSITIVE_INFINITY
  readonly #random: Random
  #names: Names = new Map([['/', 'directory']])
  #durableNames: Names = new Map([['/', 'directory']])
  readonly #pending = new Map<string, NameChange[]>()
  #generation = 0
  #newNames = 0

  /** `random` decides what a crash and a failed fsync leave behind. */
  constructor(random: Random) {
    this.#random = random
  }

  /** Returns the disk as one run of a program sees it. After a crash every operation on it fails. */
  mount(): Files {
    const generation = this.#generation
    const run = <T>(operation: DiskOperation, effect: (fault: Exclude<Fault, string> | undefined) => T) =>
      this.#run(generation, operation, effect)
    return {
      open: (path, mode) => run({ kind: 'open', path }, () => this.#open(path, mode, run)),
      read: (path) =>
        run({ kind: 'read', path }, () => (this.#names.has(path) ? Buffer.from(this.#inode(path).bytes) : undefined)),
      bytes: (path) =>
        run({ kind: 'read', path }, () => (this.#names.has(path) ? this.#inode(path).bytes.byteLength : undefined)),
      list: (path) => run({ kind: 'list', path }, () => this.#list(path)),
      changedAt: () => Promise.resolve(undefined),
      makeDirectory: (path) => run({ kind: 'makeDirectory', path }, () => this.#makeDirectory(path)),
      makeTemporaryDirectory: (path) =>
        run({ kind: 'makeDirectory', path }, () => {
          const made = `${path}${this.#nextName()}`
          this.#makeDirectory(made)
          return made
        }),
      temporaryPath: (path) => `${path}.1-${this.#nextName()}.tmp`,
      syncDirectory: (path) => run({ kind: 'syncDirectory', path }, () => this.#syncDirectory(path)),
      rename: (from, to) => run({ kind: 'rename', path: from }, () => this.#rename(from, to)),
      link: (from, to) => run({ kind: 'link', path: from }, () => this.#link(from, to)),
      copy: (from, to) => run({ kind: 'copy', path: from }, () => this.#copy(from, to)),
      setAccess: () => Promise.resolve(),
      remove: (path) =>
        run({ kind: 'remove', path }, () => {
          if (this.#names.has(path)) this.#change(path, (names) => names.delete(path))
        }),
      removeDirectory: (path) => run({ kind: 'removeDirectory', path }, () => this.#removeDirectory(path)),
      removeTree: (path) => run({ kind: 'removeDirectory', path }, () => this.#removeTree(path)),
      touch: (path) => run({ kind: 'touch', path }, () => undefined),
      watch: () => () => undefined,
      space: () => Promise.resolve({ free_bytes: this.capacityBytes - this.usedBytes(), total_bytes: this.capacityBytes }),
    }
  }

  /** Kills the program: what it mounted fails from now on, but the page cache survives. */
  kill(): void {
    this.#generation += 1
  }

  /** Cuts the power. Everything mounted before fails from now on. */
  crash(): void {
    this.#generation += 1
    for (const [directory, changes] of this.#pending) {
      const survive = Math.floor(this.#random.fraction() * (changes.length + 1))
      for (const change of changes.slice(0, survive)) change(this.#durableNames)
      this.#pending.delete(directory)
    }
    for (const path of [...this.#durableNames.keys()].sort()) {
      if (path !== '/' && !this.#durableNames.has(dirname(path))) this.#durableNames.delete(path)
    }
    this.#names = new Map(this.#durableNames)
    for (const inode of new Set(this.#names.values())) if (inode !== 'directory') this.#lose(inode)
  }

  /** Changes bytes in place, as a failing disk does. */
  damage(path: string, change: (bytes: Buffer) => void): void {
    const inode = this.#inode(path)
    change(inode.bytes)
    change(inode.durable)
  }

  paths(): readonly string[] {
    return [...this.#names.keys()].filter((path) => this.#names.get(path) !== 'directory').sort()
  }

  async #run<T>(
    generation: number,
    operation: DiskOperation,
    effect: (fault: Exclude<Fault, string> | undefined) => T,
  ): Promise<T> {
    await (operation.kind === 'sync' ? new Promise((resolve) => setImmediate(resolve)) : Promise.resolve())
    if (generation !== this.#generation) throw systemError('ECRASHED', operation)
    const fault = this.fault(operation)
    if (fault === 'crash before') this.crash()
    if (fault === 'kill before') this.kill()
    if (generation !== this.#generation) throw systemError('ECRASHED', operation)
    const own = typeof fault === 'object' ? fault : undefined
    const isPartial = operation.kind === 'write' || operation.kind === 'sync'
    if (own !== undefined && !isPartial && own.isDone !== true) throw systemError(own.error, operation)
    const result = effect(own)
    if (own !== undefined) throw systemError(own.error, operation)
    if (fault === 'crash after' || fault === 'kill after') {
      if (fault === 'crash after') this.crash()
      else this.kill()
      throw systemError('ECRASHED', operation)
    }
    return result
  }

  #open(
    path: string,
    mode: OpenMode,
    run: <T>(operation: DiskOperation, effect: (fault: Exclude<Fault, string> | undefined) => T) => Promise<T>,
  ): OpenFile {
    if (mode === 'create') {
      if (this.#names.has(path)) throw systemError('EEXIST', { kind: 'open', path })
      const made = new Inode()
      this.#change(path, (names) => names.set(path, made))
    }
    const inode = this.#inode(path)
    let isOpen = true
    const use = <T>(operation: Omit<DiskOperation, 'path'>, effect: (fault: Exclude<Fault, string> | undefined) => T) => {
      if (!isOpen) throw new Error(`${operation.kind} of ${path} after it was closed`)
      return run({ ...operation, path }, effect)
    }
    return {
      path,
      write: (chunks, position) => {
        const bytes = Buffer.concat(chunks)
        return use({ kind: 'write', bytes: bytes.byteLength }, (fault) => {
          const room = this.capacityBytes - this.usedBytes() + Math.max(inode.bytes.byteLength - position, 0)
          const fits = Math.max(0, Math.min(fault?.written ?? (fault === undefined ? bytes.byteLength : 0), room))
          write(inode, bytes.subarray(0, fits), position)
          if (fault === undefined && fits < bytes.byteLength) throw systemError('ENOSPC', { kind: 'write', path })
        })
      },
      read: (into, position) => use({ kind: 'read' }, () => inode.bytes.copy(into, 0, position)),
      bytes: () => use({ kind: 'read' }, () => inode.bytes.byteLength),
      truncate: (bytes) => use({ kind: 'truncate' }, () => truncate(inode, bytes)),
      isLinked: () => [...this.#names.values()].includes(inode),
      isNamed: () => use({ kind: 'read' }, () => this.#names.get(path) === inode),
      sync: () => use({ kind: 'sync' }, (fault) => this.#sync(inode, fault !== undefined)),
      close: () =>
        use({ kind: 'close' }, () => {
          isOpen = false
        }),
    }
  }

  #sync(inode: Inode, fails: boolean): void {
    const size = fails && this.#random.fraction() < 0.5 ? inode.durable.byteLength : inode.bytes.byteLength
    inode.durable = resized(inode.durable, size)
    for (const sector of inode.dirty) if (!fails || this.#random.fraction() < 0.5) copySector(inode.bytes, inode.durable, sector)
    inode.dirty.clear()
  }

  #lose(inode: Inode): void {
    const [least, most] = [inode.durable.byteLength, inode.bytes.byteLength].sort((a, b) => a - b) as [number, number]
    const choice = this.#random.fraction()
    const size =
      choice < 0.3
        ? inode.durable.byteLength
        : choice < 0.6
          ? inode.bytes.byteLength
          : least + Math.floor(this.#random.fraction() * (most - least + 1))
    const after = resized(inode.durable, size)
    const share = [0, 0.5, 1][Math.floor(this.#random.fraction() * 3)] ?? 0
    for (const sector of inode.dirty) if (this.#random.fraction() < share) copySector(inode.bytes, after, sector)
    inode.bytes = after
    inode.durable = Buffer.from(after)
    inode.dirty.clear()
  }

  #list(directory: string): readonly DirectoryEntry[] {
    if (this.#names.get(directory) instanceof Inode) throw systemError('ENOTDIR', { kind: 'list', path: directory })
    return [...this.#names]
      .filter(([path]) => path !== '/' && dirname(path) === directory)
      .map(([path, node]) => ({ name: basename(path), kind: node === 'directory' ? 'directory' : 'file' }))
  }

  #makeDirectory(path: string): void {
    if (this.#names.has(path)) return
    this.#makeDirectory(dirname(path))
    this.#change(path, (names) => names.set(path, 'directory'))
    this.#syncDirectory(dirname(path))
  }

  #removeDirectory(path: string): void {
    if (this.#list(path).length > 0) throw systemError('ENOTEMPTY', { kind: 'removeDirectory', path })
    if (this.#names.has(path)) this.#change(path, (names) => names.delete(path))
  }

  #removeTree(path: string): void {
    const inside = [...this.#names.keys()].filter((name) => name.startsWith(`${path}/`))
    for (const name of [...inside.toReversed(), path])
      if (this.#names.has(name)) this.#change(name, (names) => names.delete(name))
  }

  #syncDirectory(path: string): void {
    if (this.#names.get(path) !== 'directory') throw systemError('ENOENT', { kind: 'syncDirectory', path })
    for (const change of this.#pending.get(path) ?? []) change(this.#durableNames)
    this.#pending.delete(path)
  }

  #rename(from: string, to: string): void {
    const inode = this.#inode(from)
    let isMoved = false
    this.#change(to, (names) => {
      names.delete(from)
      names.set(to, inode)
      isMoved ||= names === this.#durableNames
    })
    if (dirname(from) === dirname(to)) return
    this.#change(from, (names) => {
      names.delete(from)
      // The old name is never durably gone without the new one: file systems keep a journal for that.
      if (!isMoved) names.set(to, inode)
    })
  }

  #link(from: string, to: string): void {
    if (this.#names.has(to)) throw systemError('EEXIST', { kind: 'link', path: to })
    const inode = this.#inode(from)
    this.#change(to, (names) => names.set(to, inode))
  }

  #copy(from: string, to: string): void {
    const copied = new Inode()
    write(copied, this.#inode(from).bytes, 0)
    this.#change(to, (names) => names.set(to, copied))
  }

  #change(path: string, change: NameChange): void {
    const directory = dirname(path)
    if (this.#names.get(directory) !== 'directory') throw systemError('ENOENT', { kind: 'open', path })
    change(this.#names)
    this.#pending.set(directory, [...(this.#pending.get(directory) ?? []), change])
  }

  #nextName(): string {
    this.#newNames += 1
    return String(this.#newNames)
  }

  #inode(path: string): Inode {
    const node = this.#names.get(path)
    if (node === undefined) throw systemError('ENOENT', { kind: 'open', path })
    if (node === 'directory') throw systemError('EISDIR', { kind: 'open', path })
    return node
  }

  usedBytes(): number {
    let bytes = 0
    for (const node of this.#names.values()) if (node !== 'directory') bytes += node.bytes.byteLength
    return bytes
  }
}

function systemError(code: string, { kind, path }: DiskOperation): Error {
  return Object.assign(new Error(`${code}: ${kind} '${join(path)}'`), { code })
}

function write(inode: Inode, bytes: Buffer, position: number): void {
  if (bytes.byteLength === 0) return
  const end = position + bytes.byteLength
  if (end > inode.bytes.byteLength) inode.bytes = resized(inode.bytes, end)
  bytes.copy(inode.bytes, position)
  for (let sector = Math.floor(position / SECTOR_BYTES); sector * SECTOR_BYTES < end; sector += 1) inode.dirty.add(sector)
}

function truncate(inode: Inode, bytes: number): void {
  inode.bytes = resized(inode.bytes, bytes)
  for (const sector of inode.dirty) if (sector * SECTOR_BYTES >= bytes) inode.dirty.delete(sector)
  // The rest of the last sector becomes zero, which is a change like any other.
  if (bytes % SECTOR_BYTES !== 0) inode.dirty.add(Math.floor(bytes / SECTOR_BYTES))
}

function resized(bytes: Buffer, size: number): Buffer<ArrayBuffer> {
  const result = Buffer.alloc(size)
  bytes.copy(result, 0, 0, Math.min(size, bytes.byteLength))
  return result
}

function copySector(from: Buffer, to: Buffer, sector: number): void {
  const start = sector * SECTOR_BYTES
  if (start < to.byteLength) from.copy(to, start, start, Math.min(start + SECTOR_BYTES, from.byteLength, to.byteLength))
}
