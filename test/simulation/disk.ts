/**
 * The disk of one simulated machine.
 *
 * Owns: what a power loss takes. Does not own: when it comes.
 * Law: as `Files` says: a sync makes bytes durable, a sync of a directory names. What is neither may be there afterwards, or not, or in part. Names
 * of one directory become durable in the order in which they were changed. Bits that flip stay so until something is written there.
 */
import { dirname, resolve } from 'node:path'
import type { DirectoryEntry, Files, OpenFile, OpenMode } from '#lib/files.ts'
import type { Draw, Life } from './kernel.ts'
import type { Rot } from './rot.ts'

type Change = { readonly position: number; readonly bytes: Uint8Array } | { readonly size: number }

class Inode {
  /** As it was written. What is read may be damaged. */
  content: Buffer = Buffer.alloc(0)
  durable: Buffer = Buffer.alloc(0)
  /** Since the last sync. */
  changes: Change[] = []
  names = 0
  changedAtMs = 0
  readonly flips = new Map<number, number>()
  readonly damaged = new Set<number>()

  apply(change: Change): void {
    this.content = applied(this.content, change)
    const [from, to] =
      'size' in change ? [change.size, Number.POSITIVE_INFINITY] : [change.position, change.position + change.bytes.length]
    for (const offset of this.flips.keys()) if (offset >= from && offset < to) this.flips.delete(offset)
  }

  flip(offset: number, bits: number): void {
    this.flips.set(offset, (this.flips.get(offset) ?? 0) ^ bits)
  }

  /** Content as it is now, damage included. */
  get found(): Buffer {
    if (this.flips.size === 0) return this.content
    const found = Buffer.from(this.content)
    for (const [offset, bits] of this.flips) if (offset < found.length) found[offset] = (found[offset] ?? 0) ^ bits
    return found
  }
}

function applied(content: Buffer, change: Change): Buffer {
  if ('size' in change) {
    const resized = Buffer.alloc(change.size)
    content.copy(resized)
    return resized
  }
  const { position, bytes } = change
  const grown = Buffer.alloc(Math.max(content.length, position + bytes.length))
  content.copy(grown)
  grown.set(bytes, position)
  return grown
}

class Folder {
  entries = new Map<string, Node>()
  durable = new Map<string, Node>()
  /** Since the last sync: an entry that a name got, or undefined if it lost it. A rename is one change. */
  changes: (readonly (readonly [name: string, node: Node | undefined])[])[] = []
  readonly watchers = new Set<(name: string | null) => void>()
  changedAtMs = 0
}

type Node = Inode | Folder

/** A power loss may bring the earlier name of a file back, as long as the rename is not durable. */
function nameAfterPowerLoss({ durable }: Folder, name: string, node: Inode): string {
  if (durable.get(name) === node) return name
  return durable.entries().find(([, other]) => other === node)?.[0] ?? name
}

export type DiskOptions = {
  readonly draw: Draw
  /** Mean of a call, in milliseconds. */
  readonly meanMs: number
  readonly fault: () => DiskFault | undefined
  /** Whether a bit of the next read is another one than is there. */
  readonly misreads: () => boolean
  readonly rot: Rot
  readonly rotDraw: Draw
}

/** `fails`: with EIO, done or not. `full`: with ENOSPC, if it needs space. `stuck`: it takes half a minute. */
export type DiskFault = 'fails' | 'full' | 'stuck'

const stuckMs = 30_000
/** Places that are looked at for a bit that may flip. */
const triesMax = 5
const needsSpace = /^(write|open to create|link|copy|make directory|rename)/

export class Disk {
  /** Whether it does nothing that it is asked to. */
  isBroken = false
  readonly #root = new Folder()
  readonly #options: DiskOptions
  readonly #failedPaths = new Set<string>()

  constructor(options: DiskOptions) {
    this.#options = options
  }

  get rot(): Rot {
    return this.#options.rot
  }

  /** Whether a call failed whose path has this in it. */
  hasFailedIn(part: string): boolean {
    return this.#failedPaths.values().some((path) => path.includes(part))
  }

  get draw(): Draw {
    return this.#options.draw
  }

  /** The files as a process sees them. */
  filesFor(life: Life): Files {
    const run: Run = (operation, path, act, half) => {
      const { draw, meanMs, fault: nextFault } = this.#options
      const drawn = nextFault()
      const fault = this.isBroken ? 'fails' : drawn
      const delays = { draw, meanMs: fault === 'stuck' ? stuckMs : meanMs, local: true }
      return life.call(`${operation} ${path}`, delays, () => {
        if (fault === undefined || fault === 'stuck' || (fault === 'full' && !needsSpace.test(operation))) return act()
        if (!this.isBroken && half !== undefined) half()
        else if (!this.isBroken && fault === 'fails' && draw.chance(0.3)) act()
        this.#failedPaths.add(path)
        throw fileError(fault === 'full' ? 'ENOSPC' : 'EIO', path)
      })
    }
    const changed = (folder: Folder, ...names: readonly string[]) => {
      folder.changedAtMs = life.clock.now()
      for (const watcher of folder.watchers) for (const name of names) watcher(name)
    }
    const change = (path: string, node: Node | undefined) => {
      const [folder, name] = this.#place(path)
      set(folder, [[name, node]])
      changed(folder, name)
    }
    let drafts = 0
    const files: Files = {
      open: (path, mode) =>
        run(`open to ${mode}`, path, () => new SimulatedFile(path, this.#open(path, mode, changed), this, run)),
      read: (path) =>
        run('read', path, () => {
          const inode = this.#inode(path)
          return inode && this.read(path, inode, 0, Number.POSITIVE_INFINITY)
        }),
      bytes: (path) =>
        run('stat', path, () => {
          const node = this.find(path)
          return node instanceof Folder ? 0 : node?.content.length
        }),
      list: (path) => run('list', path, () => this.list(path)),
      changedAt: (path) => run('stat', path, () => this.find(path)?.changedAtMs),
      makeDirectory: (path) => run('make directory', path, () => this.makeDirectory(path)),
      makeTemporaryDirectory: (path) => {
        drafts += 1
        const unique = `${path}${life.name.replaceAll('/', '-')}-${drafts}`
        return run('make directory', unique, () => {
          this.makeDirectory(unique)
          return unique
        })
      },
      temporaryPath: (path) => {
        drafts += 1
        return `${path}.${drafts}-${Buffer.from(life.name).toString('hex')}.tmp`
      },
      syncDirectory: (path) =>
        run('sync directory', path, () => {
          const folder = this.#folder(path)
          folder.durable = new Map(folder.entries)
          folder.changes = []
        }),
      rename: (from, to) => run(`rename ${from} to`, to, () => this.#rename(from, to, changed)),
      link: (from, to) =>
        run(`link ${from} to`, to, () => {
          const inode = this.#existing(from)
          if (this.find(to) !== undefined) throw fileError('EEXIST', to)
          inode.names += 1
          change(to, inode)
        }),
      copy: (from, to) =>
        run(`copy ${from} to`, to, () => {
          const copy = new Inode()
          copy.names = 1
          copy.content = Buffer.from(this.#existing(from).found)
          copy.changes = [{ position: 0, bytes: copy.content }]
          change(to, copy)
        }),
      setAccess: async () => undefined,
      remove: (path) =>
        run('remove', path, () => {
          const inode = this.#inode(path)
          if (inode === undefined) return
          inode.names -= 1
          change(path, undefined)
        }),
      removeDirectory: (path) =>
        run('remove directory', path, () => {
          const folder = this.find(path)
          if (folder === undefined) return
          if (!(folder instanceof Folder)) throw fileError('ENOTDIR', path)
          if (folder.entries.size > 0) throw fileError('ENOTEMPTY', path)
          change(path, undefined)
        }),
      removeTree: (path) =>
        run('remove tree', path, () => this.find(path) !== undefined && change(path, undefined)).then(() => undefined),
      touch: (path) =>
        run('touch', path, () => {
          const node = this.find(path)
          if (node === undefined) throw fileError('ENOENT', path)
          node.changedAtMs = life.clock.now()
          const [folder, name] = this.#place(path)
          changed(folder, name)
          if (node instanceof Folder) for (const watcher of node.watchers) watcher(null)
        }),
      watch: (path, onChange) => {
        const folder = this.#folder(path)
        const watcher = (name: string | null) =>
          void life.after(this.#options.draw.delay(1), `watch ${path}`, () => onChange(name))
        folder.watchers.add(watcher)
        return () => folder.watchers.delete(watcher)
      },
      space: (path) => run('space', path, () => ({ free_bytes: 1e12, total_bytes: 2e12 })),
    }
    return files
  }

  /** Loses some of what was not durable. All processes of the machine must have ended. */
  losePower(): void {
    const { draw } = this.#options
    const lose = (folder: Folder): void => {
      const kept = draw.between(0, folder.changes.length)
      const entries = new Map(folder.durable)
      for (const change of folder.changes.slice(0, kept))
        for (const [name, node] of change) node === undefined ? entries.delete(name) : entries.set(name, node)
      folder.entries = entries
      folder.durable = new Map(entries)
      folder.changes = []
      folder.watchers.clear()
      for (const node of entries.values()) {
        if (node instanceof Folder) lose(node)
        else loseBytes(node, draw)
      }
    }
    lose(this.#root)
    this.#countNames()
  }

  #countNames(): void {
    const counts = new Map<Inode, number>()
    const visit = (folder: Folder): void => {
      for (const node of folder.entries.values()) {
        if (node instanceof Folder) visit(node)
        else counts.set(node, (counts.get(node) ?? 0) + 1)
      }
    }
    visit(this.#root)
    for (const [inode, names] of counts) inode.names = names
  }

  /** Copies all files as they are now to another disk. */
  copyTo(other: Disk): void {
    this.rot.copyTo(other.rot)
    const copy = (from: Folder, to: Folder): void => {
      for (const [name, node] of from.entries) {
        if (node instanceof Folder) {
          const folder = new Folder()
          copy(node, folder)
          to.entries.set(name, folder)
        } else {
          const inode = new Inode()
          inode.content = Buffer.from(node.content)
          inode.durable = inode.content
          for (const [offset, bits] of node.flips) inode.flip(offset, bits)
          for (const start of node.damaged) inode.damaged.add(start)
          inode.names = 1
          to.entries.set(name, inode)
        }
      }
      to.durable = new Map(to.entries)
    }
    copy(this.#root, other.#root)
  }

  /** Flips a bit of a file, more often of a segment, if it may flip. */
  decay(): void {
    const { rotDraw: draw, rot } = this.#options
    const { segments = [], others = [] } = Object.groupBy(this.#all(), ({ path }) =>
      /\/\d{12}-/.test(path) ? 'segments' : 'others',
    )
    const some = segments.length > 0 && (others.length === 0 || draw.chance(0.7)) ? segments : others
    for (let tries = 0; tries < triesMax && some.length > 0; tries += 1) {
      const { path, inode } = draw.pick(some)
      const [offset, bits] = [draw.between(0, inode.content.length - 1), 1 << draw.between(0, 7)]
      if (inode.content.length === 0 || !rot.mayFlip(path, inode, offset)) continue
      inode.flip(offset, bits)
      return
    }
  }

  /** Loses the files of each directory in this one. */
  loseFilesIn(path: string): void {
    const folder = this.find(path)
    if (!(folder instanceof Folder)) return
    for (const each of folder.entries.values())
      if (each instanceof Folder) {
        each.entries.clear()
        each.durable.clear()
        each.changes = []
      }
  }

  /** Restores what a person would restore from elsewhere. */
  restore(path: string): void {
    const node = this.find(path)
    if (!(node instanceof Inode) || node.flips.size === 0) return
    node.flips.clear()
    // The bit may have flipped while the file had another name.
    this.rot.paths.add(path)
  }

  /** Returns a copy of a part of the file, with a bit that is wrong if the disk misreads. */
  read(path: string, inode: Inode, position: number, bytes: number): Buffer {
    const part = Buffer.from(inode.found.subarray(position, position + bytes))
    const { rotDraw: draw, rot, misreads } = this.#options
    if (part.length === 0 || !misreads()) return part
    const at = draw.between(0, part.length - 1)
    if (rot.mayMisread(path, inode, position + at)) part[at] = (part[at] ?? 0) ^ (1 << draw.between(0, 7))
    return part
  }

  #all(): { readonly path: string; readonly inode: Inode }[] {
    const all: { readonly path: string; readonly inode: Inode }[] = []
    const visit = (folder: Folder, at: string): void => {
      for (const [name, node] of folder.entries) {
        if (node instanceof Folder) visit(node, `${at}/${name}`)
        else all.push({ path: `${at}/${nameAfterPowerLoss(folder, name, node)}`, inode: node })
      }
    }
    visit(this.#root, '')
    return all
  }

  /** Whether a file has this text. */
  holds(text: string): boolean {
    const look = (folder: Folder): boolean =>
      folder.entries.values().some((node) => (node instanceof Folder ? look(node) : node.content.includes(text)))
    return look(this.#root)
  }

  find(path: string): Node | undefined {
    let node: Node | undefined = this.#root
    for (const part of partsOf(path)) node = node instanceof Folder ? node.entries.get(part) : undefined
    return node
  }

  list(path: string): readonly DirectoryEntry[] {
    const node = this.find(path)
    if (node === undefined) return []
    if (!(node instanceof Folder)) throw fileError('ENOTDIR', path)
    return [...node.entries].map(([name, each]) => ({ name, kind: each instanceof Folder ? 'directory' : 'file' }))
  }

  makeDirectory(path: string): void {
    let folder = this.#root
    for (const part of partsOf(path)) {
      const found: Node = folder.entries.get(part) ?? new Folder()
      if (!(found instanceof Folder)) throw fileError('EEXIST', path)
      folder.entries.set(part, found)
      // The names are durable then, and with them what was changed before.
      folder.durable = new Map(folder.entries)
      folder.changes = []
      folder = found
    }
  }

  /** Whether the path still names the file. */
  isNamed(path: string, inode: Inode): boolean {
    return this.find(path) === inode
  }

  #open(path: string, mode: OpenMode, changed: (folder: Folder, name: string) => void): Inode {
    const found = this.find(path)
    if (found instanceof Folder) throw fileError('EISDIR', path)
    if (mode !== 'create') return this.#existing(path)
    if (found !== undefined) throw fileError('EEXIST', path)
    const inode = new Inode()
    inode.names = 1
    const [folder, name] = this.#place(path)
    set(folder, [[name, inode]])
    changed(folder, name)
    return inode
  }

  #rename(from: string, to: string, changed: (folder: Folder, name: string) => void): void {
    const node = this.find(from)
    if (node === undefined) throw fileError('ENOENT', from)
    const replaced = this.#inode(to)
    if (replaced !== undefined) replaced.names -= 1
    const [[source, name], [target, newName]] = [this.#place(from), this.#place(to)]
    if (source === target) {
      set(source, [
        [name, undefined],
        [newName, node],
      ])
    } else {
      set(target, [[newName, node]])
      set(source, [[name, undefined]])
    }
    changed(source, name)
    changed(target, newName)
  }

  #place(path: string): readonly [Folder, string] {
    return [this.#folder(dirname(resolve(path))), partsOf(path).at(-1) ?? '']
  }

  #folder(path: string): Folder {
    const node = this.find(path)
    if (node instanceof Folder) return node
    throw fileError(node === undefined ? 'ENOENT' : 'ENOTDIR', path)
  }

  #inode(path: string): Inode | undefined {
    const node = this.find(path)
    if (node instanceof Folder) throw fileError('EISDIR', path)
    return node
  }

  #existing(path: string): Inode {
    const inode = this.#inode(path)
    if (inode === undefined) throw fileError('ENOENT', path)
    return inode
  }
}

/** `half` is what a call that fails does nevertheless. */
type Run = <T>(operation: string, path: string, act: () => T, half?: () => void) => Promise<T>

class SimulatedFile implements OpenFile {
  readonly path: string
  readonly #inode: Inode
  readonly #disk: Disk
  readonly #run: Run
  #isClosed = false

  constructor(path: string, inode: Inode, disk: Disk, run: Run) {
    this.path = path
    this.#inode = inode
    this.#disk = disk
    // A closed file fails as its descriptor does.
    this.#run = (operation, file, act, half) => {
      if (this.#isClosed) return Promise.reject(fileError('EBADF', file))
      return run(operation, file, act, half)
    }
  }

  write(chunks: readonly Uint8Array[], position: number): Promise<void> {
    const bytes = Buffer.concat(chunks)
    const part = () => this.#change({ position, bytes: bytes.subarray(0, this.#disk.draw.between(0, bytes.length)) })
    return this.#run('write', this.path, () => this.#change({ position, bytes }), part)
  }

  read(into: Uint8Array, position: number): Promise<number> {
    return this.#run('read', this.path, () => {
      const part = this.#disk.read(this.path, this.#inode, position, into.byteLength)
      into.set(part)
      return part.length
    })
  }

  readSync(into: Uint8Array, position: number): number {
    const part = this.#inode.found.subarray(position, position + into.byteLength)
    into.set(part)
    return part.length
  }

  bytes(): Promise<number> {
    return this.#run('size', this.path, () => this.#inode.content.length)
  }

  truncate(bytes: number): Promise<void> {
    return this.#run('truncate', this.path, () => this.#change({ size: bytes }))
  }

  isLinked(): boolean {
    return this.#inode.names > 0
  }

  isNamed(): Promise<boolean> {
    return this.#run('name', this.path, () => this.#disk.isNamed(this.path, this.#inode))
  }

  sync(): Promise<void> {
    const { draw } = this.#disk
    const inode = this.#inode
    const sync = (isWritten: () => boolean) => {
      for (const change of inode.changes) if (isWritten()) inode.durable = applied(inode.durable, change)
      inode.changes = []
    }
    // After a failure the system takes all bytes for written, also in the next sync.
    return this.#run(
      'sync',
      this.path,
      () => sync(() => true),
      () => sync(() => draw.chance(0.5)),
    )
  }

  async close(): Promise<void> {
    this.#isClosed = true
  }

  #change(change: Change): void {
    this.#inode.apply(change)
    this.#inode.changes.push(change)
  }
}

/** Sectors are written whole, and in any order. */
const sectorBytes = 512

function loseBytes(inode: Inode, draw: Draw): void {
  let content = inode.durable
  for (const change of inode.changes) {
    if (draw.chance(0.4)) continue
    if ('size' in change || draw.chance(0.5)) content = applied(content, change)
    else {
      // Torn: some sectors of it.
      const { position, bytes } = change
      for (let at = 0; at < bytes.length; at += sectorBytes)
        if (draw.chance(0.5)) content = applied(content, { position: position + at, bytes: bytes.subarray(at, at + sectorBytes) })
    }
  }
  inode.content = content
  inode.durable = content
  inode.changes = []
}

function set(folder: Folder, change: readonly (readonly [string, Node | undefined])[]): void {
  for (const [name, node] of change) node === undefined ? folder.entries.delete(name) : folder.entries.set(name, node)
  folder.changes.push(change)
}

function partsOf(path: string): readonly string[] {
  return resolve(path)
    .split('/')
    .filter((part) => part !== '')
}

function fileError(code: string, path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: simulated, ${path}`), { code })
}

/** A process may end when its disk fails: it is started again. */
export function isDiskFault(error: unknown): boolean {
  const { code, cause } = error as NodeJS.ErrnoException
  if (error instanceof AggregateError) return error.errors.every(isDiskFault)
  return code === 'EIO' || code === 'ENOSPC' || (cause !== undefined && isDiskFault(cause))
}
