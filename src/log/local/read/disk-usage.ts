/** Tracks the size of the WAL on disk, in total and by log: counts writes as they happen, and notices removed segments by their missing names. */
import { basename, dirname, join } from 'node:path'
import type { DirectoryEntry, Files } from '#lib/files.ts'
import { measureSegments } from '../format/directory.ts'
import { parseSegmentName } from '../format/segment-file.ts'

/** Directories that one refresh lists: those with files that delivery may remove, and those with nothing but an open segment. */
const sharedListedAtOnce = 1_000
const othersListedAtOnce = 100

export class DiskUsage {
  readonly #files: Files
  readonly #onChange: (logName: string, bytes: number) => void
  readonly #directories = new Map<string, Map<string, number>>()
  #bytes = 0
  #openBytes = 0
  #round = 0

  /** `onChange` is called with what a log has grown by. */
  constructor(files: Files, onChange: (logName: string, bytes: number) => void = () => undefined) {
    this.#files = files
    this.#onChange = onChange
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Bytes of segments that are still written to. */
  get openBytes(): number {
    return this.#openBytes
  }

  set(path: string, bytes: number): void {
    const directory = dirname(path)
    const sizes = this.#directories.get(directory) ?? new Map<string, number>()
    this.#directories.set(directory, sizes)
    const name = basename(path)
    this.#add(directory, name, bytes - (sizes.get(name) ?? 0))
    sizes.set(name, bytes)
  }

  forget(path: string): void {
    this.#forget(dirname(path), basename(path))
  }

  /** Counts the segments of a log, among these entries of its directory. */
  async count(logDirectory: string, entries: readonly DirectoryEntry[]): Promise<void> {
    const segments = await measureSegments(this.#files, logDirectory, basename(logDirectory), entries)
    for (const { path, bytes } of segments) this.set(path, bytes)
  }

  /**
   * Forgets files that are gone, and counts what a salvage in the other process has kept. Many directories take turns. A directory that cannot
   * be read keeps its size.
   */
  async refresh(): Promise<void> {
    const { others = [], shared = [] } = Object.groupBy(this.#directories, ([, sizes]) =>
      sizes.keys().every((name) => name.endsWith('.open')) ? 'others' : 'shared',
    )
    this.#round += 1
    for (const [directory, sizes] of [
      ...inTurn(shared, sharedListedAtOnce, this.#round),
      ...inTurn(others, othersListedAtOnce, this.#round),
    ])
      await this.#refresh(directory, sizes)
  }

  async #refresh(directory: string, sizes: ReadonlyMap<string, number>): Promise<void> {
    // Copied before the listing: a file created meanwhile must not count as gone.
    const known = [...sizes.keys()]
    const entries = await this.#files.list(directory).catch(() => undefined)
    if (entries === undefined) return
    const present = new Set(entries.map(({ name }) => name))
    for (const name of known) if (!present.has(name)) this.#forget(directory, name)
    for (const name of present)
      if (!sizes.has(name) && parseSegmentName(name)?.suffix === 'quarantine') await this.#addFile(directory, name)
  }

  async #addFile(directory: string, name: string): Promise<void> {
    const bytes = await this.#files.bytes(join(directory, name)).catch(() => undefined)
    if (bytes !== undefined) this.set(join(directory, name), bytes)
  }

  #forget(directory: string, name: string): void {
    const sizes = this.#directories.get(directory)
    this.#add(directory, name, -(sizes?.get(name) ?? 0))
    sizes?.delete(name)
    if (sizes?.size === 0) this.#directories.delete(directory)
  }

  #add(directory: string, name: string, bytes: number): void {
    this.#bytes += bytes
    if (name.endsWith('.open')) this.#openBytes += bytes
    this.#onChange(basename(directory), bytes)
  }
}

/** Returns at most so many of the items, others each round. */
function inTurn<T>(items: readonly T[], atOnce: number, round: number): readonly T[] {
  const rounds = Math.ceil(items.length / atOnce)
  return rounds <= 1 ? items : items.filter((_, index) => index % rounds === round % rounds)
}
