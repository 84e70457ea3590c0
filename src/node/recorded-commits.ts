/**
 * How many commits of this node the database has recorded, as this node remembers it.
 *
 * Owns: the number and its file. Does not own: what control makes of it (control/fleet/node-reports.ts).
 * Law: the number is never too high, so a database that has fewer has lost some. A crash may leave it too low: then a loss may go unnoticed,
 * but nothing is reported lost that is not.
 */
import { crc32 } from 'node:zlib'
import { z } from 'zod'
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { type CommitsRecorded, RecordedCommits as Recorded } from '#model/node-protocol.ts'

/** The number is written again after so long at most: a write costs two fsyncs. */
const intervalMs = 10_000
/** Control compares the number so often at least: it may have moved to an older database while it was in reach. */
const comparisonMs = 60_000

/** With a checksum: a flipped bit in the number would report a loss, or hide one. */
const Content = z
  .strictObject({ recorded: Recorded, crc32: z.int() })
  .refine(({ recorded, crc32: sum }) => crc32(JSON.stringify(recorded)) === sum)

type Recording = Pick<CommitsRecorded, 'new' | 'total'>

export type RecordedCommitsOptions = {
  readonly path: string
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
}

export class RecordedCommits implements Service {
  readonly name = 'recorded commits'
  readonly #options: RecordedCommitsOptions
  readonly #writes: Periodic
  #known: Recorded | undefined
  #written = ''
  /** Whether control has compared the number since it was last out of reach, and when, by the monotonic clock. */
  #isCompared = false
  #comparedAt = 0

  constructor(options: RecordedCommitsOptions) {
    const { clock, logger } = options
    this.#options = options
    this.#writes = new Periodic({
      ...{ name: this.name, intervalMs, clock, logger },
      run: () => this.#write(),
      failure: 'writing the number of recorded commits failed',
      recovery: 'writing the number of recorded commits restored',
      level: 'warn',
    })
  }

  async start(): Promise<void> {
    this.#known = await this.#read()
    await this.#writes.start()
  }

  /** Without the number, control says it anew. A database that lost commits before that is not noticed by it. */
  async #read(): Promise<Recorded | undefined> {
    const { files, path, logger } = this.#options
    try {
      const bytes = await files.read(path)
      return bytes && Content.parse(parseJson(Buffer.from(bytes).toString('utf8'))).recorded
    } catch (error) {
      logger.error({ path, reason: errorMessage(error) }, 'number of recorded commits unreadable; asking control')
      return undefined
    }
  }

  async stop(): Promise<void> {
    await this.#writes.stop()
    await this.#write().catch((error: unknown) =>
      this.#options.logger.warn({ err: error }, 'number of recorded commits not kept'),
    )
  }

  /** Returns what the next heartbeat says, for control to compare: after control was out of reach, and once a minute. */
  toCompare(): { readonly recorded?: Recorded | null } {
    const isRecent = this.#options.clock.monotonic() - this.#comparedAt < comparisonMs
    return this.#isCompared && isRecent ? {} : { recorded: this.#known ?? null }
  }

  /** Control compared, and says what it has. */
  compared(recorded: Recorded | undefined): void {
    if (recorded === undefined) return
    // Also if it is lower: control noted the loss, and must not note it again.
    this.#known = recorded
    this.#isCompared = true
    this.#comparedAt = this.#options.clock.monotonic()
  }

  /** Control may be another one now, or have another database. */
  lostContact(): void {
    this.#isCompared = false
  }

  /** Sends commits, and learns from the answer how many the database has. */
  async whenSent<Answer extends Recording>(send: () => Promise<Answer>): Promise<Answer> {
    const before = this.#known
    const answer = await send()
    this.#observeTotal(answer, before)
    return answer
  }

  /**
   * An older database that gets new commits has as many again at some time. So the new ones are counted on top of what it had before, and the
   * next heartbeat compares.
   */
  #observeTotal({ new: added, total }: Recording, before: Recorded | undefined): void {
    if (total === undefined) return
    const known = this.#known
    if (total.database !== known?.database) {
      this.#known = total
      return
    }
    // Unless control compared meanwhile: then it has noted the loss.
    const isBehind = known === before && total.commits < before.commits + added
    if (isBehind) this.#isCompared = false
    this.#known = { ...total, commits: Math.max(known.commits, isBehind ? before.commits + added : total.commits) }
  }

  async #write(): Promise<void> {
    if (this.#known === undefined) return
    const { database, commits } = this.#known
    const recorded = { database, commits }
    const text = JSON.stringify({ recorded, crc32: crc32(JSON.stringify(recorded)) })
    if (text === this.#written) return
    await writeDurably(this.#options.files, this.#options.path, Buffer.from(`${text}\n`))
    this.#written = text
  }
}
