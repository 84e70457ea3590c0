/**
 * Whether this node has lost its place in the installation: control refuses its credential, and says why.
 *
 * Owns: `node/fence`, which has the reason, and who learns of it. Does not own: how ingest and delivery end their work.
 * Law: a process that control had accepted, or that is stopping, stays fenced until it ends, whatever control says later. One that has just
 * started works again as soon as control accepts it. Listeners are called before the file is written, so nothing waits for the disk.
 */

import { type Fence, isFence } from '#errors.ts'
import { errorMessage } from '#lib/error-message.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { readTrimmed } from '#lib/read-or-create.ts'
import { settlesBefore } from '#lib/settles-before.ts'
import type { Logger } from '#lib/telemetry.ts'

export type NodeFenceOptions = { readonly path: string; readonly files: Files; readonly logger: Logger }

const reasons: Readonly<Record<Fence, string>> = {
  node_removed: 'an operator removed this node from the installation: it takes no data and delivers none',
  node_revoked: 'an operator revoked the credential of this node: it takes no data and delivers none',
  node_adopted: 'another machine adopted the log of this node, and delivers it: this one takes no data and delivers none',
  node_released: 'an operator released the id of this node to another machine: this one takes no data and delivers none',
}

const nextSteps: Readonly<Record<Fence, string>> = {
  node_removed:
    'stop it; to take it back with what it holds, create a join token (inlet join-tokens create), set INLET_JOIN_TOKEN to it, and start it again',
  node_revoked: 'stop it, create a join token (inlet join-tokens create), set INLET_JOIN_TOKEN to it, and start it again',
  node_adopted: 'stop it; what it accepted after the copy of its disk was made is only here: see docs/fencing.md',
  node_released:
    'stop it; what it did not deliver is only here: see docs/fencing.md; if no other machine has joined under the id, set INLET_JOIN_TOKEN to a join token (inlet join-tokens create), and start it again',
}

export class NodeFence {
  readonly #options: NodeFenceOptions
  readonly #listeners = new Set<() => void>()
  #fence: Fence | undefined
  /** The log of this process has it. */
  #isSaid = false
  #wasAccepted = false
  #isStopping = false
  #opened = Promise.withResolvers<void>()

  private constructor(options: NodeFenceOptions, fence: Fence | undefined) {
    this.#options = options
    this.#fence = fence
    if (fence === undefined) this.#opened.resolve()
  }

  static async open(options: NodeFenceOptions): Promise<NodeFence> {
    const stored = await readTrimmed(options.files, options.path)
    return new NodeFence(options, isFence(stored) ? stored : undefined)
  }

  /** Why this process takes no data and delivers none; undefined if it does. */
  get reason(): string | undefined {
    return this.#fence && reasons[this.#fence]
  }

  /** Whether nobody waits for this machine any more, so that what is here may be nowhere else, and never delivered. */
  get isGivenUp(): boolean {
    return this.#fence !== undefined && this.#fence !== 'node_revoked'
  }

  /** Whether it stays fenced until the process ends. */
  get isFinal(): boolean {
    return this.#fence !== undefined && (this.#wasAccepted || this.#isStopping)
  }

  /** Whether control accepted the credential since the start. */
  get wasAccepted(): boolean {
    return this.#wasAccepted
  }

  /** Calls the listener when the fence becomes final. */
  onFinal(listener: () => void): void {
    this.#listeners.add(listener)
    if (this.isFinal) listener()
  }

  /** The process is stopping: a fence that it has, or gets meanwhile, is final. */
  stopping(): void {
    this.#isStopping = true
    this.#notifyIfFinal()
  }

  /** Resolves while control accepts this node. Rejects with the reason of the signal. */
  async whenOpen(signal: AbortSignal): Promise<void> {
    await settlesBefore(this.#opened.promise, signal)
    signal.throwIfAborted()
  }

  /** Control accepted the credential. */
  async accepted(): Promise<void> {
    if (this.#wasAccepted || this.isFinal) return
    this.#wasAccepted = true
    if (this.#fence === undefined) return
    this.#fence = undefined
    this.#isSaid = false
    this.#opened.resolve()
    const { path, files, logger } = this.#options
    logger.notice('control accepts this node again')
    await files.remove(path).catch((error: unknown) => logger.warn({ reason: errorMessage(error) }, 'node/fence was not removed'))
  }

  /** Control refused the credential, for a reason that only an operator changes. */
  async refused(fence: Fence): Promise<void> {
    const isStored = this.#fence === fence
    if (isStored && this.#isSaid) return
    const { path, files, logger } = this.#options
    if (this.#fence === undefined) this.#opened = Promise.withResolvers()
    this.#fence = fence
    this.#isSaid = true
    logger.error({ next: nextSteps[fence] }, reasons[fence])
    if (isStored) return
    this.#notifyIfFinal()
    try {
      await writeDurably(files, path, Buffer.from(`${fence}\n`))
    } catch (error) {
      logger.warn(
        { reason: errorMessage(error) },
        'the fence of this node was not stored: the next start learns of it from control',
      )
    }
  }

  /** Returns what a process of the node has stored. */
  async readStored(): Promise<Fence | undefined> {
    const stored = await readTrimmed(this.#options.files, this.#options.path)
    return isFence(stored) ? stored : undefined
  }

  /** Goes by what the other process of the node has stored. */
  async reload(): Promise<void> {
    const stored = await this.readStored()
    if (stored !== undefined) await this.refused(stored)
  }

  #notifyIfFinal(): void {
    if (this.isFinal) for (const listener of this.#listeners) listener()
  }
}
