/**
 * Caches listings of the logs, for a process that lists them again and again.
 *
 * Owns: which listing still holds. Does not own: how a directory is listed (directory.ts).
 * Law: a listing is returned again only if its directory has not changed since. Two changes within a moment may leave the same time, so a
 * listing is kept only if the last change was a while before it.
 */
import { join } from 'node:path'
import type { Clock } from '#lib/clock.ts'
import type { Files } from '#lib/files.ts'
import { type LogFiles, readLog, type SegmentFile } from '../format/directory.ts'

/** Far longer than any tick of the clock of a file system. */
const settledMs = 2_000

export type LogListingsOptions = { readonly directory: string; readonly files: Files; readonly clock: Clock }

export class LogListings {
  readonly #options: LogListingsOptions
  readonly #kept = new Map<string, { readonly changedAtMs: number; readonly log: LogFiles }>()

  constructor(options: LogListingsOptions) {
    this.#options = options
  }

  /** Returns what the directory has now. Throws if it cannot be read. */
  async read(logName: string): Promise<LogFiles> {
    const { directory, files, clock } = this.#options
    const changedAtMs = await files.changedAt(join(directory, logName))
    const kept = this.#kept.get(logName)
    const same = kept === undefined || kept.changedAtMs !== changedAtMs ? undefined : await this.#measureOpen(kept.log)
    if (same !== undefined) return same
    const isSettled = changedAtMs !== undefined && clock.now() - changedAtMs > settledMs
    const log = await readLog(files, directory, logName)
    if (isSettled) this.#kept.set(logName, { changedAtMs, log })
    else this.#kept.delete(logName)
    return log
  }

  /** Forgets all other logs. */
  keepOnly(logNames: readonly string[]): void {
    const names = new Set(logNames)
    for (const logName of this.#kept.keys()) if (!names.has(logName)) this.#kept.delete(logName)
  }

  /** Segments grow only while they are open. Returns undefined if one of those is gone. */
  async #measureOpen(log: LogFiles): Promise<LogFiles | undefined> {
    if (!log.segments.some(({ state }) => state === 'open')) return log
    const segments: SegmentFile[] = []
    for (const segment of log.segments) {
      const bytes = segment.state === 'open' ? await this.#options.files.bytes(segment.path) : segment.bytes
      if (bytes === undefined) return undefined
      segments.push({ ...segment, bytes })
    }
    return { ...log, segments }
  }
}
