import type { Fence } from '#errors.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Files } from '#lib/files.ts'
import type { Random } from '#lib/random.ts'
import { Backoff } from '#lib/retry.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { DatabasePosition } from '#model/database-position.ts'
import type { Snapshot } from '#model/snapshot.ts'
import type { SectionKind } from '#model/snapshot-sections.ts'
import { type Control, ControlError } from './control-client.ts'
import { ControlContact } from './control-contact.ts'
import type { NodeFence } from './node-fence.ts'
import { isRefused, type Registration } from './registration.ts'
import { SnapshotFile } from './snapshot-file.ts'
import { asStored, parseUpdates, printUpdate, SnapshotSections } from './snapshot-sections.ts'

const waitMs = 20_000
/** A process is cut off after this time without control, which may just be restarting. */
const cutOffMs = 15_000
/** How often a process that refuses the configuration of control asks for another one. */
const refusedMs = 2_000

/** Configuration that a process uses, as its heartbeat reports it. */
export type ConfigurationInUse = { readonly applied_epoch: number; readonly kept_position?: DatabasePosition }

export type SnapshotFeedOptions = {
  readonly client: Control
  readonly nodeId: string
  /** Kinds of sections to fetch. Without `views`, endpoints have no views. */
  readonly kinds: readonly SectionKind[]
  /** Path of the stored copy, for a start without control. */
  readonly path: string
  /**
   * If given, the feed registers the node and fetches the committed seqs. Repeats both if control no longer knows the node, or refuses it. Must
   * throw if control refuses the node, and why.
   */
  readonly registration?: Pick<Registration, 'register'>
  readonly fence: NodeFence
  readonly files: Files
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

/**
 * Keeps the snapshot of this process up to date.
 *
 * Owns: long polling, the stored copy, refusing the configuration of a database that went back. Does not own: applying the configuration.
 * Law: a snapshot is stored before subscribers see it, if the disk allows, so a start without control continues from there.
 */
export class SnapshotFeed implements Service {
  readonly name = 'snapshot feed'
  readonly contact: ControlContact
  readonly #options: SnapshotFeedOptions
  readonly #listeners = new Set<(snapshot: Snapshot) => void>()
  readonly #stopping = new AbortController()
  readonly #file: SnapshotFile
  #sections: SnapshotSections
  /** Identifies what subscribers have seen. */
  #publishedDigest = ''
  #refusal = 'the process refused the configuration of control before it was started again'
  #endBackoff: () => void = () => undefined
  /** Ends the request that is waiting for changes. */
  #endPoll: () => void = () => undefined
  #polling: Promise<void> = Promise.resolve()

  constructor(options: SnapshotFeedOptions) {
    this.#options = options
    this.contact = new ControlContact(options.clock)
    this.#file = new SnapshotFile(options)
    this.#sections = new SnapshotSections(options.kinds)
  }

  current(): Snapshot | undefined {
    return this.#sections.current
  }

  /** Why this process keeps its configuration and refuses that of control; undefined if it does not. */
  get refusal(): string | undefined {
    return this.#sections.kept && this.#refusal
  }

  /**
   * Returns what to tell control about the configuration in use, of which `epoch` is applied. The epochs of a database that went back mean
   * something else: in them, a process that refuses it has applied nothing.
   */
  inUse(epoch: number): ConfigurationInUse {
    const { kept } = this.#sections
    return kept === undefined ? { applied_epoch: epoch } : { applied_epoch: -1, kept_position: kept }
  }

  /**
   * Asks control whether subscribers have every change that was made until now. If not, fetches them without waiting for a back-off.
   * A configuration that is refused is no change.
   */
  async isCurrent(signal: AbortSignal): Promise<boolean> {
    if (this.#sections.kept !== undefined) return true
    const { client, nodeId, kinds } = this.#options
    const isCurrent = await client.checkSnapshot({ node_id: nodeId, kinds: [...kinds], digest: this.#publishedDigest }, signal)
    if (!isCurrent) this.#endBackoff()
    return isCurrent
  }

  /** Control answered another call of this process: a back-off that began while control was away ends. */
  controlAnswered(): void {
    this.contact.answered()
    this.#endBackoff()
  }

  /** Registers again now, if the feed does that: control rejected another call of this process because of its credential. */
  registerAgain(): void {
    this.#endPoll()
    this.#endBackoff()
  }

  /** Calls the listener at once if there is a snapshot, and then with each new one. Returns a function that unsubscribes. */
  subscribe(listener: (snapshot: Snapshot) => void): () => void {
    this.#listeners.add(listener)
    if (this.#sections.current !== undefined) listener(this.#sections.current)
    return () => this.#listeners.delete(listener)
  }

  /** Resolves when the stored snapshot is loaded. Does not wait for control. */
  async start(): Promise<void> {
    await this.#load()
    this.#polling = this.#poll(this.#stopping.signal)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#polling
    await this.#file.close()
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const { registration, fence, clock, random, logger } = this.#options
    const backoff = new Backoff({ delayMsMin: 100, delayMsMax: 5_000, random })
    let registered = false
    let isCutOff = false
    while (!signal.aborted) {
      try {
        if (!registered) await this.#register(signal)
        registered = true
        const ended = new AbortController()
        this.#endPoll = () => {
          registered = registration === undefined
          ended.abort()
        }
        // The first one does not wait: its response shows that no change is missing.
        const refusal = await this.#fetch(this.contact.mayLackChanges ? 0 : waitMs, AbortSignal.any([signal, ended.signal]))
        if (refusal !== undefined) {
          await this.#keep(refusal)
          this.contact.lost()
          await sleep(clock, refusedMs, AbortSignal.any([signal, ended.signal]))
          continue
        }
        this.contact.polled()
        await fence.accepted()
        if (isCutOff) logger.notice({ epoch: this.current()?.epoch }, 'connection to control restored')
        isCutOff = false
        backoff.reset()
      } catch (error) {
        if (signal.aborted) return
        if (error instanceof ControlError && error.fence !== undefined) {
          await this.#fenced(error.fence)
          if (fence.isFinal) return
        }
        if (isRefused(error) || (error instanceof ControlError && error.status === 404)) registered = registration === undefined
        this.contact.lost()
        const delayMs = backoff.next()
        // A node that control refuses is not cut off, and its log says so.
        if (!isCutOff && fence.reason === undefined && this.contact.ageMs > cutOffMs) {
          isCutOff = true
          this.#logCutOff(error)
        }
        this.#endPoll = () => undefined
        const ended = new AbortController()
        this.#endBackoff = () => ended.abort()
        await sleep(clock, delayMs, AbortSignal.any([signal, ended.signal]))
      }
    }
  }

  /**
   * Where there is a registration, it alone decides: it may get this node another credential. Delivery cannot know that after a revocation,
   * and goes by what ingest has stored.
   */
  async #fenced(reason: Fence): Promise<void> {
    const { registration, fence } = this.#options
    if (registration !== undefined) return
    if (reason === 'node_revoked') await fence.reload()
    else await fence.refused(reason)
  }

  #logCutOff(error: unknown): void {
    const { logger } = this.#options
    const reason = errorMessage(error)
    const { epoch } = this.current() ?? {}
    if (epoch !== undefined) logger.warn({ reason, epoch }, 'cut off from control; working with the last configuration')
    // Before it has joined, the registration says what to do.
    else if (!isRefused(error)) logger.warn({ reason }, 'control not reached; waiting for the first configuration')
  }

  async #register(signal: AbortSignal): Promise<void> {
    const { client, nodeId, registration, fence } = this.#options
    if (registration === undefined) return
    try {
      await registration.register(signal, this.#sections.current !== undefined, fence.wasAccepted)
    } catch (error) {
      if (error instanceof ControlError && error.fence !== undefined) await fence.refused(error.fence)
      throw error
    }
    this.#sections.setCommitted(await client.fetchCommittedSeqs(nodeId, signal))
  }

  /** Keeps the configuration in use, and says so once: also after a start, as long as control offers what was refused. */
  async #keep(refusal: string): Promise<void> {
    const position = this.current()?.position
    if (this.#refusal !== refusal) {
      const next = 'put the right database back, or accept this one: inlet database accept'
      this.#options.logger.error({ reason: refusal, ...position, next }, 'configuration of control refused; keeping the last one')
    }
    this.#refusal = refusal
    if (this.#sections.kept !== undefined) return
    const update = this.#sections.refuse()
    if (update !== undefined) await this.#file.store(printUpdate(update), () => this.#sections.all())
  }

  /** Returns why the configuration of control is refused, or undefined if subscribers have it. */
  async #fetch(waitMs: number, signal: AbortSignal): Promise<string | undefined> {
    const sections = this.#sections
    const response = await this.#ask(waitMs, signal)
    if (response === undefined) return undefined
    const updates = parseUpdates(response)
    if (updates.length === 0) throw new Error('the response with the snapshot was cut off')
    const refusal = updates.map((update) => sections.findRollback(update)).find((reason) => reason !== undefined)
    if (refusal !== undefined) return refusal
    if (sections.kept !== undefined)
      this.#options.logger.notice(updates.at(-1)?.end.position ?? {}, 'configuration of control accepted again')
    try {
      for (const update of updates) sections.apply(update)
    } catch (error) {
      // The next request fetches all sections. Subscribers keep the current snapshot until then.
      sections.forget()
      throw error
    }
    await this.#file.store(response, () => sections.all())
    this.#publish()
    return undefined
  }

  /** Names what this process has by its digest. The versions themselves are 20 kB, which control would parse for every process at each change. */
  async #ask(wait_ms: number, signal: AbortSignal): Promise<Uint8Array | undefined> {
    const { client, nodeId, kinds } = this.#options
    const { knownEpoch, digest } = this.#sections
    const position = this.current()?.position
    const kept = { ...(position && { position }), ...(this.#sections.kept && { refusing: true as const }) }
    const request = { node_id: nodeId, epoch: knownEpoch, kinds: [...kinds], wait_ms, ...kept }
    if (knownEpoch >= 0) {
      try {
        return await client.fetchSnapshot({ ...request, digest }, signal)
      } catch (error) {
        // Control was restarted, or there were several changes since the last poll.
        if (!(error instanceof ControlError) || error.status !== 409) throw error
      }
    }
    return client.fetchSnapshot({ ...request, have: this.#sections.versions() }, signal)
  }

  #publish(): void {
    const { current, digest } = this.#sections
    if (current === undefined) return
    for (const listener of this.#listeners) listener(current)
    this.#publishedDigest = digest
  }

  async #load(): Promise<void> {
    try {
      for (const update of await this.#file.load()) this.#sections.apply(asStored(update))
    } catch (error) {
      this.#options.logger.error({ reason: errorMessage(error) }, 'stored snapshot incomplete; waiting for control')
      this.#sections = new SnapshotSections(this.#options.kinds)
    }
    this.#publish()
  }
}
