/**
 * The clock by which a node decides: what a machine's own clock says is not believed after the start.
 *
 * Owns: how far this clock is ahead of the monotonic clock. Does not own: who asks control for the time (heartbeat-sink.ts), what is decided.
 * Law: it advances with the monotonic clock, so a jump of the machine's clock changes nothing. It begins with the time of the machine, and
 * follows control from the first answer on. What may not be undone, such as forgetting a key, is decided by `surelyBefore`.
 */
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Control } from './control-client.ts'

export type CheckedClockOptions = {
  /** The clock of this machine. */
  readonly machine: Clock
  readonly logger: Logger
}

/** How long a start waits for the time. */
const startWaitMs = 500
/** A slower answer says too little about the time. */
const roundTripMsMax = 5_000
/** The clock of a machine that differs by more is reported. */
const differenceMsMax = 1_000
/** A smaller correction is one of the drift of a clock, and no step. */
const stepMsMin = 1_000
/** Steps that are remembered. The oldest two are then taken for one. */
const stepsMax = 100

type Step = { readonly atMs: number; readonly byMs: number }

export class CheckedClock implements Clock {
  readonly #machine: Clock
  readonly #logger: Logger
  readonly #startedAtMs: number
  #aheadMs: number
  #isChecked = false
  /** Corrections forward, on the monotonic clock. */
  #steps: readonly Step[] = []
  #isDifferenceLogged = false

  constructor({ machine, logger }: CheckedClockOptions) {
    this.#machine = machine
    this.#logger = logger
    this.#startedAtMs = machine.monotonic()
    this.#aheadMs = machine.now() - this.#startedAtMs
  }

  /** Returns a clock that was checked, if control answers at once. */
  static async start(
    options: CheckedClockOptions,
    control: Pick<Control, 'fetchLastHeartbeat'>,
    nodeId: string,
  ): Promise<CheckedClock> {
    const clock = new CheckedClock(options)
    const askedAtMs = clock.monotonic()
    // Control may be starting, too, or not know this node yet. The first heartbeat checks the clock then.
    const { time } = await control
      .fetchLastHeartbeat(nodeId, options.machine.timeout(startWaitMs))
      .catch((): { readonly time?: number | undefined } => ({}))
    clock.observe(time, askedAtMs)
    return clock
  }

  now(): number {
    return Math.floor(this.#machine.monotonic() + this.#aheadMs)
  }

  monotonic(): number {
    return this.#machine.monotonic()
  }

  setTimer(callback: () => void, delayMs: number): () => void {
    return this.#machine.setTimer(callback, delayMs)
  }

  timeout(delayMs: number): AbortSignal {
    return this.#machine.timeout(delayMs)
  }

  nextTurn(callback: () => void): void {
    this.#machine.nextTurn(callback)
  }

  /** Control said that it was `timeMs`, at some moment since `askedAtMs` on the monotonic clock. Undefined: it did not say. */
  observe(timeMs: number | undefined, askedAtMs: number): void {
    if (timeMs === undefined) return
    const answeredAtMs = this.#machine.monotonic()
    const isSlow = answeredAtMs - askedAtMs > roundTripMsMax
    if (isSlow && this.#isChecked) return
    const [least, most] = [timeMs - answeredAtMs, timeMs - askedAtMs]
    // Within these bounds both clocks may be the same. To follow every answer would only add its delay to the time.
    if (this.#aheadMs < least || this.#aheadMs > most) this.#correct((least + most) / 2)
    this.#isChecked = true
    this.#logDifference()
  }

  /**
   * Returns a time so that everything before it, by this clock, happened at least `ageMs` ago. A correction forward makes nothing older, and the
   * time with which the process began nothing either until control has confirmed it: then it is -Infinity.
   */
  surelyBefore(ageMs: number): number {
    const now = this.#machine.monotonic()
    if (!this.#isChecked && now - this.#startedAtMs < ageMs) return Number.NEGATIVE_INFINITY
    let skippedMs = 0
    for (const { atMs, byMs } of this.#steps) if (now - atMs < ageMs) skippedMs += byMs
    return this.now() - ageMs - skippedMs
  }

  /** Problem with the clock of this machine, and what to do; undefined until control has been asked. */
  get problem(): string | undefined {
    const seconds = this.#secondsAhead()
    if (seconds === undefined) return undefined
    return `the clock of this machine is ${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'} that of control, which is used: set both by NTP`
  }

  #correct(aheadMs: number): void {
    const byMs = aheadMs - this.#aheadMs
    this.#aheadMs = aheadMs
    if (Math.abs(byMs) < stepMsMin) return
    this.#logger.warn({ seconds: Math.round(byMs / 100) / 10 }, 'time corrected to that of control')
    if (byMs < 0) return
    const [first, second, ...rest] = this.#steps
    const kept =
      first !== undefined && second !== undefined && this.#steps.length >= stepsMax
        ? [{ atMs: second.atMs, byMs: first.byMs + second.byMs }, ...rest]
        : this.#steps
    this.#steps = [...kept, { atMs: this.#machine.monotonic(), byMs }]
  }

  #secondsAhead(): number | undefined {
    const differenceMs = this.#machine.now() - this.now()
    return this.#isChecked && Math.abs(differenceMs) > differenceMsMax ? Math.round(differenceMs / 100) / 10 : undefined
  }

  #logDifference(): void {
    const { problem } = this
    if (problem !== undefined && !this.#isDifferenceLogged) this.#logger.warn(problem)
    this.#isDifferenceLogged = problem !== undefined
  }
}
