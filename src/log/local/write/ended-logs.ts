/**
 * Seals the logs that get no more data. Closes those whose endpoint is being deleted. Removes the directories of those that no endpoint
 * claims any more, once delivery has emptied them.
 *
 * Owns: when a log is marked as closed, and when its directory is removed. Does not own: which logs are claimed (local/log-writer.ts), delivery.
 * Law: the file `closed` is written after the last segment is sealed, and removed durably before another one is opened. So whoever reads it
 * first and lists the segments after that knows everything that the log will ever have. A directory is removed only if no segment of any kind
 * is in it. Nothing is marked or removed while a log is in use, because a new log of that name writes only after `reclaim` has resolved. The
 * seq continues: the process remembers it (recover/recovery.ts). After a restart, control's last commit has it, because every segment was
 * committed before it was removed.
 */
import { Buffer } from 'node:buffer'
import { dirname, join } from 'node:path'
import { errorCode, type Files, writeDurably } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { EndReason } from '../../log-writer.ts'
import { closedName, highWaterName } from '../format/directory.ts'
import { parseSegmentName } from '../format/segment-file.ts'
import { findStrayNotes } from '../recover/quarantine.ts'
import type { Log } from './log.ts'

type EndedLog = {
  readonly log: Log | undefined
  reason: EndReason
  /** Settles when the log no longer writes. */
  readonly stopped: Promise<void>
  isStopped: boolean
  isClosed: boolean
  isFailureLogged: boolean
  /** Settles when the log no longer writes and nothing is being marked or removed. */
  settled: Promise<void>
}

const refusals: Readonly<Record<EndReason, string>> = {
  closed: 'the log is closed: its endpoint is being deleted',
  unowned: 'the log is closed: its endpoint is being deleted',
  adopted: 'the log was adopted: this node only delivers what it has',
  fenced: 'another writer has taken over the log',
}

export type EndedLogsOptions = {
  readonly directory: string
  readonly files: Files
  readonly logger: Logger
  /** Whether a segment of the log still has to be recovered, or is missing. */
  readonly isIncomplete: (logName: string) => boolean
}

export class EndedLogs {
  readonly #options: EndedLogsOptions
  readonly #ended = new Map<string, EndedLog>()

  constructor(options: EndedLogsOptions) {
    this.#options = options
  }

  /** The logs that an endpoint owned when they ended. */
  kept(): readonly string[] {
    return [...this.#ended].flatMap(([logName, { reason }]) => (reason === 'unowned' ? [] : [logName]))
  }

  fenced(): readonly string[] {
    return [...this.#ended.keys()].filter((logName) => this.isFenced(logName))
  }

  isFenced(logName: string): boolean {
    return this.#ended.get(logName)?.reason === 'fenced'
  }

  /** Why the log takes no frames. */
  refusal(logName: string): string {
    return refusals[this.#ended.get(logName)?.reason ?? 'unowned']
  }

  /** The logs that were open when they ended. */
  logs(): readonly (readonly [string, Log])[] {
    return [...this.#ended].flatMap(([logName, { log }]) => (log === undefined ? [] : [[logName, log] as const]))
  }

  /**
   * Stops `log`, if one is open: it commits what it accepted and seals. Then calls `onStopped`, and marks the log as closed if that is the
   * reason. Resolves when it has stopped. Idempotent.
   */
  end(logName: string, log: Log | undefined, reason: EndReason, onStopped: () => void): Promise<void> {
    const known = this.#ended.get(logName)
    if (known !== undefined) {
      // The removal may have taken the mark away.
      if (known.reason !== reason && known.reason !== 'fenced')
        Object.assign(known, { reason, isClosed: false, isFailureLogged: false })
      if (reason === 'fenced') known.log?.rejectWaiting()
      return known.stopped
    }
    if (reason === 'fenced') log?.rejectWaiting()
    const stopped = (log?.stop(new AbortController().signal) ?? Promise.resolve()).then(onStopped)
    const ended: EndedLog = { log, reason, stopped, isStopped: false, isClosed: false, isFailureLogged: false, settled: stopped }
    ended.settled = stopped.then(async () => {
      ended.isStopped = true
      if (ended.reason === 'closed') await this.#close(logName, ended)
    })
    this.#ended.set(logName, ended)
    return stopped
  }

  /** Takes back a log that is claimed again. Resolves when a new log may write to its directory. */
  reclaim(logName: string): Promise<void> {
    const ended = this.#ended.get(logName)
    this.#ended.delete(logName)
    return ended?.settled ?? Promise.resolve()
  }

  /** Closes and removes what can be by now. The others are tried again with the next call. */
  async finish(): Promise<void> {
    for (const [logName, ended] of this.#ended) if (ended.isStopped) await this.#finish(logName, ended)
  }

  /** Stops the logs that are still being sealed, and waits for the marks that are being written. */
  async stop(signal: AbortSignal): Promise<void> {
    const ended = [...this.#ended.values()]
    await Promise.all(ended.map(({ log }) => log?.stop(signal)))
    if (signal.aborted) return
    const aborted = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => aborted.resolve(), { once: true })
    await Promise.race([Promise.all(ended.map(({ settled }) => settled)), aborted.promise])
  }

  /** One step at a time for each log, so that a mark is not written into a directory that is being removed. */
  async #finish(logName: string, ended: EndedLog): Promise<void> {
    const step = async () => {
      if (this.#ended.get(logName) !== ended) return
      if (ended.reason === 'closed') await this.#close(logName, ended)
      else if (ended.reason === 'unowned') await this.#remove(logName, ended)
    }
    ended.settled = ended.settled.then(step)
    await ended.settled
  }

  async #close(logName: string, ended: EndedLog): Promise<void> {
    const { directory, files, logger, isIncomplete } = this.#options
    // A listing during the rename of a recovery may show neither name.
    if (ended.isClosed || isIncomplete(logName)) return
    try {
      ended.isClosed = await closeLog(files, join(directory, logName))
      if (ended.isClosed) logger.info({ log: logName }, 'log closed')
    } catch (error) {
      this.#logFailure(logName, ended, error, 'log close failed; retrying')
    }
  }

  async #remove(logName: string, ended: EndedLog): Promise<void> {
    const { directory, files, logger } = this.#options
    try {
      if (!(await removeLogDirectory(files, join(directory, logName)))) return
    } catch (error) {
      this.#logFailure(logName, ended, error, 'empty log removal failed')
      return
    }
    logger.info({ log: logName }, 'empty log removed')
    // The log may have been claimed and ended again in the meantime.
    if (this.#ended.get(logName) === ended && ended.reason === 'unowned') this.#ended.delete(logName)
  }

  #logFailure(logName: string, ended: EndedLog, error: unknown, message: string): void {
    if (!ended.isFailureLogged) this.#options.logger.warn({ err: error, log: logName }, message)
    ended.isFailureLogged = true
  }
}

/** Removes the directory of a log if no segment of any kind is in it. Returns whether it is gone. Can be repeated after a crash. */
async function removeLogDirectory(files: Files, directory: string): Promise<boolean> {
  const names = new Set((await files.list(directory)).map(({ name }) => name))
  const strayNotes = findStrayNotes(names)
  for (const name of names) if (name !== highWaterName && name !== closedName && !strayNotes.includes(name)) return false
  for (const name of strayNotes) await files.remove(join(directory, name))
  const highWaterPath = join(directory, highWaterName)
  const highWater = await files.read(highWaterPath)
  await files.remove(join(directory, closedName))
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

/** Creates the directory if need be. Returns false, and writes nothing, while a segment is not sealed. Idempotent. */
async function closeLog(files: Files, logDirectory: string): Promise<boolean> {
  // Only files are segments, as for recovery and delivery: a directory of such a name is never sealed, and holds nothing.
  const names = (await files.list(logDirectory)).filter(({ kind }) => kind === 'file').map(({ name }) => name)
  if (names.some(isUnsealed)) return false
  if (!names.includes(closedName)) await writeDurably(files, join(logDirectory, closedName), Buffer.from('closed\n'))
  return true
}

/** The log may be written to once this resolves. */
export async function reopenLog(files: Files, logDirectory: string): Promise<void> {
  const path = join(logDirectory, closedName)
  if ((await files.bytes(path)) === undefined) return
  await files.remove(path)
  await files.syncDirectory(logDirectory)
}

function isUnsealed(name: string): boolean {
  const suffix = parseSegmentName(name)?.suffix
  return suffix === 'open' || suffix === 'poisoned'
}
