/** Tracks the size of the WAL on disk, in total and by log: counts writes as they happen, and notices removed segments by their missing names. */
import { basename, dirname, join } from 'node:path'
import type { Files } from '#lib/files.ts'
import { listLogSegments } from './directory.ts'
import { parseSegmentName } from './segment-file.ts'

export class DiskUsage {
  readonly #files: Files
  readonly #onChange: (logName: string, bytes: number) => void
  readonly #directories = new Map<string, Map<string, number>>()
  #bytes = 0

  /** `onChange` is called with what a log has grown by. */
  constructor(files: Files, onChange: (logName: string, bytes: number) => void = () => undefined) {
    this.#files = files
    this.#onChange = onChange
  }

  get bytes(): number {
    return this.#bytes
  }

  set(path: string, bytes: number): void {
    const directory = dirname(path)
    const sizes = this.#directories.get(directory) ?? new Map<string, number>()
    this.#directories.set(directory, sizes)
    const name = basename(path)
    this.#add(directory, bytes - (sizes.get(name) ?? 0))
    sizes.set(name, bytes)
  }

  forget(path: string): void {
    this.#forget(dirname(path), basename(path))
  }

  /** Counts the segments in the directory of a log. */
  async count(walDirectory: string, logName: string): Promise<void> {
    for (const { path, bytes } of await listLogSegments(this.#files, walDirectory, logName)) this.set(path, bytes)
  }

  /** Forgets files that are gone, and counts what a repair in the other process has kept. Lists only the directories of logs that have files. One that cannot be read keeps its size. */
  async refresh(): Promise<void> {
    for (const [directory, sizes] of this.#directories) {
      // Copied before the listing: a file created meanwhile must not count as gone.
      const known = [...sizes.keys()]
      if (known.length === 0) continue
      const entries = await this.#files.list(directory).catch(() => undefined)
      if (entries === undefined) continue
      const present = new Set(entries.map(({ name }) => name))
      for (const name of known) if (!present.has(name)) this.#forget(directory, name)
      for (const name of present)
        if (!sizes.has(name) && parseSegmentName(name)?.suffix === 'quarantine') await this.#addFile(directory, name)
    }
  }

  async #addFile(directory: string, name: string): Promise<void> {
    const bytes = await this.#files.bytes(join(directory, name)).catch(() => undefined)
    if (bytes !== undefined) this.set(join(directory, name), bytes)
  }

  #forget(directory: string, name: string): void {
    const sizes = this.#directories.get(directory)
    this.#add(directory, -(sizes?.get(name) ?? 0))
    sizes?.delete(name)
    if (sizes?.size === 0) this.#directories.delete(directory)
  }

  #add(directory: string, bytes: number): void {
    this.#bytes += bytes
    this.#onChange(basename(directory), bytes)
  }
}
