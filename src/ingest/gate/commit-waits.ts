/**
 * Waits until segments are delivered.
 *
 * Owns: which segments are waited for, and when control is asked about which. Does not own: who waits, and how long.
 * Law: control gets one question each second, however many wait. Accounts take turns in it.
 */
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { deliveredLookupMax } from '#model/limits.ts'
import type { Control } from '#node/control-client.ts'
import { gateLimits } from './limits.ts'

/** The commit of a segment. `keys`: objects in the bucket that have its records. */
export type Delivered = { readonly commitId: string; readonly keys: readonly string[] }

export type CommitWait = {
  /** Undefined: it was not delivered in time. */
  readonly delivered: Promise<Delivered | undefined>
  /** Gives up. */
  end(): void
}

export type WaitedSegment = {
  readonly accountId: string
  readonly endpointId: string
  /** This node, if not set. */
  readonly nodeId?: string | undefined
  readonly seq: number
}

export type CommitWaitsOptions = {
  readonly nodeId: string
  readonly control: Pick<Control, 'findDelivered'>
  readonly clock: Clock
  readonly logger: Logger
}

type Caller = (delivered: Delivered | undefined) => void

type Waiting = {
  readonly segment: { readonly endpoint_id: string; readonly node_id: string; readonly seq: number }
  readonly callers: Set<Caller>
}

export class CommitWaits implements Service {
  readonly name = 'commit waits'
  readonly #options: CommitWaitsOptions
  /** By account, then by segment. Those that were asked about longest ago come first. */
  readonly #accounts = new Map<string, Map<string, Waiting>>()
  readonly #stopping = new AbortController()
  #cancelTimer: (() => void) | undefined
  #asking: Promise<void> | undefined

  constructor(options: CommitWaitsOptions) {
    this.#options = options
  }

  async start(): Promise<void> {}

  /** Nobody waits any more. */
  async stop(): Promise<void> {
    this.end()
    await this.#asking
  }

  end(): void {
    this.#stopping.abort()
    this.#cancelTimer?.()
    for (const account of this.#accounts.values())
      for (const { callers } of account.values()) for (const caller of callers) caller(undefined)
  }

  wait({ accountId, endpointId, nodeId = this.#options.nodeId, seq }: WaitedSegment, waitMs: number): CommitWait {
    const { promise: delivered, resolve } = Promise.withResolvers<Delivered | undefined>()
    if (this.#stopping.signal.aborted) {
      resolve(undefined)
      return { delivered, end: () => undefined }
    }
    const account = this.#accounts.get(accountId) ?? new Map<string, Waiting>()
    this.#accounts.set(accountId, account)
    const name = `${endpointId}/${nodeId}-${seq}`
    const waiting = account.get(name) ?? { segment: { endpoint_id: endpointId, node_id: nodeId, seq }, callers: new Set() }
    account.set(name, waiting)
    const caller: Caller = (found) => {
      cancel()
      // A wait may end twice. Later ones may wait for the same segment then.
      if (!waiting.callers.delete(caller)) return
      if (waiting.callers.size === 0) account.delete(name)
      if (account.size === 0) this.#accounts.delete(accountId)
      resolve(found)
    }
    const cancel = this.#options.clock.setTimer(() => caller(undefined), waitMs)
    waiting.callers.add(caller)
    this.#askLater()
    return { delivered, end: () => caller(undefined) }
  }

  #askLater(): void {
    if (this.#cancelTimer !== undefined || this.#accounts.size === 0 || this.#stopping.signal.aborted) return
    this.#cancelTimer = this.#options.clock.setTimer(() => {
      this.#asking = this.#ask().finally(() => {
        this.#cancelTimer = undefined
        this.#askLater()
      })
    }, gateLimits.commitPollMs)
  }

  async #ask(): Promise<void> {
    const { control, logger } = this.#options
    const asked = this.#takeTurn()
    if (asked.length === 0) return
    const segments = asked.map(({ segment }) => segment)
    try {
      const { delivered } = await control.findDelivered(segments, this.#stopping.signal)
      for (const { segment, callers } of asked) {
        const { endpoint_id, node_id, seq } = segment
        const found = delivered.find((one) => one.endpoint_id === endpoint_id && one.node_id === node_id && one.seq === seq)
        if (found === undefined) continue
        for (const caller of callers) caller({ commitId: found.commit_id, keys: found.keys })
      }
    } catch (error) {
      logger.debug({ reason: errorMessage(error) }, 'control did not say which segments are delivered')
    }
  }

  /** Returns those to ask about now: one of each account in turn. They and their accounts go to the end. */
  #takeTurn(): readonly Waiting[] {
    const asked: Waiting[] = []
    let left = [...this.#accounts]
    while (left.length > 0 && asked.length < deliveredLookupMax) {
      const taken = new Set(asked)
      left = left.filter(([accountId, account]) => {
        const [next] = account
        if (next === undefined || taken.has(next[1])) return false
        if (asked.length === deliveredLookupMax) return false
        asked.push(next[1])
        account.delete(next[0])
        account.set(...next)
        this.#accounts.delete(accountId)
        this.#accounts.set(accountId, account)
        return true
      })
    }
    return asked
  }
}
