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
import { idempotencyLimits } from '#model/limits.ts'
import type { CheckedClock } from '#node/checked-clock.ts'
import { printCounts, type RequestCount, readCounts, writeCounts } from './request-counts.ts'
import { RequestFile } from './request-file.ts'
import type { StoredRequest } from './stored-request.ts'

export type RequestFilesOptions = {
  readonly directory: string
  /** The directory, in words for the operator. */
  readonly title: string
  readonly files: Files
  readonly logger: Logger
  readonly clock: Pick<CheckedClock, 'monotonic' | 'surelyBefore'>
  /** Called with the number of requests of each endpoint in a file that was opened, and in one that is not kept any more. */
  readonly onOpened: (counts: ReadonlyMap<string, number>) => void
  readonly onRemoved: (counts: ReadonlyMap<string, number>) => void
}

export const HOUR_MS = 3_600_000
/** The time that the node ran is written so often, if nothing else is. */
const ranIntervalMs = 60_000

const fileName = /^(\d{1,9})\.(requests|quarantine)$/

/** A request was not found, and may be in a file that cannot be read. */
export class UnreadableRequestsError extends Error {
  override readonly name = 'UnreadableRequestsError'

  constructor() {
    super('this node cannot read all of its idempotency keys now')
  }
}

export class RequestFiles {
  readonly #options: RequestFilesOptions
  /** By the hour since 1970 in which their requests were stored. */
  readonly #hours = new Map<number, RequestFile>()
  readonly #opening = new Map<number, Promise<RequestFile>>()
  /** The reason for each hour whose file cannot be read, open or not. */
  readonly #unreadable = new Map<number, string>()
  #unreadableDirectory: string | undefined
  /** Counts of durable requests that the earlier process wrote last. */
  readonly #before = new Map<number, RequestCount>()
  /** Whether that was read. */
  #isLoaded = false
  /** Requests of each hour that were durable once, and are in no file. */
  readonly #gone = new Map<number, number>()
  #countsWritten: string | undefined
  readonly #startedAtMs: number
  /** For how long earlier processes ran. */
  #ranBeforeMs = 0
  #ranWrittenMs = Number.NEGATIVE_INFINITY
  /** For how long the node had run when the last request of each hour was appended. */
  readonly #lastAppends = new Map<number, number>()

  constructor(options: RequestFilesOptions) {
    this.#options = options
    this.#startedAtMs = options.clock.monotonic()
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
    const { title } = this.#options
    const file = (hour: number, code: string) =>
      `${title}/${nameOf(hour)} (idempotency keys of ${isoTimestamp(hour * HOUR_MS)}) cannot be read (${code}): ${consequence}; ${advice}`
    const directory = `the directory ${title} (idempotency keys) cannot be read (${this.#unreadableDirectory}): ${consequence}; make it readable`
    return [
      ...(this.#unreadableDirectory === undefined ? [] : [directory]),
      ...[...this.#unreadable].map(([hour, code]) => file(hour, code)),
    ]
  }

  /** Call it at the start. */
  async prepare(): Promise<void> {
    const { directory, files } = this.#options
    await removeLeftovers(files, directory, () => true)
    await this.refresh()
  }

  /**
   * Requests of that hour that were stored before this time may be forgotten. A clock is not believed alone, nor if control confirms it: control
   * may have the same clock. Since the last of them was stored, the node must have run for that long.
   */
  oldestMs(hour: number): number {
    const ranMs = this.#options.clock.monotonic() - this.#startedAtMs
    const sinceAppendMs = this.#ranBeforeMs + ranMs - (this.#lastAppends.get(hour) ?? this.#ranBeforeMs)
    const isWitnessed = Math.max(ranMs, sinceAppendMs) >= idempotencyLimits.rememberedMs
    return isWitnessed ? this.#options.clock.surelyBefore(idempotencyLimits.rememberedMs) : Number.NEGATIVE_INFINITY
  }

  /** Writes how many are durable, if that changed, and now and then for how long the node has run: always if it `isStopping`. */
  async writeCounts(isStopping = false): Promise<void> {
    const { directory, files } = this.#options
    if (!this.#isLoaded || this.#unreadableDirectory !== undefined) return
    const hours = new Set([...this.#hours.keys(), ...this.#gone.keys(), ...this.#unreadable.keys()])
    const lines = printCounts([...hours].map((hour) => [hour, this.#countOf(hour)] as const))
    const ranMs = this.#ranMs()
    if (lines === this.#countsWritten && !isStopping && ranMs - this.#ranWrittenMs < ranIntervalMs) return
    // A directory that is away for a while must not be created anew in its place.
    if ((await files.list(directory)).length > 0) await writeCounts(files, directory, lines, ranMs)
    this.#countsWritten = lines
    this.#ranWrittenMs = ranMs
  }

  /** Opens the files that are not open, and reads those again that could not be read. Removes those that are old. Never throws. */
  async refresh(): Promise<void> {
    const { directory, files } = this.#options
    try {
      const names = new Set((await files.list(directory)).map(({ name }) => name))
      await this.#load(names)
      for (const name of names) await this.#refreshEntry(name)
      for (const hour of [...this.#before.keys(), ...this.#unreadable.keys()])
        if (!names.has(nameOf(hour))) await this.#noteAway(hour)
      // Not before: until then, a request may be in a file that is not open yet.
      this.#unreadableDirectory = undefined
    } catch (error) {
      if (this.#unreadableDirectory === undefined) this.#logUnreadable(error, directory)
      this.#unreadableDirectory = codeOf(error)
    }
    for (const hour of this.#unreadable.keys()) if (this.#isOld(hour)) this.#unreadable.delete(hour)
  }

  /** The files that are open, by the hour since 1970 in which their requests were stored. */
  get hours(): ReadonlyMap<number, RequestFile> {
    return this.#hours
  }

  /** Whether everything that was found by the last refresh can be read. */
  get isReadable(): boolean {
    return this.#unreadableDirectory === undefined && this.#unreadable.size === 0
  }

  /** Throws UnreadableRequestsError. */
  async find(id: Buffer): Promise<StoredRequest | undefined> {
    for (const [hour, file] of [...this.#hours].reverse()) {
      const oldestMs = this.oldestMs(hour)
      if (isBefore(hour, oldestMs)) continue
      const found = await this.#findIn(hour, file, id)
      if (found !== undefined && found.storedAtMs >= oldestMs) return found
    }
    const isHidden = this.#unreadableDirectory !== undefined || [...this.#unreadable.keys()].some((hour) => !this.#isOld(hour))
    if (isHidden) throw new UnreadableRequestsError()
    return undefined
  }

  /** Throws if the file of that hour cannot be opened or written. Nothing was added then. */
  async append(hour: number, requests: readonly StoredRequest[]): Promise<void> {
    await this.#options.files.makeDirectory(this.#options.directory)
    await (await this.#open(hour)).append(requests)
    this.#lastAppends.set(hour, this.#ranMs())
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

  /** Forgets the requests of hours that have been old for an hour: a request that still looks there has ended long before. */
  async removeOld(): Promise<void> {
    for (const hour of this.#gone.keys()) if (this.#isOld(hour) && !this.#hours.has(hour)) this.#forgetHour(hour)
    for (const [hour, file] of this.#hours) {
      if (!isBefore(hour + 1, this.oldestMs(hour))) continue
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

  /** Reads the counts once, when the directory can be read for the first time. */
  async #load(names: ReadonlySet<string>): Promise<void> {
    if (this.#isLoaded) return
    const { directory, files, logger } = this.#options
    const counts = await readCounts(files, directory)
    if (counts === undefined && [...names].some((name) => fileName.test(name)))
      logger.warn({ directory }, 'counts of idempotency keys missing: whether a file of keys was removed or cut is not known')
    this.#ranBeforeMs = counts?.ranMs ?? 0
    for (const [hour, count] of counts?.hours ?? []) {
      this.#before.set(hour, count)
      this.#lastAppends.set(hour, Math.min(count.ranMs, this.#ranBeforeMs))
    }
    this.#isLoaded = true
  }

  async #refreshEntry(name: string): Promise<void> {
    const { directory, logger } = this.#options
    const [, digits, kind] = fileName.exec(name) ?? []
    const hour = Number(digits)
    if (digits === undefined) return
    if (this.#isOld(hour) && !this.#hours.has(hour))
      return await this.#remove(hour).catch((error: unknown) =>
        logger.warn({ err: error, path: join(directory, name) }, 'old idempotency keys not removed'),
      )
    if (kind === 'quarantine') return
    const open = this.#hours.get(hour)
    if (open === undefined) await this.#open(hour).catch(() => undefined)
    else if (this.#unreadable.has(hour))
      await open.probe().then(
        () => this.#unreadable.delete(hour),
        () => undefined,
      )
  }

  /** There is no file of that hour: it was removed, or moved away as `problems` advises. */
  async #noteAway(hour: number): Promise<void> {
    const file = this.#hours.get(hour)
    // The requests of an open, readable file are still known.
    if (file !== undefined && !this.#unreadable.has(hour)) return
    this.#unreadable.delete(hour)
    if (this.#isOld(hour)) return this.#forgetHour(hour)
    const count = this.#countOf(hour)
    this.#before.set(hour, count)
    this.#noteGone(hour, count.written + count.gone)
    if (file === undefined) return
    this.#hours.delete(hour)
    this.#options.onRemoved(file.counts)
    await file.close()
  }

  #countOf(hour: number): RequestCount {
    const file = this.#hours.get(hour)
    const before = this.#before.get(hour)
    const gone = this.#gone.get(hour)
    const ranMs = this.#lastAppends.get(hour) ?? this.#ranBeforeMs
    if (file !== undefined) return { written: file.written, gone: gone ?? 0, damaged: file.damaged, ranMs }
    if (gone !== undefined) return { written: 0, gone, damaged: 0, ranMs }
    return before ?? { written: 0, gone: 0, damaged: 0, ranMs }
  }

  /** For how long the node has run, in all, and not been away. */
  #ranMs(): number {
    return this.#ranBeforeMs + this.#options.clock.monotonic() - this.#startedAtMs
  }

  #isOld(hour: number): boolean {
    return isBefore(hour, this.oldestMs(hour))
  }

  #forgetHour(hour: number): void {
    this.#before.delete(hour)
    this.#gone.delete(hour)
    this.#lastAppends.delete(hour)
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
      if (!this.#isLoaded) await this.#load(new Set((await files.list(directory)).map(({ name }) => name)))
      const before = this.#before.get(hour) ?? { written: 0, gone: 0, damaged: 0 }
      const file = await RequestFile.open(files, path, quarantine, before.written)
      // Some were appended after the counts were written.
      if (file.places > before.written) this.#lastAppends.set(hour, this.#ranMs())
      this.#unreadable.delete(hour)
      this.#hours.set(hour, file)
      this.#noteGone(hour, before.gone + before.written - file.written)
      onOpened(file.counts)
      // Earlier starts logged the others.
      if (file.damaged > before.damaged)
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
    const known = this.#gone.get(hour) ?? this.#before.get(hour)?.gone ?? 0
    if (keys <= 0) this.#gone.delete(hour)
    else this.#gone.set(hour, keys)
    if (keys > known)
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
    const { directory, files, logger } = this.#options
    await files.remove(join(directory, nameOf(hour)))
    await files.remove(join(directory, quarantineOf(hour)))
    this.#forgetHour(hour)
    logger.info({ file: nameOf(hour) }, 'old idempotency keys removed')
  }

  #sum(part: (file: RequestFile) => number): number {
    return [...this.#hours.values()].reduce((sum, file) => sum + part(file), 0)
  }
}

/** Whether every request of that hour was stored before `oldestMs`. */
function isBefore(hour: number, oldestMs: number): boolean {
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
