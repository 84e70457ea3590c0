/**
 * Seals the logs that no endpoint claims any more, and removes their directories once delivery has emptied them.
 *
 * Owns: when a log's directory and its high-water file are removed. Does not own: which logs are claimed (wal.ts), delivery.
 * Law: a directory is removed only if the high-water file is all that is in it. Nothing is removed while a log is claimed, because a new
 * log of that name writes only after `reclaim` has resolved. The seq continues: the process remembers it (log-recovery.ts). After a
 * restart, control's last commit has it, because every segment was committed before it was removed.
 */
import { dirname, join } from 'node:path'
import { errorCode, type Files, writeDurably } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import { highWaterName } from './directory.ts'
import type { Log } from './log.ts'

type RetiredLog = {
  readonly log: Log | undefined
  isStopped: boolean
  isFailureLogged: boolean
  /** Settles when the log no longer writes and nothing is being removed. */
  settled: Promise<void>
}

export type RetiredLogsOptions = { readonly directory: string; readonly files: Files; readonly logger: Logger }

export class RetiredLogs {
  readonly #options: RetiredLogsOptions
  readonly #retired = new Map<string, RetiredLog>()

  constructor(options: RetiredLogsOptions) {
    this.#options = options
  }

  /** Stops `log`, if one is open: it commits what it accepted and seals. Then calls `onStopped`. */
  retire(logName: string, log: Log | undefined, onStopped: () => void): void {
    const retired: RetiredLog = { log, isStopped: false, isFailureLogged: false, settled: Promise.resolve() }
    const stop = async () => {
      await log?.stop(new AbortController().signal)
      retired.isStopped = true
      onStopped()
    }
    retired.settled = stop()
    this.#retired.set(logName, retired)
  }

  /** Takes back a log that is claimed again. Resolves when a new log may write to its directory. */
  reclaim(logName: string): Promise<void> {
    const retired = this.#retired.get(logName)
    this.#retired.delete(logName)
    return retired?.settled ?? Promise.resolve()
  }

  /** Removes the directories that are empty by now. The others are tried again with the next call. */
  async removeEmpty(): Promise<void> {
    const { directory, files, logger } = this.#options
    for (const [logName, retired] of this.#retired) {
      if (!retired.isStopped) continue
      const removing = removeLogDirectory(files, join(directory, logName)).catch((error: unknown) => {
        if (!retired.isFailureLogged) logger.warn({ err: error, log: logName }, 'empty log removal failed')
        retired.isFailureLogged = true
        return false
      })
      retired.settled = removing.then(() => undefined)
      if (!(await removing)) continue
      logger.info({ log: logName }, 'empty log removed')
      // The log may have been claimed and retired again in the meantime.
      if (this.#retired.get(logName) === retired) this.#retired.delete(logName)
    }
  }

  /** Stops the logs that are still being sealed. */
  async stop(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#retired.values()].map(({ log }) => log?.stop(signal)))
  }
}

/** Removes the directory of a log if no segment of any kind is in it. Returns whether it is gone. Can be repeated after a crash. */
async function removeLogDirectory(files: Files, directory: string): Promise<boolean> {
  const entries = await files.list(directory)
  if (entries.some(({ name }) => name !== highWaterName)) return false
  const highWaterPath = join(directory, highWaterName)
  const highWater = await files.read(highWaterPath)
  await files.remove(highWaterPath)
  try {
    await files.removeDirectory(directory)
  } catch (error) {
    // A file that was renamed while the directory was listed may have been missed.
    if (highWater !== undefined) await writeDurably(files, highWaterPath, highWater)
    if (errorCode(error) !== 'ENOTEMPTY') throw error
    return false
  }
  await files.syncDirectory(dirname(directory))
  return true
}
