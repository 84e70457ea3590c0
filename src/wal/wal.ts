/**
 * The write-ahead log of a process: a log per name, all in one directory.
 *
 * Owns: the life cycle of the logs, recovery at the start and of files let go later, health, and how much lies on disk. Does not own:
 * delivery, which reads sealed segments and deletes them from another process.
 * Law: an append resolves after fdatasync, and whatever was resolved comes to light in a sealed segment.
 */
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { assert } from '#lib/assert.ts'
import type { Clock } from '#lib/clock.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { listLogs, type SegmentFile } from './directory.ts'
import { DiskUsage } from './disk-usage.ts'
import type { FrameInput } from './frame.ts'
import { type WalLimits, walLimits } from './limits.ts'
import { type Appended, Log, type LogSettings } from './log.ts'
import type { Orphan } from './orphan.ts'
import { recoverLog, recoverSegment } from './recovery.ts'
import { RetiredLogs } from './retired-logs.ts'
import { isLogName } from './segment-file.ts'
import { WalError } from './wal-error.ts'

export type WalOptions = {
  readonly directory: string
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
  /** What differs from walLimits. */
  readonly limits?: Partial<WalLimits>
  /** A segment was sealed and may be delivered. */
  readonly onSealed?: (segment: SegmentFile) => void
}

export type WalHealth = { readonly healthy: boolean; readonly reasons: readonly string[] }

const healthyAnswer: WalHealth = { healthy: true, reasons: [] }
const incarnationAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'

export class Wal implements Service {
  readonly name = 'wal'
  readonly #options: WalOptions
  readonly #limits: WalLimits
  readonly #logs = new Map<string, Log>()
  readonly #lastSeqs = new Map<string, number>()
  readonly #unreadable = new Set<string>()
  /** Logs with a directory at the start that were not configured since. */
  readonly #unclaimed = new Set<string>()
  readonly #retired: RetiredLogs
  readonly #failures = new Map<string, string>()
  readonly #usage: DiskUsage
  readonly #waiting = { bytes: 0 }
  readonly #upkeep: Periodic
  #orphans: readonly Orphan[] = []
  #state: 'new' | 'serving' | 'stopped' = 'new'

  constructor(options: WalOptions) {
    this.#options = options
    this.#limits = { ...walLimits, ...options.limits }
    this.#usage = new DiskUsage(options.files)
    this.#retired = new RetiredLogs(options)
    this.#upkeep = new Periodic({
      name: 'wal upkeep',
      intervalMs: this.#limits.lookIntervalMs,
      run: () => this.#look(),
      failure: 'WAL upkeep failed',
      clock: options.clock,
      logger: options.logger,
    })
  }

  /** Recovers what an earlier process left behind. Sealed segments are only counted. */
  async start(): Promise<void> {
    const { directory, files } = this.#options
    await files.makeDirectory(directory)
    const names = [...(await listLogs(files, directory))]
    for (const name of names) this.#unclaimed.add(name)
    const recoverNext = async () => {
      for (let name = names.shift(); name !== undefined; name = names.shift()) await this.#recoverUnlessUnreadable(name)
    }
    await Promise.all(Array.from({ length: this.#limits.recoveryParallel }, recoverNext))
    this.#state = 'serving'
    await this.#upkeep.start()
  }

  /** Opens the log if it is new or was retired. Changed settings apply from its next segment on. */
  configure(logName: string, settings: LogSettings): void {
    assert(this.#state !== 'new', 'the WAL is configured after its start')
    assert(isLogName(logName), `not a log name: ${logName}`)
    if (this.#state === 'stopped') return
    const known = this.#logs.get(logName)
    if (known !== undefined) {
      known.configure(settings)
      return
    }
    this.#unclaimed.delete(logName)
    const reclaimed = this.#retired.reclaim(logName)
    const { directory, files, clock, logger } = this.#options
    const log = new Log({
      logName,
      directory: join(directory, logName),
      // Of each log its own: node, incarnation and seq name a segment among all segments of all logs.
      incarnation: newIncarnation(),
      lastSeq: async () => {
        await reclaimed
        return await this.#lastSeq(logName)
      },
      settings,
      files,
      clock,
      logger,
      limits: this.#limits,
      waiting: this.#waiting,
      onGrown: (path, bytes) => this.#usage.set(path, bytes),
      onSealed: (segment, openPath) => this.#onSealed(segment, openPath),
      onOrphan: (orphan) => {
        this.#orphans = [...this.#orphans, orphan]
      },
      onOutcome: (failure) => this.#onOutcome(logName, failure),
    })
    this.#logs.set(logName, log)
  }

  /**
   * Retires every other log: no endpoint claims it any more. It is sealed, and removed from disk once delivery has taken all of its
   * segments. Only for names that are known to be complete; never because control cannot be reached.
   */
  retireExcept(claimed: ReadonlySet<string>): void {
    assert(this.#state !== 'new', 'logs are retired after the start of the WAL')
    if (this.#state === 'stopped') return
    for (const logName of [...this.#logs.keys(), ...this.#unclaimed]) {
      if (claimed.has(logName)) continue
      const log = this.#logs.get(logName)
      this.#logs.delete(logName)
      this.#unclaimed.delete(logName)
      this.#noteSeq(logName, -1)
      this.#retired.retire(logName, log, () => this.#noteSeq(logName, log?.lastSeq ?? -1))
    }
  }

  /** Resolves with the segment's seq when the frame is durable. Rejects with a WalError. */
  append(logName: string, frame: FrameInput): Promise<Appended> {
    if (this.#state === 'stopped') return Promise.reject(new WalError('stopping', 'the log is being closed'))
    const log = this.#logs.get(logName)
    if (log !== undefined) return log.append(frame)
    assert(this.#lastSeqs.has(logName), `the log ${logName} was never configured`)
    return Promise.reject(new WalError('stopping', 'the log is closed: no endpoint has it any more'))
  }

  /** Unhealthy from the first append that the disk failed until the disk takes something durably again. */
  health(): WalHealth {
    if (this.#failures.size === 0) return healthyAnswer
    return { healthy: false, reasons: [...new Set(this.#failures.values())] }
  }

  /** All segments on disk, also those that delivery has not taken yet. Deletions are noticed within a second. */
  bytesOnDisk(): number {
    return this.#usage.bytes
  }

  /** Writes what was accepted and seals everything. Idempotent. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#state = 'stopped'
    await this.#upkeep.stop()
    await Promise.all([this.#retired.stop(signal), ...[...this.#logs.values()].map((log) => log.stop(signal))])
    if (!signal.aborted) await this.#retryOrphans()
  }

  /** One directory that can't be read must not keep the others from serving; its log can't be appended to until it can. */
  async #recoverUnlessUnreadable(logName: string): Promise<void> {
    try {
      await this.#recover(logName)
    } catch (error) {
      this.#unreadable.add(logName)
      this.#options.logger.error({ err: error, log: logName }, 'the directory of a log cannot be read')
    }
  }

  async #recover(logName: string): Promise<void> {
    const { directory } = this.#options
    const { lastSeq, sealed, orphans } = await recoverLog(this.#recovery(), join(directory, logName), logName)
    await this.#usage.count(directory, logName)
    this.#unreadable.delete(logName)
    this.#noteSeq(logName, lastSeq)
    this.#orphans = [...this.#orphans, ...orphans]
    for (const segment of sealed) this.#announceSealed(segment)
  }

  async #lastSeq(logName: string): Promise<number> {
    if (this.#unreadable.has(logName)) await this.#recover(logName)
    return this.#lastSeqs.get(logName) ?? -1
  }

  #noteSeq(logName: string, seq: number): void {
    this.#lastSeqs.set(logName, Math.max(seq, this.#lastSeqs.get(logName) ?? -1))
  }

  #recovery() {
    const { files, clock, logger } = this.#options
    return { files, clock, logger, limits: this.#limits }
  }

  #onSealed(segment: SegmentFile, openPath: string): void {
    this.#usage.forget(openPath)
    this.#usage.set(segment.path, segment.bytes)
    this.#announceSealed(segment)
  }

  /** Delivery watches the directory (segment-directory.ts). It finds the segment without the hint as well, only later. */
  #announceSealed(segment: SegmentFile): void {
    const { directory, files, onSealed } = this.#options
    files.touch(directory).catch(() => undefined)
    onSealed?.(segment)
  }

  #onOutcome(logName: string, failure: WalError | undefined): void {
    if (failure === undefined) {
      if (this.#failures.delete(logName)) this.#options.logger.info({ log: logName }, 'the log is healthy again')
      return
    }
    const reason = `${failure.reason}: ${failure.message}`
    if (!this.#failures.has(logName)) this.#options.logger.error({ err: failure, log: logName }, 'the log cannot write')
    this.#failures.set(logName, reason)
  }

  async #look(): Promise<void> {
    const parts = [() => this.#usage.look(), () => this.#retryOrphans(), () => this.#retired.removeEmpty(), () => this.#probe()]
    for (const part of parts) {
      await part().catch((error: unknown) => this.#options.logger.warn({ err: error }, 'looking after the WAL directory failed'))
    }
  }

  async #retryOrphans(): Promise<void> {
    for (const orphan of this.#orphans) {
      const { segment, retry } = await recoverSegment(this.#recovery(), join(this.#options.directory, orphan.logName), orphan)
      this.#orphans = this.#orphans.flatMap((other) => (other !== orphan ? [other] : retry === undefined ? [] : [retry]))
      if (segment !== undefined) this.#onSealed(segment, orphan.path)
    }
  }

  /** Callers that stop appending while the WAL is unhealthy would never see it recover: so it asks the disk itself. */
  async #probe(): Promise<void> {
    if (this.#failures.size === 0) return
    const { directory, files, logger } = this.#options
    const path = join(directory, 'probe')
    try {
      await writeDurably(files, path, new Uint8Array(this.#limits.probeBytes))
    } catch {
      return
    }
    await files.remove(path)
    this.#failures.clear()
    logger.info('the disk takes writes again')
  }
}

function newIncarnation(): string {
  return Array.from({ length: 10 }, () => incarnationAlphabet[randomInt(incarnationAlphabet.length)]).join('')
}
