/**
 * The write-ahead log of a process: one log per name, all in one directory.
 *
 * Owns: the life cycle of the logs, regular upkeep, and how many bytes are on disk. Does not own: delivery, which reads sealed segments
 * and removes them in another process (segment-directory.ts).
 * Law: an append resolves after fdatasync, and every frame whose append resolved ends up in a sealed segment.
 */
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { assert } from '#lib/assert.ts'
import type { Clock } from '#lib/clock.ts'
import { Durations } from '#lib/durations.ts'
import { type Files, removeLeftovers } from '#lib/files.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { WalError } from '../log-error.ts'
import type { Appended } from '../log-writer.ts'
import type { SealObserver } from '../seal-observer.ts'
import { listLogs, type SegmentFile } from './format/directory.ts'
import type { FrameInput } from './format/frame.ts'
import { computeSalt, WrittenSaltKey } from './format/salt-key.ts'
import { isLogName } from './format/segment-file.ts'
import { type WalLimits, walLimits } from './limits.ts'
import { DiskUsage } from './read/disk-usage.ts'
import type { FindDelivered } from './recover/missing-segments.ts'
import { type NotedSegment, OpenSegments } from './recover/open-segments.ts'
import { LogRecovery } from './recover/recovery.ts'
import { reopenLog } from './write/closed-log.ts'
import { CommitTurns } from './write/commit-turns.ts'
import type { LogSettings } from './write/current-segment.ts'
import { DiskHealth, type WalHealth } from './write/disk-health.ts'
import { EndedLogs } from './write/ended-logs.ts'
import { Log } from './write/log.ts'

export type WalOptions = {
  readonly directory: string
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
  /** Called with what a log has grown by on disk, or shrunk by if negative. */
  readonly onUsage?: (logName: string, bytes: number) => void
  readonly observer?: SealObserver
  /** Called when a segment was sealed, those that recovery seals included. */
  readonly onSealed?: (segment: SegmentFile) => void
  /** Says which missing segments were delivered. Without it, missing ones are not looked for. */
  readonly findDelivered?: FindDelivered
  /** Replaces some of walLimits. */
  readonly limits?: Partial<WalLimits>
}

export type BlockedLog = { readonly logName: string; readonly reason: string }

/** In seconds: from a write cache with a battery to a disk that is about to fail. */
const syncBounds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]

const incarnationAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'

export class Wal implements Service {
  readonly name = 'wal'
  /** How long each fdatasync took. */
  readonly syncs = new Durations(syncBounds)
  readonly #options: WalOptions
  readonly #limits: WalLimits
  readonly #logs = new Map<string, Log>()
  /** Logs that had a directory at the start and were not configured since. */
  readonly #unclaimed = new Set<string>()
  readonly #saltKey: WrittenSaltKey
  readonly #openSegments: OpenSegments
  readonly #recovery: LogRecovery
  readonly #ended: EndedLogs
  readonly #health: DiskHealth
  readonly #usage: DiskUsage
  readonly #waiting = { bytes: 0 }
  readonly #turns: CommitTurns
  readonly #upkeep: Periodic
  /** Apart from the rest of the upkeep: a file that hangs or is large must not delay it. */
  readonly #repair: Periodic
  #rescued = 0
  readonly #lost = { segments: 0, records: 0 }
  #state: 'new' | 'serving' | 'stopped' = 'new'

  constructor(options: WalOptions) {
    const { files, clock, logger } = options
    const limits = { ...walLimits, ...options.limits }
    this.#options = options
    this.#limits = limits
    this.#turns = new CommitTurns(limits.commitsParallel)
    this.#usage = new DiskUsage(files, options.onUsage)
    this.#health = new DiskHealth({ ...options, ...limits })
    this.#ended = new EndedLogs({ ...options, isRecovering: (logName) => this.#recovery.hasOrphans(logName) })
    this.#saltKey = new WrittenSaltKey(files, options.directory)
    this.#openSegments = new OpenSegments({ ...options, current: () => this.#notedSegments() })
    this.#recovery = new LogRecovery({
      ...options,
      limits,
      openSegments: this.#openSegments,
      findDelivered: options.findDelivered,
      beforeForgotten: () => this.#openSegments.write(),
      onLost: (records) => {
        this.#lost.segments += 1
        this.#lost.records += records
      },
      findSaltKey: () => this.#saltKey.find(),
      usage: this.#usage,
      onSealed: (segment, openPath) => this.#onSealed(segment, openPath),
    })
    this.#repair = new Periodic({
      name: 'wal repair',
      intervalMs: limits.upkeepIntervalMs,
      run: async (signal) => {
        await this.#recovery.retry(signal)
        await this.#recovery.resolveMissing(signal)
      },
      failure: 'WAL repair failed',
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
    await this.#repair.start()
    if (this.#recovery.isBehind) this.#repair.runNow()
  }

  /** Opens the log if it is new, closed or retired. Changed settings also seal the open segment, if it is too old or too large for them. */
  configure(logName: string, settings: LogSettings): void {
    assert(this.#state !== 'new', 'the WAL must be started before it is configured')
    assert(isLogName(logName), `not a log name: ${logName}`)
    if (this.#state === 'stopped') return
    const known = this.#logs.get(logName)
    if (known === undefined) this.#logs.set(logName, this.#openLog(logName, settings))
    else known.configure(settings)
  }

  /**
   * Rejects further appends, seals what was accepted, and then marks the log as closed on disk (closed-log.ts), also a log that never had
   * data. `configure` opens it again.
   */
  close(logName: string): void {
    assert(this.#state !== 'new', 'the WAL must be started before a log is closed')
    assert(isLogName(logName), `not a log name: ${logName}`)
    if (this.#state === 'stopped') return
    const log = this.#takeLog(logName)
    this.#ended.close(logName, log, () => this.#recovery.noteSeq(logName, log?.lastSeq ?? -1))
  }

  /**
   * Retires every log whose name is not given. It is sealed, and removed from disk once delivery has removed all of its segments.
   * Call it only with a complete list of names, never because control cannot be reached.
   */
  retireExcept(claimed: ReadonlySet<string>): void {
    assert(this.#state !== 'new', 'the WAL must be started before logs are retired')
    if (this.#state === 'stopped') return
    for (const logName of [...this.#logs.keys(), ...this.#unclaimed, ...this.#ended.closed()]) {
      if (claimed.has(logName)) continue
      const log = this.#takeLog(logName)
      this.#ended.retire(logName, log, () => this.#recovery.noteSeq(logName, log?.lastSeq ?? -1))
    }
  }

  /**
   * Resolves once the observer knows all frames that an earlier process left unsealed in the log, as far as the disk can be read. Undefined
   * if there is nothing to wait for.
   */
  whenRecovered(logName: string): Promise<void> | undefined {
    return this.#recovery.whenRead(logName)
  }

  /** Resolves with the segment's seq when the frame is durable. Rejects with a WalError. */
  append(logName: string, frame: FrameInput): Promise<Appended> {
    if (this.#state === 'stopped') return Promise.reject(new WalError('stopping', 'the log is being closed'))
    const log = this.#logs.get(logName)
    if (log !== undefined) return log.append(frame)
    assert(this.#recovery.isKnown(logName), `the log ${logName} was never configured`)
    return Promise.reject(new WalError('stopping', 'the log is closed: its endpoint is being deleted'))
  }

  /** Unhealthy while the disk accepts no write at all. A log that cannot go on alone is in `blocked`. */
  health(): WalHealth {
    return this.#health.current()
  }

  /**
   * Returns the logs that cannot go on by themselves, with what is wrong and what to do. A file that cannot be recovered holds back the
   * delivery of what came later. Appends go on, if the log's directory can be read.
   */
  blocked(): readonly BlockedLog[] {
    const refused = [...this.#health.failures()].map(([logName, reason]) => [logName, `new data is refused: ${reason}`] as const)
    const reasons = new Map([...refused, ...this.#recovery.blocked()])
    for (const [logName, { problem }] of [...this.#logs, ...this.#ended.logs()])
      if (problem !== undefined) reasons.set(logName, problem)
    return [...reasons].map(([logName, reason]) => ({ logName, reason }))
  }

  /** Size of all segments on disk, delivered or not. Segments that delivery removes are subtracted within a second. */
  bytesOnDisk(): number {
    return this.#usage.bytes
  }

  /** Size of the segments on disk that are still written to. */
  openBytes(): number {
    return this.#usage.openBytes
  }

  /** Age of the oldest segment that is still written to, in milliseconds; 0 if there is none. */
  oldestOpenMs(): number {
    const now = this.#options.clock.monotonic()
    let oldest = now
    for (const { openedAtMs = now } of this.#logs.values()) oldest = Math.min(oldest, openedAtMs)
    return now - oldest
  }

  /** Bytes of frames in memory that are not on the disk yet. */
  get waitingBytes(): number {
    return this.#waiting.bytes
  }

  /** Since the start: segments that recovery found damaged, cut or missing, and acknowledged records that are lost with that, at least. */
  get lost(): { readonly segments: number; readonly records: number } {
    return this.#lost
  }

  /** Number of segments whose file was removed while it was in use, and that were written again. */
  get rescuedSegments(): number {
    return this.#rescued
  }

  /** Writes all accepted frames and seals every log. Idempotent. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#state = 'stopped'
    await Promise.all([this.#upkeep.stop(), this.#repair.stop()])
    await Promise.all([this.#ended.stop(signal), ...[...this.#logs.values()].map((log) => log.stop(signal))])
    if (signal.aborted) return
    await this.#recovery.retry(signal)
    await this.#openSegments.write().catch(() => undefined)
  }

  *#notedSegments(): Generator<NotedSegment> {
    for (const { noted } of this.#logs.values()) if (noted !== undefined) yield noted
    for (const [, { noted }] of this.#ended.logs()) if (noted !== undefined) yield noted
    yield* this.#recovery.noted()
  }

  /** Takes the log away from appends. */
  #takeLog(logName: string): Log | undefined {
    const log = this.#logs.get(logName)
    this.#logs.delete(logName)
    this.#unclaimed.delete(logName)
    this.#recovery.noteSeq(logName, -1)
    return log
  }

  #openLog(logName: string, settings: LogSettings): Log {
    const { directory, files, clock, logger, observer } = this.#options
    this.#unclaimed.delete(logName)
    const path = join(directory, logName)
    return new Log({
      reclaimed: this.#ended.reclaim(logName),
      logName,
      directory: path,
      // Each log has its own incarnation, so that node, incarnation and seq identify one segment among all logs.
      incarnation: newIncarnation(),
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
      syncs: this.syncs,
      waiting: this.#waiting,
      turns: this.#turns,
      ...(observer !== undefined && { observer }),
      onGrown: (path, bytes) => this.#usage.set(path, bytes),
      onSealed: (segment, openPath) => this.#onSealed(segment, openPath),
      onRescued: () => {
        this.#rescued += 1
      },
      onOrphan: (orphan) => this.#recovery.addOrphan(orphan),
      onOutcome: (failure) => this.#health.report(logName, failure),
    })
  }

  #onSealed(segment: SegmentFile, openPath: string): void {
    this.#usage.forget(openPath)
    this.#usage.set(segment.path, segment.bytes)
    this.#signalSealed(segment.logName)
    this.#options.onSealed?.(segment)
  }

  /** Tells delivery in which log to look (segment-directory.ts), or to scan all. Without this hint it finds the segment later. */
  #signalSealed(logName = ''): void {
    const { directory, files } = this.#options
    files.touch(join(directory, logName)).catch(() => undefined)
  }

  async #runUpkeep(): Promise<void> {
    const steps = [
      () => this.#usage.refresh(),
      () => this.#ended.finish(),
      () => this.#health.probe(),
      () => this.#openSegments.refresh(),
    ]
    for (const step of steps) {
      await step().catch((error: unknown) => this.#options.logger.warn({ err: error }, 'WAL upkeep step failed'))
    }
  }
}

function newIncarnation(): string {
  return Array.from({ length: 10 }, () => incarnationAlphabet[randomInt(incarnationAlphabet.length)]).join('')
}
