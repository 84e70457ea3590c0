/** Tracks whether the disk accepts writes. */
import { join } from 'node:path'
import { type Files, writeDurably } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { WalError } from './wal-error.ts'

export type WalHealth = { readonly healthy: boolean; readonly reasons: readonly string[] }

const healthyDisk: WalHealth = { healthy: true, reasons: [] }

export type DiskHealthOptions = {
  readonly directory: string
  readonly files: Files
  readonly logger: Logger
  readonly probeBytes: number
}

export class DiskHealth {
  readonly #options: DiskHealthOptions
  /** The last failure of each log that cannot write. */
  readonly #failures = new Map<string, string>()

  constructor(options: DiskHealthOptions) {
    this.#options = options
  }

  /** Unhealthy from the first write that fails until a write is durable again. */
  current(): WalHealth {
    if (this.#failures.size === 0) return healthyDisk
    return { healthy: false, reasons: [...new Set(this.#failures.values())] }
  }

  /** Records the outcome of a log's write. */
  report(logName: string, failure: WalError | undefined): void {
    const { logger } = this.#options
    if (failure === undefined) {
      if (this.#failures.delete(logName)) logger.info({ log: logName }, 'log writes recovered')
      return
    }
    if (!this.#failures.has(logName)) logger.error({ err: failure, log: logName }, 'log write failed')
    this.#failures.set(logName, `${failure.reason}: ${failure.message}`)
  }

  /** Tries a write while unhealthy. Otherwise callers that stopped appending would never notice that the disk has recovered. */
  async probe(): Promise<void> {
    if (this.#failures.size === 0) return
    const { directory, files, logger, probeBytes } = this.#options
    const path = join(directory, 'probe')
    try {
      await writeDurably(files, path, new Uint8Array(probeBytes))
    } catch {
      return
    }
    await files.remove(path)
    this.#failures.clear()
    logger.info('disk recovered')
  }
}
