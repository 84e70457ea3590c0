/**
 * Tracks which logs cannot be written to, and whether the disk as a whole accepts writes.
 *
 * Law: one log's failure makes the node unhealthy only if the disk is full, or if a write beside the logs fails as well. Everything ends
 * by itself: a write that is durable again, or the probe, clears it.
 */
import { join } from 'node:path'
import type { Clock } from '#lib/clock.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import { toLogError } from '../../disk-error.ts'
import type { LogError } from '../../log-error.ts'
import type { LogHealth } from '../../log-writer.ts'

const healthyDisk: LogHealth = { healthy: true, reasons: [] }

export type DiskHealthOptions = {
  readonly directory: string
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
  readonly probeBytes: number
  /** How long the failure of a log that nobody writes to is reported. */
  readonly failureShownMs: number
}

export class DiskHealth {
  readonly #options: DiskHealthOptions
  /** The last failure of each log whose last write failed. */
  readonly #failures = new Map<string, { readonly failure: LogError; readonly atMs: number }>()
  /** Why the disk accepts no write at all; undefined while it does. */
  #diskFailure: LogError | undefined
  #probing: Promise<void> | undefined

  constructor(options: DiskHealthOptions) {
    this.#options = options
  }

  /** The state of the whole disk. */
  current(): LogHealth {
    if (this.#diskFailure === undefined) return healthyDisk
    return { healthy: false, reasons: [`${this.#diskFailure.reason}: ${this.#diskFailure.message}`] }
  }

  /** Returns the reason for each log whose last write failed. */
  failures(): ReadonlyMap<string, string> {
    return new Map([...this.#failures].map(([logName, { failure }]) => [logName, failure.message]))
  }

  /** Records the outcome of a log's write. */
  report(logName: string, failure: LogError | undefined): void {
    const { clock, logger } = this.#options
    if (failure === undefined) {
      if (this.#failures.delete(logName)) logger.notice({ log: logName }, 'log writes recovered')
      if (this.#diskFailure !== undefined) this.#clear()
      return
    }
    if (!this.#failures.has(logName)) logger.error({ err: failure, log: logName }, 'log write failed')
    this.#failures.set(logName, { failure, atMs: clock.monotonic() })
    if (failure.reason === 'disk_full') this.#diskFailure ??= failure
    if (this.#diskFailure === undefined) void this.probe()
  }

  /**
   * Tries a write beside the logs if a write failed. Otherwise callers that stopped appending would never notice that the disk has
   * recovered. Never throws.
   */
  probe(): Promise<void> {
    if (this.#failures.size === 0 && this.#diskFailure === undefined) return Promise.resolve()
    this.#probing ??= this.#probe().finally(() => {
      this.#probing = undefined
    })
    return this.#probing
  }

  async #probe(): Promise<void> {
    const { directory, files, clock, logger, probeBytes, failureShownMs } = this.#options
    const path = join(directory, 'probe')
    try {
      await writeDurably(files, path, new Uint8Array(probeBytes))
      await files.remove(path)
    } catch (error) {
      if (this.#diskFailure === undefined) logger.error({ err: error }, 'the WAL directory cannot be written to')
      this.#diskFailure = toLogError(error)
      return
    }
    if (this.#diskFailure !== undefined) this.#clear()
    const shownSince = clock.monotonic() - failureShownMs
    for (const [logName, { atMs }] of this.#failures) if (atMs <= shownSince) this.#failures.delete(logName)
  }

  #clear(): void {
    this.#diskFailure = undefined
    for (const [logName, { failure }] of this.#failures) if (failure.reason === 'disk_full') this.#failures.delete(logName)
    this.#options.logger.notice('disk recovered')
  }
}
