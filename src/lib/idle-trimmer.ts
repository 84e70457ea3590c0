/**
 * Returns memory to the system while the process is idle.
 *
 * V8 keeps the memory of its young generation and of garbage until it needs it: 10 to 20 MB after the start, more after load.
 * Law: trims only a process that used almost no processor time in the last interval, whose heap is small, and that has memory to return.
 */
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { MiB } from './bytes.ts'
import type { Clock } from './clock.ts'

const limits = {
  intervalMs: 5_000,
  /** Share of one processor up to which a process is idle. Heartbeats and polls take 1 %. */
  busyShare: 0.05,
  /** Heap in use beyond which nothing is trimmed, because the pause grows with it: 80 ms of processor time for 20 MB. */
  usedBytesMax: 64 * MiB,
  /** Growth of the heap since the last time that is worth a pause, and the time between two pauses. */
  grownBytesMin: 8 * MiB,
  restMs: 30_000,
} as const

export type IdleTrimmerOptions = {
  readonly clock: Clock
  /** Stand-ins for tests. */
  readonly collectGarbage?: () => void
  readonly heap?: () => { readonly total: number; readonly used: number }
  /** Microseconds of processor time that the process has used. */
  readonly cpuMicros?: () => number
}

export class IdleTrimmer {
  readonly #options: Required<IdleTrimmerOptions>
  #cpuMicros = 0
  #trimmedBytes = 0
  #trimmedAtMs = Number.NEGATIVE_INFINITY

  constructor({ clock, collectGarbage = collectAllGarbage, heap = heapOfV8, cpuMicros = cpuOfProcess }: IdleTrimmerOptions) {
    this.#options = { clock, collectGarbage, heap, cpuMicros }
  }

  /** Trims until the process ends, which its timer does not delay. */
  start(): void {
    this.#cpuMicros = this.#options.cpuMicros()
    this.#options.clock.setTimer(() => this.#check(), limits.intervalMs)
  }

  #check(): void {
    const { heap, cpuMicros, collectGarbage, clock } = this.#options
    const share = (cpuMicros() - this.#cpuMicros) / (limits.intervalMs * 1000)
    const isRested = clock.monotonic() - this.#trimmedAtMs >= limits.restMs
    const { total, used } = heap()
    const isWorthIt = used <= limits.usedBytesMax && total - this.#trimmedBytes >= limits.grownBytesMin
    if (share <= limits.busyShare && isRested && isWorthIt) {
      collectGarbage()
      this.#trimmedBytes = heap().total
      this.#trimmedAtMs = clock.monotonic()
    }
    this.start()
  }
}

function heapOfV8(): { readonly total: number; readonly used: number } {
  const { total_heap_size: total, used_heap_size: used } = getHeapStatistics()
  return { total, used }
}

function cpuOfProcess(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

type CollectGarbage = (options: { readonly type: 'major'; readonly execution: 'sync'; readonly flavor: 'last-resort' }) => void

/** Only this kind of collection shrinks the young generation. */
function collectAllGarbage(): void {
  // The flag is reset at once: V8 rejects compiled code that was stored under other flags.
  setFlagsFromString('--expose-gc')
  const collect: CollectGarbage = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
