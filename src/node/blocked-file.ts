import { z } from 'zod'
import type { Clock } from '#lib/clock.ts'
import { isoTimestamp } from '#lib/clock.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'

const intervalMs = 2_000
/** An unchanged file is written again after this time, so that its age shows whether the process runs. */
const refreshMs = 20_000
/** A file that is older was written by a process that does not run any more. */
const freshMs = 45_000

const Content = z.object({ at: z.iso.datetime(), blocked: z.record(z.string(), z.string()) })

export type BlockedFileOptions = {
  readonly path: string
  /** Returns the reason of each log that is blocked. */
  readonly blocked: () => ReadonlyMap<string, string>
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
}

/** Writes which logs a process cannot go on with, and why, for `inlet segments` on the same machine, which works without control. */
export class BlockedFile implements Service {
  readonly name = 'blocked-file'
  readonly #options: BlockedFileOptions
  readonly #writes: Periodic
  #written = ''
  #writtenAt = Number.NEGATIVE_INFINITY

  constructor(options: BlockedFileOptions) {
    const { clock, logger } = options
    this.#options = options
    this.#writes = new Periodic({
      ...{ name: this.name, intervalMs, clock, logger },
      run: () => this.#write(),
      runAtStart: true,
      failure: 'writing the reasons of blocked logs failed',
      recovery: 'writing the reasons of blocked logs restored',
      level: 'warn',
    })
  }

  start(): Promise<void> {
    return this.#writes.start()
  }

  /** Removes the file: a process that does not run is blocked by nothing. */
  async stop(): Promise<void> {
    await this.#writes.stop()
    await this.#options.files.remove(this.#options.path).catch(() => undefined)
  }

  async #write(): Promise<void> {
    const { path, blocked, files, clock } = this.#options
    const text = JSON.stringify(Object.fromEntries(blocked()))
    const now = clock.monotonic()
    if (text === this.#written && now - this.#writtenAt < refreshMs) return
    await writeDurably(files, path, Buffer.from(`{"at":"${isoTimestamp(clock.now())}","blocked":${text}}\n`))
    this.#written = text
    this.#writtenAt = now
  }
}

/** Returns the reasons by log; undefined if the process does not seem to run. */
export async function readBlocked(files: Files, path: string, clock: Clock): Promise<ReadonlyMap<string, string> | undefined> {
  const bytes = await files.read(path)
  const { data } = Content.safeParse(parseJson(Buffer.from(bytes ?? []).toString('utf8')))
  if (data === undefined || Math.abs(clock.now() - Date.parse(data.at)) > freshMs) return undefined
  return new Map(Object.entries(data.blocked))
}
