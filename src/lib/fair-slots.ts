/**
 * Slots for work, shared fairly by tenant and member.
 *
 * Owns: waiting for a slot, ending work whose slot another one gets, and repeating it. Does not own: the decisions (slot-schedule.ts).
 * Law: a slot is free only after its work has ended.
 */
import type { Clock } from './clock.ts'
import {
  type SlotDecisions,
  type SlotOwner,
  type SlotPriority,
  SlotSchedule,
  type SlotScheduleOptions,
  type SlotTask,
} from './slot-schedule.ts'

type FairSlotsOptions = SlotScheduleOptions & { readonly clock: Clock }

/** How often time alone is looked at, where it matters. */
const checkMs = 100

type Request = SlotTask & { readonly start: () => void; readonly preempted: AbortController }

type SlotUse = { readonly priority?: SlotPriority; readonly signal: AbortSignal }

/** A slot that somebody holds. Dispose it when its work has ended. */
export type HeldSlot = Disposable & {
  /** The place among requests of the same member. */
  readonly order: number
  /** Aborts once another one gets the slot: the work has to end. */
  readonly preempted: AbortSignal
}

export class FairSlots {
  readonly capacity: number
  readonly #schedule: SlotSchedule<Request>
  readonly #clock: Clock
  #requests = 0
  #cancelCheck: (() => void) | undefined

  constructor({ clock, ...schedule }: FairSlotsOptions) {
    this.capacity = schedule.capacity
    this.#schedule = new SlotSchedule(schedule)
    this.#clock = clock
  }

  /**
   * Runs work in a slot. The signal of the work aborts if another one gets the slot: the work is then repeated from its start, in the next slot.
   * Throws what the work throws, or the signal's reason.
   */
  async run<T>(
    owner: SlotOwner,
    { priority = 'normal', signal }: SlotUse,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const order = this.#requests++
    for (;;) {
      using slot = await this.acquire(owner, { priority, order, signal })
      try {
        const ended = AbortSignal.any([signal, slot.preempted])
        ended.throwIfAborted()
        return await work(ended)
      } catch (error) {
        signal.throwIfAborted()
        if (!slot.preempted.aborted) throw error
      }
    }
  }

  /** Waits for a slot. Work that is repeated gives the order that it had. Throws the signal's reason. */
  async acquire(
    owner: SlotOwner,
    { priority = 'normal', order = this.#requests++, signal }: SlotUse & { readonly order?: number | undefined },
  ): Promise<HeldSlot> {
    signal.throwIfAborted()
    const { promise: started, resolve: start, reject } = Promise.withResolvers<void>()
    const request: Request = { ...owner, priority, order, start, preempted: new AbortController() }
    const abort = () => reject(signal.reason)
    const end = () => this.#apply(this.#schedule.end(request, this.#clock.monotonic()))
    signal.addEventListener('abort', abort, { once: true })
    try {
      this.#apply(this.#schedule.request(request, this.#clock.monotonic()))
      await started
      signal.throwIfAborted()
      return { order, preempted: request.preempted.signal, [Symbol.dispose]: end }
    } catch (error) {
      end()
      throw error
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  #apply({ started, preempted }: SlotDecisions<Request>): void {
    for (const { start } of started) start()
    for (const request of preempted) request.preempted.abort()
    this.#checkLater()
  }

  #checkLater(): void {
    if (!this.#schedule.dependsOnTime) {
      this.#cancelCheck?.()
      this.#cancelCheck = undefined
      return
    }
    this.#cancelCheck ??= this.#clock.setTimer(() => {
      this.#cancelCheck = undefined
      this.#apply(this.#schedule.check(this.#clock.monotonic()))
    }, checkMs)
  }
}
