/**
 * Recovers what earlier runs and failed disks left behind: all logs at the start, single segments later.
 *
 * Owns: the last known seq of each log, and which segments still have to be recovered. Does not own: how one is recovered (recovery.ts).
 * Law: a directory that cannot be read does not stop the others. Its log has no last seq, and accepts no frame, until it can be read.
 */
import { join } from 'node:path'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode } from '#lib/files.ts'
import type { SegmentFile } from './directory.ts'
import type { DiskUsage } from './disk-usage.ts'
import type { Orphan } from './orphan.ts'
import { type RecoveryOptions, recoverLog, recoverSegment } from './recovery.ts'

export type LogRecoveryOptions = RecoveryOptions & {
  readonly directory: string
  readonly usage: DiskUsage
  /** `openPath` was the segment's file before. */
  readonly onSealed: (segment: SegmentFile, openPath: string) => void
}

export class LogRecovery {
  readonly #options: LogRecoveryOptions
  readonly #lastSeqs = new Map<string, number>()
  /** The reason for each log whose directory could not be read. */
  readonly #unreadable = new Map<string, string>()
  /** One attempt at a time for each log: two would repair the same files. */
  readonly #recovering = new Map<string, Promise<void>>()
  /** Logs whose files are not in the disk usage yet, because the size of one could not be read. */
  readonly #uncounted = new Set<string>()
  #orphans: readonly Orphan[] = []

  constructor(options: LogRecoveryOptions) {
    this.#options = options
  }

  /** Recovers some logs at a time. Sealed segments are only counted. */
  async recoverAll(logNames: readonly string[]): Promise<void> {
    const left = [...logNames]
    const worker = async () => {
      for (let logName = left.shift(); logName !== undefined; logName = left.shift()) await this.#recoverIfReadable(logName)
    }
    await Promise.all(Array.from({ length: this.#options.limits.recoveryParallel }, worker))
  }

  /** Whether the log exists, or has existed since the start. */
  isKnown(logName: string): boolean {
    return this.#lastSeqs.has(logName)
  }

  noteSeq(logName: string, seq: number): void {
    this.#lastSeqs.set(logName, Math.max(seq, this.#lastSeqs.get(logName) ?? -1))
  }

  /** Returns the highest seq that the log is known to have used, -1 for none. Throws while its directory cannot be read. */
  async lastSeq(logName: string): Promise<number> {
    if (this.#unreadable.has(logName)) await this.#recover(logName)
    return this.#lastSeqs.get(logName) ?? -1
  }

  /** Whether a segment of the log still has to be recovered. */
  hasOrphans(logName: string): boolean {
    return this.#unreadable.has(logName) || this.#orphans.some((orphan) => orphan.logName === logName)
  }

  addOrphan(orphan: Orphan): void {
    this.#orphans = [...this.#orphans, orphan]
  }

  /** Returns the reason for each log that has a file, or a directory, which could not be recovered so far. */
  blocked(): ReadonlyMap<string, string> {
    const reasons = new Map(this.#unreadable)
    for (const { logName, problem } of this.#orphans) if (problem !== undefined) reasons.set(logName, problem)
    return reasons
  }

  /** Never throws: what fails is tried again with the next call. */
  async retry(): Promise<void> {
    const { directory, onSealed } = this.#options
    await this.#count()
    for (const logName of this.#unreadable.keys()) await this.#recoverIfReadable(logName)
    for (const orphan of this.#orphans) {
      const { segment, retry } = await recoverSegment(this.#options, join(directory, orphan.logName), orphan)
      this.#orphans = this.#orphans.flatMap((other) => (other !== orphan ? [other] : retry === undefined ? [] : [retry]))
      if (segment !== undefined) onSealed(segment, orphan.path)
    }
  }

  async #recoverIfReadable(logName: string): Promise<void> {
    await this.#recover(logName).catch(() => undefined)
  }

  #recover(logName: string): Promise<void> {
    const running = this.#recovering.get(logName)
    if (running !== undefined) return running
    const recovering = this.#recoverOnce(logName)
      .catch((error: unknown) => {
        if (!this.#unreadable.has(logName)) this.#options.logger.error({ err: error, log: logName }, 'log directory unreadable')
        const code = errorCode(error) ?? errorMessage(error)
        this.#unreadable.set(
          logName,
          `new data is refused: the directory ${logName} of the WAL cannot be read (${code}): make it readable`,
        )
        throw error
      })
      .finally(() => this.#recovering.delete(logName))
    this.#recovering.set(logName, recovering)
    return recovering
  }

  async #recoverOnce(logName: string): Promise<void> {
    const { directory } = this.#options
    const { lastSeq, orphans } = await recoverLog(this.#options, join(directory, logName), logName)
    this.#uncounted.add(logName)
    await this.#count()
    this.#unreadable.delete(logName)
    this.noteSeq(logName, lastSeq)
    this.#orphans = [...this.#orphans, ...orphans]
  }

  async #count(): Promise<void> {
    const { directory, usage } = this.#options
    for (const logName of this.#uncounted) {
      await usage.count(directory, logName).then(
        () => this.#uncounted.delete(logName),
        () => undefined,
      )
    }
  }
}
