/**
 * Hands the idempotency keys of a lost node to the node that adopts its log.
 *
 * Law: they are handed over once the adopted log is recovered, so that those in its frames are among them. What was handed over once is not
 * changed: the other node has it open. If there is more later, all of it goes to a new directory.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import type { Clock } from '#lib/clock.ts'
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

export type HandOverOptions = {
  readonly nodeId: string
  /** The files of the lost node. */
  readonly from: string
  /** Where the node on this machine looks for them (idempotency/adopted-requests.ts); undefined if there is none. */
  readonly to: string | undefined
  /** Notes what was handed over. */
  readonly done: string
  readonly log: Pick<LogWriter, 'whenRecovered'>
  readonly segments: Pick<SegmentSource, 'logNames'>
  readonly storedRequests: Pick<StoredRequests, 'beforeSeal'>
  readonly files: Files
  readonly random: Random
  readonly clock: Clock
  readonly logger: Logger
}

const intervalMs = 10_000
const bufferBytes = 1_048_576

export class HandOver implements Service {
  readonly name = 'hand-over of idempotency keys'
  readonly #options: HandOverOptions
  readonly #runs: Periodic
  #isDone: boolean

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
    const bytes = await this.#handOver(to)
    this.#isDone = true
    if (bytes > 0) logger.notice({ node_id: nodeId, bytes }, 'this node knows the idempotency keys of the lost one')
  }

  /** Returns how many bytes of keys it handed over: 0 if there is nothing new. Throws if the disk fails. */
  async #handOver(to: string): Promise<number> {
    const { nodeId, from, done, files, random } = this.#options
    const sizes: (readonly [string, number])[] = []
    for (const { name } of await files.list(from))
      if (name.endsWith('.requests')) sizes.push([name, (await files.bytes(join(from, name))) ?? 0])
    const note = `${JSON.stringify(sizes.toSorted())}\n`
    const before = await files.read(done)
    if (sizes.length === 0 || (before !== undefined && Buffer.from(before).toString() === note)) return 0
    const directory = join(to, `${nodeId}-${random.bytes(4).toString('hex')}`)
    const unfinished = join(to, `new-${nodeId}`)
    await files.removeTree(unfinished)
    for (const [name, bytes] of sizes) await copyDurably(files, join(from, name), join(unfinished, name), bytes)
    await writeCounts(files, unfinished, printCounts(sizes.map(countOf)), 0)
    await files.rename(unfinished, directory)
    await files.syncDirectory(to)
    await writeDurably(files, done, Buffer.from(note))
    // The other process watches it.
    await files.touch(to)
    return sizes.reduce((sum, [, bytes]) => sum + bytes, 0)
  }
}

function countOf([name, bytes]: readonly [string, number]): readonly [number, RequestCount] {
  return [Number.parseInt(name, 10), { written: Math.floor(bytes / STORED_REQUEST_BYTES), gone: 0, damaged: 0, ranMs: 0 }]
}

async function copyDurably(files: Files, from: string, to: string, bytes: number): Promise<void> {
  const source = await files.open(from, 'read')
  try {
    await replaceDurably(files, to, (copy) => copyBytes(source, { start: 0, end: bytes }, copy, 0, bufferBytes))
  } finally {
    await source.close()
  }
}
