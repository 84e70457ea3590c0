import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { Backoff } from '#lib/retry.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Register } from '#model/node-protocol.ts'
import { Snapshot } from '#model/snapshot.ts'
import { type ControlClient, ControlError } from './control-client.ts'

const waitMs = 20_000
/** Failures in a row that are worth a word: control may be starting beside us. */
const failuresWorthAWord = 5

export type SnapshotFeedOptions = {
  readonly client: ControlClient
  readonly nodeId: string
  /** Where the last snapshot lies, for a start without control. */
  readonly path: string
  /** Who registers the node does it here, and again when control no longer knows it. */
  readonly register?: Register
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Keeps the newest snapshot at hand.
 *
 * Owns: long polling, the stored copy. Does not own: what a snapshot means.
 * Law: what subscribers see is stored first where the disk allows it, so a start without control goes on from there.
 */
export class SnapshotFeed implements Service {
  readonly name = 'snapshot feed'
  readonly #options: SnapshotFeedOptions
  readonly #listeners = new Set<(snapshot: Snapshot) => void>()
  readonly #stopping = new AbortController()
  #current: Snapshot | undefined
  #polling: Promise<void> = Promise.resolve()

  constructor(options: SnapshotFeedOptions) {
    this.#options = options
  }

  current(): Snapshot | undefined {
    return this.#current
  }

  /** Calls at once with the current snapshot, if there is one, and then with each newer one. */
  subscribe(listener: (snapshot: Snapshot) => void): () => void {
    this.#listeners.add(listener)
    if (this.#current !== undefined) listener(this.#current)
    return () => this.#listeners.delete(listener)
  }

  /** Resolves when the stored snapshot is loaded; doesn't wait for control. */
  async start(): Promise<void> {
    const stored = await this.#load()
    if (stored !== undefined) this.#publish(stored)
    this.#polling = this.#poll(this.#stopping.signal)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#polling
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const { client, nodeId, register, clock, logger } = this.#options
    const backoff = new Backoff({ delayMsMin: 100, delayMsMax: 5_000 })
    let registered = register === undefined
    let known = -1
    while (!signal.aborted) {
      try {
        if (!registered && register !== undefined) await client.register(register, signal)
        registered = true
        // The first answer is taken whatever its epoch: a control that was restored from a backup may be behind our copy.
        const snapshot = await client.fetchSnapshot(nodeId, known, known < 0 ? 0 : waitMs, signal)
        if (snapshot === undefined && known < 0) throw new Error('control has no snapshot for this node')
        if (backoff.attempts >= failuresWorthAWord) logger.info({ epoch: snapshot?.epoch ?? known }, 'control is back')
        backoff.reset()
        if (snapshot === undefined) continue
        known = snapshot.epoch
        await this.#store(snapshot)
        this.#publish(snapshot)
      } catch (error) {
        if (signal.aborted) return
        if (error instanceof ControlError && error.status === 404) {
          registered = register === undefined
          known = -1
        }
        const delayMs = backoff.next()
        if (backoff.attempts === failuresWorthAWord)
          logger.warn({ reason: errorMessage(error) }, 'no snapshot from control; working from the last one')
        await sleep(clock, delayMs, signal)
      }
    }
  }

  #publish(snapshot: Snapshot): void {
    this.#current = snapshot
    for (const listener of this.#listeners) listener(snapshot)
  }

  async #load(): Promise<Snapshot | undefined> {
    const { files, path, logger } = this.#options
    const bytes = await files.read(path)
    if (bytes === undefined) return undefined
    try {
      return Snapshot.parse(JSON.parse(Buffer.from(bytes).toString('utf8')))
    } catch (error) {
      logger.error({ path, reason: errorMessage(error) }, 'the stored snapshot is unreadable; waiting for control')
      return undefined
    }
  }

  /** A disk that is full must not keep a revocation from working: then the copy on disk is older than what we work by. */
  async #store(snapshot: Snapshot): Promise<void> {
    const { files, path, logger } = this.#options
    try {
      await writeDurably(files, path, Buffer.from(JSON.stringify(snapshot)))
    } catch (error) {
      logger.error({ path, reason: errorMessage(error) }, 'the snapshot could not be stored')
    }
  }
}
