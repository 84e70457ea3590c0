/**
 * Simulated time: everything that waits is an event, and a seed decides which comes first.
 *
 * Owns: the order of events, the trace, and sources of randomness. Does not own: what a call does.
 * Law: the same seed gives the same trace. Between two events all promises settle that can, and nothing else runs.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '#lib/clock.ts'
import { type Random, seededRandom } from '#lib/random.ts'

type Event = {
  readonly atMs: number
  readonly order: number
  readonly what: string
  readonly run: () => void
  isCancelled: boolean
}

const shownMax = 50

export class Kernel {
  readonly seed: number
  /** Since the beginning of the history. */
  timeMs = 0
  events = 0
  readonly #queue: Event[] = []
  readonly #last: string[] = []
  readonly #trace = createHash('sha256')
  #order = 0

  constructor(seed: number) {
    this.seed = seed
  }

  /** Returns a generator of its own for each name, so that one more draw for one thing changes nothing else. */
  draw(name: string): Draw {
    return new Draw(seededRandom(createHash('sha256').update(`${this.seed} ${name}`).digest().readInt32LE(0)))
  }

  /** Runs it after the delay. Returns a function that cancels it. */
  after(delayMs: number, what: string, run: () => void): () => void {
    this.#order += 1
    const event: Event = { atMs: this.timeMs + Math.max(0, delayMs), order: this.#order, what, run, isCancelled: false }
    push(this.#queue, event)
    return () => {
      event.isCancelled = true
    }
  }

  /** Adds a line to the trace. */
  note(what: string): void {
    const line = `${this.timeMs.toFixed(3)} ${what}`
    this.#trace.update(`${line}\n`)
    this.#last.push(line)
    if (this.#last.length > shownMax) this.#last.shift()
  }

  /** Runs events until the condition holds or the time is over. Returns whether it holds. */
  async runUntil(isOver: () => boolean, limitMs: number): Promise<boolean> {
    const endMs = this.timeMs + limitMs
    await settle()
    for (;;) {
      if (isOver()) return true
      const event = this.#queue[0]
      if (event === undefined || event.atMs > endMs) {
        this.timeMs = endMs
        return isOver()
      }
      pop(this.#queue)
      if (event.isCancelled) continue
      this.timeMs = event.atMs
      this.events += 1
      this.note(event.what)
      event.run()
      await settle()
    }
  }

  /** The last events, in words. */
  get last(): readonly string[] {
    return this.#last
  }

  /** Names the whole history. */
  digest(): string {
    return this.#trace.copy().digest('hex').slice(0, 16)
  }
}

/** All promises that can settle have settled once the event loop turns. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Chances and amounts from one source of randomness. */
export class Draw {
  readonly random: Random

  constructor(random: Random) {
    this.random = random
  }

  chance(share: number): boolean {
    return this.random.fraction() < share
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.random.fraction() * (max - min + 1))
  }

  pick<T>(options: readonly T[]): T {
    const picked = options[this.between(0, options.length - 1)]
    if (picked === undefined) throw new Error('nothing to pick from')
    return picked
  }

  /** Mostly short, sometimes long: milliseconds with this mean. */
  delay(meanMs: number): number {
    return -Math.log(1 - this.random.fraction()) * meanMs
  }
}

/** How long calls of one kind take, one way. A `local` one of a process that ends arrives at once or never: the system ends with it. */
export type Delays = { readonly draw: Draw; readonly meanMs: number; readonly local?: boolean }

/**
 * One process from its start to its end.
 *
 * Law: nothing of an ended process runs any more: its timers are gone, and no call of it is answered. A call that has left may still arrive.
 * While a process stands still, nothing of it runs either. What was due meanwhile runs afterwards, in order.
 */
export class Life {
  readonly name: string
  readonly kernel: Kernel
  readonly clock: Clock
  isAlive = true
  readonly #ended = new AbortController()
  /** Calls that have not arrived. */
  readonly #local = new Set<() => void>()
  /** Due since the process stands still. */
  #due: (() => void)[] | undefined

  /** `aheadMs` says how far the clock of the machine is off. */
  constructor(name: string, kernel: Kernel, aheadMs: () => number = () => 0) {
    this.name = name
    this.kernel = kernel
    const now = () => timeOf(kernel, aheadMs)
    this.clock = {
      now,
      monotonic: () => kernel.timeMs,
      setTimer: (callback, delayMs) => this.after(delayMs, 'timer', callback),
      timeout: (delayMs) => {
        const late = new AbortController()
        this.after(delayMs, 'timeout', () => late.abort(new DOMException('The operation timed out', 'TimeoutError')))
        return late.signal
      },
      nextTurn: (callback) => void this.after(0, 'turn', callback),
    }
  }

  /** Connections of the process close with it. */
  get ended(): AbortSignal {
    return this.#ended.signal
  }

  end(how: string): void {
    this.isAlive = false
    this.#ended.abort()
    for (const arrive of this.#local) arrive()
    this.kernel.note(`${this.name}: ${how}`)
  }

  after(delayMs: number, what: string, run: () => void): () => void {
    let isCancelled = false
    const runUnlessCancelled = () => {
      if (!isCancelled) run()
    }
    const cancel = this.kernel.after(delayMs, `${this.name}: ${what}`, () => this.reach(what, runUnlessCancelled))
    return () => {
      isCancelled = true
      cancel()
    }
  }

  /** Runs it in the process: now, or once it goes on. Not if it has ended by then. */
  reach(what: string, run: () => void): void {
    if (!this.isAlive) return
    if (this.#due === undefined) run()
    else this.#due.push(() => this.after(0, what, run))
  }

  get standsStill(): boolean {
    return this.#due !== undefined
  }

  /** The process gets no CPU, as after SIGSTOP. The system and what it has asked others go on. */
  freeze(): void {
    this.#due ??= []
  }

  thaw(): void {
    const due = this.#due ?? []
    this.#due = undefined
    for (const run of due) run()
  }

  /**
   * A call to something outside the process. It waits twice: before it arrives, and before its answer is back. So a lost call and a lost answer
   * differ.
   */
  call<T>(what: string, { draw, meanMs, local = false }: Delays, act: () => T | Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const answerWith = (answer: () => void) => this.after(draw.delay(meanMs), `${what} answered`, answer)
    const arrive = () => {
      cancel()
      this.#local.delete(arrive)
      // A call of a process that ended may have left before, or not.
      if (!this.isAlive && draw.chance(0.5)) return
      const fail = (error: unknown) => answerWith(() => reject(error))
      try {
        const result = act()
        if (result instanceof Promise) result.then((value) => answerWith(() => resolve(value)), fail)
        else answerWith(() => resolve(result))
      } catch (error) {
        fail(error)
      }
    }
    const cancel = this.kernel.after(draw.delay(meanMs), `${this.name}: ${what}`, arrive)
    if (local) this.#local.add(arrive)
    return promise
  }
}

/** When histories begin. */
export const startMs = Date.UTC(2026, 10, 20)

/** Returns what a clock shows that is so far off, epoch ms. */
function timeOf({ timeMs }: Kernel, aheadMs: () => number): number {
  return Math.floor(startMs + timeMs + aheadMs())
}

/** A heap: the earliest event is first. */
function push(heap: Event[], event: Event): void {
  heap.push(event)
  for (let at = heap.length - 1; at > 0; ) {
    const parent = (at - 1) >> 1
    if (!swapIfEarlier(heap, at, parent)) return
    at = parent
  }
}

function pop(heap: Event[]): void {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  heap[0] = last
  for (let at = 0; ; ) {
    const [left, right] = [2 * at + 1, 2 * at + 2]
    const child = right < heap.length && isEarlier(heap[right], heap[left]) ? right : left
    if (child >= heap.length || !swapIfEarlier(heap, child, at)) return
    at = child
  }
}

function swapIfEarlier(heap: Event[], child: number, parent: number): boolean {
  const [one, other] = [heap[child], heap[parent]]
  if (one === undefined || other === undefined || !isEarlier(one, other)) return false
  heap[child] = other
  heap[parent] = one
  return true
}

function isEarlier(one: Event | undefined, other: Event | undefined): boolean {
  if (one === undefined || other === undefined) return false
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)
}
