/**
 * The write-ahead log of a process: one log per name, all in one directory.
 *
 * Owns: the life cycle of the logs, regular upkeep, and how many bytes are on disk. Does not own: delivery, which reads sealed segments
 * and removes them in another process (segment-source.ts).
 * Law: an append resolves after fdatasync, and every frame whose append resolved ends up in a sealed segment.
 */
import { join } from 'node:path'
import { assert } from '#lib/assert.ts'
import type { Clock } from '#lib/clock.ts'
import { Durations } from '#lib/durations.ts'
import { type Files, removeLeftovers } from '#lib/files.ts'
import { Periodic } from '#lib/periodic.ts'
import { newIncarnation, type Random } from '#lib/random.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { FrameInput } from '../frame.ts'
import { type LogLimits, logLimits } from '../limits.ts'
import { LogError } from '../log-error.ts'
import type { Appended, BlockedLog, EndReason, LogHealth, LogHooks, LogSettings, LogUsage, LogWriter } from '../log-writer.ts'
import { listLogs, type SegmentFile } from './format/directory.ts'
import { computeSalt, WrittenSaltKey } from './format/salt-key.ts'
import { isLogName } from './format/segment-file.ts'
import { DiskUsage } from './read/disk-usage.ts'
import { type NotedSegment, OpenSegments } from './recover/open-segments.ts'
import { LogRecovery } from './recover/recovery.ts'
import { CommitTurns } from './write/commit-turns.ts'
import { DiskHealth } from './write/disk-health.ts'
import { EndedLogs, reopenLog } from './write/ended-logs.ts'
import { Log } from './write/log.ts'

export type LocalLogWriterOptions = LogHooks & {
  readonly directory: string
  readonly files: Files
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  /** Replaces some of logLimits. */
  readonly limits?: Partial<LogLimits>
}

/** In seconds: from a write cache with a battery to a disk that is about to fail. */
const syncBounds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]

export class LocalLogWriter implements LogWriter {
  readonly name = 'wal'
  readonly usage: LogUsage
  readonly #options: LocalLogWriterOptions
  readonly #random: Random
  readonly #limits: LogLimits
  readonly #logs = new Map<string, Log>()
  /** Logs that had a directory at the start and were not configured since. */
  readonly #unclaimed = new Set<string>()
  readonly #saltKey: WrittenSaltKey
  readonly #openSegments: OpenSegments
  readonly #recovery: LogRecovery
  readonly #ended: EndedLogs
  readonly #health: DiskHealth
  readonly #disk: DiskUsage
  readonly #syncs = new Durations(syncBounds)
  readonly #waiting = { bytes: 0 }
  readonly #turns: CommitTurns
  readonly #upkeep: Periodic
  /** Apart from the rest of the upkeep: a file that hangs or is large must not delay it. */
  readonly #retries: Periodic
  readonly #counts = { salvagedSegments: 0, lost: { segments: 0, records: 0 } }
  #state: 'new' | 'serving' | 'stopped' = 'new'

  constructor(options: LocalLogWriterOptions) {
    const { files, clock, random, logger } = options
    const limits = { ...logLimits, ...options.limits }
    this.#options = options
    this.#random = random
    this.#limits = limits
    this.#turns = new CommitTurns(limits.commitsParallel)
    this.#disk = new DiskUsage(files, options.onUsage)
    this.usage = this.#readUsage()
    this.#health = new DiskHealth({ ...options, ...limits })
    this.#ended = new EndedLogs({ ...options, isIncomplete: (logName) => this.#recovery.isIncomplete(logName) })
    this.#saltKey = new WrittenSaltKey(files, options.directory, random)
    this.#openSegments = new OpenSegments({
      ...options,
      current: () => this.#notedSegments(),
      left: () => this.#recovery.noted(),
    })
    this.#recovery = new LogRecovery({
      ...options,
      limits,
      openSegments: this.#openSegments,
      findDelivered: options.findDelivered,
      findCommittedSeqs: options.findCommittedSeqs,
      onLost: (records) => {
        this.#counts.lost.segments += 1
        this.#counts.lost.records += records
      },
      findSaltKey: () => this.#saltKey.find(),
      usage: this.#disk,
      onSealed: (segment, openPath) => this.#onSealed(segment, openPath),
    })
    this.#retries = new Periodic({
      name: 'wal recovery',
      intervalMs: limits.upkeepIntervalMs,
      run: async (signal) => {
        await this.#recovery.retry(signal)
        await this.#recovery.askControl(signal)
      },
      failure: 'WAL recovery failed',
      clock,
      logger,
    })
    this.#upkeep = new Periodic({
      name: 'wal upkeep',
      intervalMs: limits.upkeepIntervalMs,
      run: () => this.#runUpkeep(),
      failure: 'WAL upkeep failed',
      clock,
      logger,
    })
  }

  /** Recovers what an earlier process left behind. After a bounded time it goes on with that while frames are accepted. */
  async start(): Promise<void> {
    const { directory, files } = this.#options
    await files.makeDirectory(directory)
    // The id of the node is written by others, too.
    await removeLeftovers(files, directory, (name) => name !== 'node-id')
    await this.#openSegments.load()
    const logNames = await listLogs(files, directory)
    for (const logName of logNames) this.#unclaimed.add(logName)
    await this.#recovery.start(logNames)
    await this.#openSegments.write().catch(() => undefined)
    this.#signalSealed()
    this.#state = 'serving'
    await this.#upkeep.start()
    await this.#retries.start()
    if (this.#recovery.isBehind) this.#retries.runNow()
  }

  configure(logName: string, settings: LogSettings): void {
    assert(this.#state !== 'new', 'the WAL must be started before it is configured')
    assert(isLogName(logName), `not a log name: ${logName}`)
    if (this.#state === 'stopped' || this.#ended.isFenced(logName)) return
    const known = this.#logs.get(logName)
    if (known === undefined) this.#logs.set(logName, this.#openLog(logName, settings))
    else known.configure(settings)
  }

  end(logName: string, reason: EndReason): Promise<void> {
    assert(this.#state !== 'new', 'the WAL must be started before a log is ended')
    assert(isLogName(logName), `not a log name: ${logName}`)
    if (this.#state === 'stopped') return Promise.resolve()
    const log = this.#logs.get(logName)
    this.#logs.delete(logName)
    this.#unclaimed.delete(logName)
    this.#recovery.noteSeq(logName, -1)
    return this.#ended.end(logName, log, reason, () => this.#recovery.noteSeq(logName, log?.lastSeq ?? -1))
  }

  endUnowned(owned: ReadonlySet<string>): void {
    assert(this.#state !== 'new', 'the WAL must be started before logs are ended')
    for (const logName of [...this.#logs.keys(), ...this.#unclaimed, ...this.#ended.kept()])
      if (!owned.has(logName)) void this.end(logName, 'unowned')
  }

  whenRecovered(logName: string): Promise<boolean> {
    return this.#recovery.whenRead(logName)
  }

  append(logName: string, frame: FrameInput): Promise<Appended> {
    if (this.#state === 'stopped') return Promise.reject(new LogError('stopping', 'the log is being closed'))
    const log = this.#logs.get(logName)
    if (log !== undefined) return log.append(frame)
    assert(this.#recovery.isKnown(logName), `the log ${logName} was never configured`)
    return Promise.reject(new LogError('stopping', this.#ended.refusal(logName)))
  }

  health(): LogHealth {
    return this.#health.current()
  }

  blocked(): readonly BlockedLog[] {
    const refused = [...this.#health.failures()].map(([logName, reason]) => [logName, `new data is refused: ${reason}`] as const)
    const fenced = this.#ended
      .fenced()
      .map((logName) => [logName, `new data is refused: ${this.#ended.refusal(logName)}`] as const)
    const reasons = new Map([...refused, ...fenced, ...this.#recovery.blocked()])
    for (const [logName, { problem }] of [...this.#logs, ...this.#ended.logs()])
      if (problem !== undefined) reasons.set(logName, problem)
    return [...reasons].map(([logName, reason]) => ({ logName, reason }))
  }

  /** Writes all accepted frames and seals every log. Idempotent. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#state = 'stopped'
    await Promise.all([this.#upkeep.stop(), this.#retries.stop()])
    await Promise.all([this.#ended.stop(signal), ...[...this.#logs.values()].map((log) => log.stop(signal))])
    if (signal.aborted) return
    await this.#recovery.retry(signal)
    await this.#openSegments.write().catch(() => undefined)
  }

  *#notedSegments(): Generator<NotedSegment> {
    for (const { noted } of this.#logs.values()) if (noted !== undefined) yield noted
    for (const [, { noted }] of this.#ended.logs()) if (noted !== undefined) yield noted
  }

  #readUsage(): LogUsage {
    const [disk, waiting, counts, syncs] = [this.#disk, this.#waiting, this.#counts, this.#syncs]
    const oldestOpenMs = () => this.#oldestOpenMs()
    return {
      syncs,
      get bytes() {
        return disk.bytes
      },
      get openBytes() {
        return disk.openBytes
      },
      get oldestOpenMs() {
        return oldestOpenMs()
      },
      get waitingBytes() {
        return waiting.bytes
      },
      get salvagedSegments() {
        return counts.salvagedSegments
      },
      get lost() {
        return counts.lost
      },
    }
  }

  #oldestOpenMs(): number {
    const now = this.#options.clock.monotonic()
    let oldest = now
    for (const { openedAtMs = now } of this.#logs.values()) oldest = Math.min(oldest, openedAtMs)
    return now - oldest
  }

  #openLog(logName: string, settings: LogSettings): Log {
    const { directory, files, clock, logger, observer, mayAcknowledge, copy } = this.#options
    this.#unclaimed.delete(logName)
    const path = join(directory, logName)
    return new Log({
      reclaimed: this.#ended.reclaim(logName),
      logName,
      directory: path,
      // Each log has its own incarnation, so that node, incarnation and seq identify one segment among all logs.
      incarnation: newIncarnation(this.#random),
      lastSeq: async () => {
        await reopenLog(files, path)
        return await this.#recovery.lastSeq(logName)
      },
      saltOf: async (segment) => computeSalt((await this.#saltKey.ensure()).secret, segment),
      settings,
      openSegments: this.#openSegments,
      files,
      clock,
      logger,
      limits: this.#limits,
      syncs: this.#syncs,
      waiting: this.#waiting,
      mayAcknowledge,
      turns: this.#turns,
      ...(observer !== undefined && { observer }),
      ...(copy !== undefined && { copy }),
      onGrown: (path, bytes) => this.#disk.set(path, bytes),
      onSealed: (segment, openPath) => this.#onSealed(segment, openPath),
      onSalvaged: () => {
        this.#counts.salvagedSegments += 1
      },
      onOrphan: (orphan) => this.#recovery.addOrphan(orphan),
      onOutcome: (failure) => this.#health.report(logName, failure),
    })
  }

  #onSealed(segment: SegmentFile, openPath: string): void {
    this.#disk.forget(openPath)
    this.#disk.set(segment.path, segment.bytes)
    this.#signalSealed(segment.logName)
    this.#options.onSealed?.(segment)
  }

  /** Tells delivery in which log to look (segment-source.ts), or to scan all. Without this hint it finds the segment later. */
  #signalSealed(logName = ''): void {
    const { directory, files } = this.#options
    files.touch(join(directory, logName)).catch(() => undefined)
  }

  async #runUpkeep(): Promise<void> {
    const steps = [
      () => this.#disk.refresh(),
      () => this.#ended.finish(),
      () => this.#health.probe(),
      () => this.#openSegments.refresh(),
    ]
    for (const step of steps) {
      await step().catch((error: unknown) => this.#options.logger.warn({ err: error }, 'WAL upkeep step failed'))
    }
  }
}
