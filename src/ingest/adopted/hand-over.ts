/**
 * Hands the idempotency keys of a lost node to the node that adopts its log.
 *
 * Law: they are handed over once the adopted log is recovered, so that those in its frames are among them. What was handed over once is not
 * changed: the other node has it open. If there is more later, that goes to a new directory. A file that cannot be read holds up nothing.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { z } from 'zod'
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { copyBytes, type Files, replaceDurably, writeDurably } from '#lib/files.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Random } from '#lib/random.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { LogWriter } from '#log/log-writer.ts'
import type { SegmentSource } from '#log/segment-source.ts'
import { printCounts, type RequestCount, writeCounts } from '../idempotency/request-counts.ts'
import { STORED_REQUEST_BYTES } from '../idempotency/stored-request.ts'
import type { StoredRequests } from '../idempotency/stored-requests.ts'

/**
 * `directory`: where the node looks for the keys of lost ones (idempotency/adopted-requests.ts). `isOnDisk`: the records are on an adopted disk, and
 * not restored from copies.
 */
export type Receiver = { readonly directory: string; readonly nodeId: string; readonly isOnDisk: boolean }

export type HandOverOptions = {
  readonly nodeId: string
  /** The files of the lost node. */
  readonly from: string
  /** The node on this machine; undefined if there is none. */
  readonly to: Receiver | undefined
  /** Notes what was handed over, and to whom. */
  readonly done: string
  readonly log: Pick<LogWriter, 'whenRecovered'>
  readonly segments: Pick<SegmentSource, 'logNames'>
  readonly storedRequests: Pick<StoredRequests, 'beforeSeal' | 'requireWritten'>
  readonly files: Files
  readonly random: Random
  readonly clock: Clock
  readonly logger: Logger
}

const intervalMs = 10_000
const bufferBytes = 1_048_576
const fileName = /^\d{1,9}\.requests$/

/** `sizes`: the bytes of each file that were handed over to the node `by`. */
const Note = z.object({ by: z.string(), sizes: z.record(z.string(), z.int().min(0)) })
type Note = z.infer<typeof Note>

/** Requests that are not handed over. */
type Added = { readonly name: string; readonly start: number; readonly end: number }

export class HandOver implements Service {
  readonly name = 'hand-over of idempotency keys'
  readonly #options: HandOverOptions
  readonly #runs: Periodic
  #isDone: boolean
  /** Files of which the log says that they cannot be read. */
  readonly #unreadable = new Set<string>()

  constructor(options: HandOverOptions) {
    const { to, clock, logger } = options
    this.#options = options
    this.#isDone = to === undefined
    this.#runs = new Periodic({
      ...{ name: this.name, intervalMs, runAtStart: true, clock, logger },
      run: () => this.#run(),
      failure: 'the idempotency keys of the lost node are not known here yet',
    })
  }

  /** Whether all that was known at the last look was handed over. */
  get isDone(): boolean {
    return this.#isDone
  }

  start(): Promise<void> {
    return this.#runs.start()
  }

  stop(): Promise<void> {
    return this.#runs.stop()
  }

  async #run(): Promise<void> {
    const { nodeId, to, log, segments, storedRequests, logger } = this.#options
    if (to === undefined) return
    for (const logName of await segments.logNames()) await log.whenRecovered(logName)
    await storedRequests.beforeSeal()
    storedRequests.requireWritten()
    const bytes = await this.#handOver(to)
    this.#isDone = true
    if (bytes > 0) logger.notice({ node_id: nodeId, bytes }, 'this node knows the idempotency keys of the lost one')
  }

  /** Returns how many bytes of keys it handed over: 0 if there is nothing new. Throws if the disk fails. */
  async #handOver(to: Receiver): Promise<number> {
    const { nodeId, done, files, random } = this.#options
    const before = await this.#readNote(to)
    const added = await this.#findAdded(before)
    if (added.length === 0) return 0
    const unfinished = join(to.directory, `new-${nodeId}`)
    try {
      await files.removeTree(unfinished)
      const copied: Added[] = []
      for (const each of added) if (await this.#copy(each, unfinished)) copied.push(each)
      if (copied.length === 0) return 0
      await writeCounts(files, unfinished, printCounts(copied.map(countOf)), 0)
      await files.rename(
        unfinished,
        join(to.directory, `${nodeId}${to.isOnDisk ? '-disk' : ''}-${random.bytes(4).toString('hex')}`),
      )
      await files.syncDirectory(to.directory)
      const sizes = [...before, ...copied.map(({ name, end }) => [name, end] as const)]
      const note: Note = { by: to.nodeId, sizes: Object.fromEntries(sizes) }
      await writeDurably(files, done, Buffer.from(`${JSON.stringify(note)}\n`))
      // The other process watches it.
      await files.touch(to.directory)
      return copied.reduce((sum, { start, end }) => sum + end - start, 0)
    } catch (error) {
      // A full disk needs the room.
      await files.removeTree(unfinished).catch(() => undefined)
      throw error
    }
  }

  /** Returns the files that have more requests than were handed over. */
  async #findAdded(before: ReadonlyMap<string, number>): Promise<readonly Added[]> {
    const { from, files } = this.#options
    const added: Added[] = []
    for (const { name } of await files.list(from)) {
      if (!fileName.test(name)) continue
      const start = before.get(name) ?? 0
      const end = wholeRequests((await files.bytes(join(from, name))) ?? 0)
      if (end > start) added.push({ name, start, end })
    }
    return added
  }

  /** Returns what was handed over to this receiver, as the size of each file. */
  async #readNote({ nodeId }: Receiver): Promise<ReadonlyMap<string, number>> {
    const { done, files } = this.#options
    const text = Buffer.from((await files.read(done)) ?? []).toString()
    const note = Note.safeParse(text === '' ? undefined : parseJson(text)).data
    return new Map(note?.by === nodeId ? Object.entries(note.sizes) : [])
  }

  /** Returns false if the requests cannot be read. */
  async #copy({ name, start, end }: Added, into: string): Promise<boolean> {
    const { nodeId, from, files, logger } = this.#options
    let unreadable: unknown
    try {
      const source = await files.open(join(from, name), 'read').catch((error: unknown) => {
        unreadable = error
        throw error
      })
      const read = async (buffer: Uint8Array, position: number) =>
        await source.read(buffer, position).catch((error: unknown) => {
          unreadable = error
          throw error
        })
      try {
        const { path } = source
        await replaceDurably(files, join(into, name), (copy) => copyBytes({ path, read }, { start, end }, copy, 0, bufferBytes))
      } finally {
        await source.close()
      }
      return true
    } catch (error) {
      if (unreadable === undefined) throw error
      if (!this.#unreadable.has(name))
        logger.error(
          { node_id: nodeId, file: join(from, name), reason: errorMessage(unreadable) },
          'idempotency keys of the lost node cannot be read: requests that are repeated with them are stored again',
        )
      this.#unreadable.add(name)
      return false
    }
  }
}

function wholeRequests(bytes: number): number {
  return bytes - (bytes % STORED_REQUEST_BYTES)
}

function countOf({ name, start, end }: Added): readonly [number, RequestCount] {
  return [Number.parseInt(name, 10), { written: (end - start) / STORED_REQUEST_BYTES, gone: 0, damaged: 0, ranMs: 0 }]
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
