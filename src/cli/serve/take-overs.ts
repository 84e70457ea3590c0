/**
 * Takes over the lost nodes that control gives to this one, beside its own delivery.
 *
 * Owns: when control is asked, and that lost nodes take turns. Does not own: which nodes are lost (control), the delivery of one
 * (adopt-copy.ts).
 * Law: a takeover that fails is repeated as long as control says so, and never ends the process.
 */

import { controlOf } from '#config/addresses.ts'
import type { Config } from '#config/config.ts'
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { LockHeldError } from '#lib/exclusive.ts'
import { Periodic } from '#lib/periodic.ts'
import { readTrimmed } from '#lib/read-or-create.ts'
import type { Service } from '#lib/service.ts'
import { settlesBefore } from '#lib/settles-before.ts'
import { system } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import { ControlClient } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import type { App } from './run-app.ts'

export type TakeOversOptions = {
  readonly config: Config
  /** Delivers the copies of a lost node. */
  readonly deliver: (nodeId: string, stopping: AbortSignal) => Promise<App>
  readonly clock: Clock
  readonly logger: Logger
}

const askMs = 10_000
const retryMs = 60_000
const never = new Promise<never>(() => undefined)

export class TakeOvers implements Service {
  readonly name = 'takeovers'
  readonly #options: TakeOversOptions
  readonly #stopping = new AbortController()
  readonly #asking: Periodic
  /** Asks with the credential of this node. Undefined until it has one. */
  #control: ControlClient | undefined
  #ownId = ''
  /** On the monotonic clock: none is begun before. */
  #notBeforeMs = 0
  #running: { readonly nodeId: string; readonly ended: Promise<void> } | undefined

  constructor(options: TakeOversOptions) {
    const { clock, logger } = options
    this.#options = options
    this.#asking = new Periodic({
      ...{ name: this.name, intervalMs: askMs, clock, logger },
      run: (signal) => this.#ask(signal),
      failure: 'control not asked for lost nodes',
      recovery: 'control was asked for lost nodes again',
      level: 'warn',
      failuresBeforeLog: 3,
    })
  }

  start(): Promise<void> {
    return this.#asking.start()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#asking.stop()
    await this.#running?.ended
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const control = await this.#openControl()
    if (control === undefined) return
    const running = this.#running === undefined ? [] : [this.#running.nodeId]
    const [nodeId] = await control.fetchTakeOvers({ node_id: this.#ownId, running }, signal)
    if (nodeId === undefined || this.#running !== undefined || this.#options.clock.monotonic() < this.#notBeforeMs) return
    const ended = this.#takeOver(nodeId).finally(() => {
      this.#running = undefined
    })
    this.#running = { nodeId, ended }
  }

  async #openControl(): Promise<ControlClient | undefined> {
    if (this.#control !== undefined) return this.#control
    const { config, clock } = this.#options
    const { paths } = config
    const id = await readTrimmed(system.files, paths.nodeId)
    if (id === undefined) return undefined
    this.#ownId = id
    const credential = await NodeCredential.open(id, paths.nodeCredential, system)
    this.#control = await ControlClient.open({ ...controlOf(config), pin: null, credential, files: system.files, clock })
    return this.#control
  }

  async #takeOver(nodeId: string): Promise<void> {
    const { deliver, clock, logger } = this.#options
    const { signal } = this.#stopping
    logger.notice({ node_id: nodeId }, 'control gave a lost node to this one: its copies are delivered here')
    try {
      const app = await deliver(nodeId, signal)
      await settlesBefore(app.finished ?? never, signal)
      await app.stop(clock.timeout(askMs))
    } catch (error) {
      if (signal.aborted) return
      this.#notBeforeMs = clock.monotonic() + retryMs
      if (error instanceof LockHeldError)
        return logger.info({ node_id: nodeId }, 'the lost node is not taken over here: another process on this machine is at it')
      logger.error({ node_id: nodeId, reason: errorMessage(error) }, 'a lost node was not taken over; it is tried again')
    }
  }
}
