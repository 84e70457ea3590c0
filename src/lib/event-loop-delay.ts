import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Clock } from './clock.ts'

const resolutionMs = 10
const windowMs = 60_000

/** For how long the event loop of this process was held in the last one to two minutes, in milliseconds. */
export type LoopDelay = { readonly longestMs: number; percentileMs(percent: number): number }

/**
 * Law: no delay is missed. A monitor misses what happens within milliseconds after its reset, so there are two, reset in turn: the one
 * that was reset earlier is read.
 */
export class EventLoopDelay implements LoopDelay {
  readonly #clock: Clock
  #older = startMonitor()
  #newer = startMonitor()

  constructor(clock: Clock) {
    this.#clock = clock
    this.#rotateLater()
  }

  get longestMs(): number {
    return Math.max(0, this.#older.max / 1e6 - resolutionMs)
  }

  percentileMs(percent: number): number {
    return Math.max(0, this.#older.percentile(percent) / 1e6 - resolutionMs)
  }

  #rotateLater(): void {
    this.#clock.setTimer(() => {
      this.#older.reset()
      ;[this.#older, this.#newer] = [this.#newer, this.#older]
      this.#rotateLater()
    }, windowMs)
  }
}

function startMonitor(): ReturnType<typeof monitorEventLoopDelay> {
  const monitor = monitorEventLoopDelay({ resolution: resolutionMs })
  monitor.enable()
  return monitor
}
