/**
 * Asks control whether this node still has its place, when it may have lost that unnoticed: the process stood still, or the other process of
 * the node was refused.
 *
 * Owns: noticing both, and for how long acknowledgements wait for control. Does not own: the fence (node-fence.ts), the wait itself (log).
 * Law: nothing is acknowledged meanwhile. Without an answer of control for `waitMsMax`, what the other process was told counts. If it was told
 * nothing, acknowledgements go on: ingest outlives control.
 */
import { basename, dirname } from 'node:path'
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Files } from '#lib/files.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { ControlError } from './control-client.ts'
import type { NodeFence } from './node-fence.ts'

export type PlaceCheckOptions = {
  readonly fence: Pick<NodeFence, 'reason' | 'wasAccepted' | 'onFinal' | 'refused' | 'readStored' | 'reload'>
  /** The file of the fence. */
  readonly path: string
  /** Asks control anything with the credential of this node. */
  readonly ask: (signal: AbortSignal) => Promise<unknown>
  /** Called when control refused the credential, and the node may get another one. */
  readonly onRefused: () => void
  readonly files: Pick<Files, 'watch'>
  /** Clock of the machine: one that was corrected does not show that the machine was suspended. */
  readonly clock: Clock
  readonly logger: Logger
}

const tickMs = 500
/** A heartbeat tells a running node after this time that it lost its place. A shorter pause makes nothing worse. */
const pauseMsMin = 2_000
const waitMsMax = 5_000
/** A connection may have broken meanwhile. */
const askMsMax = 2_000
const retryMs = 250

export class PlaceCheck implements Service {
  readonly name = 'check of the place'
  readonly #options: PlaceCheckOptions
  readonly #ending = new AbortController()
  #tickedAt = { monotonic: 0, now: 0 }
  #cancelTick: () => void = () => undefined
  #unwatch: () => void = () => undefined
  #pending: Promise<void> | undefined

  constructor(options: PlaceCheckOptions) {
    this.#options = options
    this.#readClock()
    options.fence.onFinal(() => this.#ending.abort())
  }

  async start(): Promise<void> {
    const { path, files, logger } = this.#options
    this.#tick()
    try {
      this.#unwatch = files.watch(dirname(path), (name) => {
        if (name === null || name === basename(path)) void this.#readFence()
      })
    } catch (error) {
      logger.warn(
        { reason: errorMessage(error) },
        'watch of node/fence failed: ingest learns from control alone that it is fenced',
      )
    }
  }

  async stop(): Promise<void> {
    this.#ending.abort()
    this.#cancelTick()
    this.#unwatch()
    await this.#pending
  }

  /** Resolves when the check is over. Undefined if there is nothing to check. Never rejects. */
  pending(): Promise<void> | undefined {
    this.#noticePause()
    return this.#pending
  }

  #tick(): void {
    this.#noticePause()
    this.#readClock()
    this.#cancelTick = this.#options.clock.setTimer(() => this.#tick(), tickMs)
  }

  #readClock(): void {
    const { clock } = this.#options
    this.#tickedAt = { monotonic: clock.monotonic(), now: clock.now() }
  }

  /** After a pause, requests may be handled before timers. The monotonic clock stands still while the machine is suspended. */
  #noticePause(): void {
    const { clock } = this.#options
    const { monotonic, now } = this.#tickedAt
    const pausedMs = Math.max(clock.monotonic() - monotonic, clock.now() - now) - tickMs
    if (pausedMs < pauseMsMin) return
    this.#readClock()
    this.#begin(`it stood still for ${Math.round(pausedMs / 1000)} s`)
  }

  async #readFence(): Promise<void> {
    const stored = await this.#options.fence.readStored().catch(() => undefined)
    if (stored !== undefined) this.#begin('control refused the other process of this node')
  }

  #begin(reason: string): void {
    const { fence, logger } = this.#options
    if (this.#pending !== undefined || this.#ending.signal.aborted || fence.reason !== undefined) return
    logger.warn({ reason }, 'acknowledgements wait until control confirms this node')
    this.#pending = this.#check().finally(() => {
      this.#pending = undefined
    })
  }

  async #check(): Promise<void> {
    const { fence, clock, logger } = this.#options
    const signal = AbortSignal.any([this.#ending.signal, clock.timeout(waitMsMax)])
    while (!signal.aborted) {
      if (await this.#isConfirmed(signal)) return
      await sleep(clock, retryMs, signal)
    }
    if (this.#ending.signal.aborted) return
    await fence.reload().catch(() => undefined)
    if (fence.reason === undefined) logger.warn('control did not confirm this node in time: acknowledgements go on')
  }

  async #isConfirmed(signal: AbortSignal): Promise<boolean> {
    const { ask, onRefused, fence, clock } = this.#options
    try {
      await ask(AbortSignal.any([signal, clock.timeout(askMsMax)]))
      return true
    } catch (error) {
      if (!(error instanceof ControlError) || error.status !== 401) return false
      // After a revocation, or as long as control has not accepted it, the registration may get this node another credential.
      if (fence.wasAccepted && error.fence !== undefined && error.fence !== 'node_revoked') await fence.refused(error.fence)
      else onRefused()
      return false
    }
  }
}
