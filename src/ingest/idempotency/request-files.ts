/**
 * The files with the requests of the last 24 hours, one for each hour.
 *
 * Owns: which files are open, and which of them, or whether the directory, cannot be read. Does not own: what is written when (stored-requests.ts).
 * Law: a file that cannot be read stops nothing but the search for a request that is in no other file: it may be in that one. It is tried again.
 */
import { join } from 'node:path'
import { isoTimestamp } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode, type Files, removeLeftovers } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import { printCounts, type RequestCount, readCounts, writeCounts } from './request-counts.ts'
import { RequestFile } from './request-file.ts'
import type { StoredRequest } from './stored-request.ts'

export type RequestFilesOptions = {
  readonly directory: string
  readonly files: Files
  readonly logger: Logger
  /** Called with the number of requests of each endpoint in a file that was opened, and in one that is not kept any more. */
  readonly onOpened: (counts: ReadonlyMap<string, number>) => void
  readonly onRemoved: (counts: ReadonlyMap<string, number>) => void
}

export const HOUR_MS = 3_600_000

const fileName = /^(\d{1,9})\.(requests|quarantine)$/

/** A request was not found, and may be in a file that cannot be read. */
export class UnreadableRequestsError extends Error {
  override readonly name = 'UnreadableRequestsError'
}

export class RequestFiles {
  readonly #options: RequestFilesOptions
  /** By the hour since 1970 in which their requests were stored. */
  readonly #hours = new Map<number, RequestFile>()
  readonly #opening = new Map<number, Promise<RequestFile>>()
  /** The reason for each hour whose file cannot be read, open or not. */
  readonly #unreadable = new Map<number, string>()
  #unreadableDirectory: string | undefined
  /** What was durable when the earlier process wrote its last counts. */
  #before: ReadonlyMap<number, RequestCount> = new Map()
  /** Requests of each hour that were durable once, and are in no file. */
  readonly #gone = new Map<number, number>()
  #countsWritten: string | undefined

  constructor(options: RequestFilesOptions) {
    this.#options = options
  }

  get indexBytes(): number {
    return this.#sum((file) => file.indexBytes)
  }

  /** Requests that were known and cannot be read any more. */
  get damaged(): number {
    return [...this.#gone.values()].reduce((sum, gone) => sum + gone, 0) + this.#sum((file) => file.damaged)
  }

  /** Why a request that was stored may not be found, and what to do. */
  problems(): readonly string[] {
    const consequence = 'requests with an idempotency key are refused unless they are found elsewhere'
    const advice = 'make it readable, or move it away: requests of that time that are repeated are then stored again'
    const file = (hour: number, code: string) =>
      `stored-requests/${nameOf(hour)} (idempotency keys of ${isoTimestamp(hour * HOUR_MS)}) cannot be read (${code}): ${consequence}; ${advice}`
    const directory = `the directory stored-requests (idempotency keys) cannot be read (${this.#unreadableDirectory}): ${consequence}; make it readable`
    return [
      ...(this.#unreadableDirectory === undefined ? [] : [directory]),
      ...[...this.#unreadable].map(([hour, code]) => file(hour, code)),
    ]
  }

  /** Call it at the start. */
  async prepare(oldestMs: number): Promise<void> {
    const { directory, files, logger } = this.#options
    await removeLeftovers(files, directory, () => true)
    const before = await readCounts(files, directory)
    this.#before = before ?? new Map()
    await this.refresh(oldestMs)
    if (before === undefined && this.#hours.size > 0)
      logger.warn({ directory }, 'counts of idempotency keys missing: whether a file of keys was removed or cut is not known')
    for (const [hour, count] of this.#before) {
      if (isOld(hour, oldestMs) || this.#hours.has(hour) || this.#unreadable.has(hour)) continue
      if (this.#unreadableDirectory === undefined) this.#noteGone(hour, count.written + count.gone)
    }
  }

  /** Writes how many are durable, if that changed. */
  async writeCounts(): Promise<void> {
    const { directory, files } = this.#options
    const hours = [...this.#hours].map(([hour, { written }]) => [hour, { written, gone: this.#gone.get(hour) ?? 0 }] as const)
    const without = [...this.#gone].flatMap(([hour, gone]) =>
      this.#hours.has(hour) ? [] : [[hour, { written: 0, gone }] as const],
    )
    const unread = [...this.#unreadable.keys()].flatMap((hour) => {
      const count = this.#hours.has(hour) ? undefined : this.#before.get(hour)
      return count === undefined ? [] : [[hour, count] as const]
    })
    const lines = printCounts([...hours, ...without, ...unread])
    if (lines === this.#countsWritten || this.#unreadableDirectory !== undefined) return
    // A directory that is away for a while must not be created anew in its place.
    if ((await files.list(directory)).length > 0) await writeCounts(files, directory, lines)
    this.#countsWritten = lines
  }

  /** Opens the files that are not open, and reads those again that could not be read. Removes those older than `oldestMs`. Never throws. */
  async refresh(oldestMs: number): Promise<void> {
    const { directory, files } = this.#options
    try {
      const entries = await files.list(directory)
      this.#unreadableDirectory = undefined
      for (const { name } of entries) await this.#refreshEntry(name, oldestMs)
    } catch (error) {
      if (this.#unreadableDirectory === undefined) this.#logUnreadable(error, directory)
      this.#unreadableDirectory = codeOf(error)
    }
    for (const hour of this.#unreadable.keys()) if (isOld(hour, oldestMs)) this.#unreadable.delete(hour)
  }

  /** Whether everything that was found by the last refresh can be read. */
  get isReadable(): boolean {
    return this.#unreadableDirectory === undefined && this.#unreadable.size === 0
  }

  /** Throws UnreadableRequestsError. */
  async find(id: Buffer, oldestMs: number): Promise<StoredRequest | undefined> {
    for (const [hour, file] of [...this.#hours].reverse()) {
      if (isOld(hour, oldestMs)) continue
      const found = await this.#findIn(hour, file, id)
      if (found !== undefined && found.storedAtMs >= oldestMs) return found
    }
    const isHidden =
      this.#unreadableDirectory !== undefined || [...this.#unreadable.keys()].some((hour) => !isOld(hour, oldestMs))
    if (isHidden) throw new UnreadableRequestsError('this node cannot read all of its idempotency keys now')
    return undefined
  }

  /** Throws if the file of that hour cannot be opened or written. Nothing was added then. */
  async append(hour: number, requests: readonly StoredRequest[]): Promise<void> {
    await this.#options.files.makeDirectory(this.#options.directory)
    await (await this.#open(hour)).append(requests)
  }

  /** Returns how many were forgotten, durably. Throws if a file cannot be read or written. */
  async forget(isForgotten: (request: StoredRequest) => boolean): Promise<number> {
    let forgotten = 0
    for (const file of this.#hours.values()) forgotten += await file.forget(isForgotten)
    return forgotten
  }

  async sync(): Promise<void> {
    for (const file of this.#hours.values()) await file.sync()
  }

  /** Forgets the requests of hours that ended an hour before `oldestMs`: a request that still looks there has ended long before. */
  async removeOld(oldestMs: number): Promise<void> {
    for (const hour of this.#gone.keys()) if (isOld(hour, oldestMs)) this.#gone.delete(hour)
    for (const [hour, file] of this.#hours) {
      if (!isOld(hour + 1, oldestMs)) continue
      this.#hours.delete(hour)
      this.#options.onRemoved(file.counts)
      await file.close()
      await this.#remove(hour)
    }
  }

  async close(): Promise<void> {
    for (const file of this.#hours.values()) await file.close()
    this.#hours.clear()
  }

  async #refreshEntry(name: string, oldestMs: number): Promise<void> {
    const { directory, files, logger } = this.#options
    const path = join(directory, name)
    const [, digits, kind] = fileName.exec(name) ?? []
    const hour = Number(digits)
    if (digits === undefined) return
    if (isOld(hour, oldestMs) && !this.#hours.has(hour))
      return await files
        .remove(path)
        .catch((error: unknown) => logger.warn({ err: error, path }, 'old idempotency keys not removed'))
    if (kind === 'quarantine') return
    const open = this.#hours.get(hour)
    if (open === undefined) await this.#open(hour).catch(() => undefined)
    else if (this.#unreadable.has(hour))
      await open.probe().then(
        () => this.#unreadable.delete(hour),
        () => undefined,
      )
  }

  /** One opening at a time for each file: two would write to the same places. */
  #open(hour: number): Promise<RequestFile> {
    const known = this.#hours.get(hour)
    if (known !== undefined) return Promise.resolve(known)
    const opening = this.#opening.get(hour) ?? this.#openOnce(hour).finally(() => this.#opening.delete(hour))
    this.#opening.set(hour, opening)
    return opening
  }

  async #openOnce(hour: number): Promise<RequestFile> {
    const { directory, files, logger, onOpened } = this.#options
    const path = join(directory, nameOf(hour))
    const quarantine = join(directory, quarantineOf(hour))
    try {
      const before = this.#before.get(hour) ?? { written: 0, gone: 0 }
      const file = await RequestFile.open(files, path, quarantine, before.written)
      this.#unreadable.delete(hour)
      this.#hours.set(hour, file)
      this.#noteGone(hour, before.gone + before.written - file.written)
      onOpened(file.counts)
      if (file.damaged > 0)
        logger.error({ path, quarantine, keys: file.damaged }, 'idempotency keys damaged; the others are kept')
      return file
    } catch (error) {
      this.#noteUnreadable(hour, error)
      throw error
    }
  }

  async #findIn(hour: number, file: RequestFile, id: Buffer): Promise<StoredRequest | undefined> {
    const before = file.damaged
    try {
      return await file.find(id)
    } catch (error) {
      this.#noteUnreadable(hour, error)
      return undefined
    } finally {
      if (file.damaged > before)
        this.#options.logger.error({ file: nameOf(hour), keys: file.damaged }, 'idempotency key damaged since it was written')
    }
  }

  #noteGone(hour: number, keys: number): void {
    if (keys <= 0) return
    this.#gone.set(hour, keys)
    this.#options.logger.error({ file: nameOf(hour), keys }, 'idempotency keys gone: their file was cut, removed or replaced')
  }

  #noteUnreadable(hour: number, error: unknown): void {
    const { directory } = this.#options
    if (!this.#unreadable.has(hour)) this.#logUnreadable(error, join(directory, nameOf(hour)))
    this.#unreadable.set(hour, codeOf(error))
  }

  #logUnreadable(error: unknown, path: string): void {
    this.#options.logger.error({ err: error, path }, 'idempotency keys cannot be read; retrying')
  }

  async #remove(hour: number): Promise<void> {
    const { directory, files } = this.#options
    await files.remove(join(directory, nameOf(hour)))
    await files.remove(join(directory, quarantineOf(hour)))
  }

  #sum(part: (file: RequestFile) => number): number {
    return [...this.#hours.values()].reduce((sum, file) => sum + part(file), 0)
  }
}

/** Whether every request of that hour was stored before `oldestMs`. */
function isOld(hour: number, oldestMs: number): boolean {
  return (hour + 1) * HOUR_MS < oldestMs
}

function nameOf(hour: number): string {
  return `${hour}.requests`
}

function quarantineOf(hour: number): string {
  return `${hour}.quarantine`
}

function codeOf(error: unknown): string {
  return errorCode(error) ?? errorMessage(error)
}
