/**
 * The metrics of a process as text, for scrapes.
 *
 * Owns: how often the text is written. Does not own: the metrics, who may read them.
 * Law: all requests together take at most a fifth of the time of the event loop, although one connection can send thousands of them in
 * one packet. Nobody gets values from before its request.
 */
import type { Registry } from 'prom-client'
import { type Clock, sleep } from './clock.ts'

/** After writing the text, the event loop is free for others this many times as long. */
const REST = 4

export class MetricsText {
  readonly #registry: Pick<Registry, 'contentType' | 'metrics'>
  readonly #clock: Clock
  /** The text that is written next, for all requests until then. */
  #next: Promise<string> | undefined
  #last: Promise<unknown> = Promise.resolve()
  #restsUntilMs = Number.NEGATIVE_INFINITY

  constructor(registry: Pick<Registry, 'contentType' | 'metrics'>, clock: Clock) {
    this.#registry = registry
    this.#clock = clock
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  metrics(): Promise<string> {
    if (this.#next === undefined) {
      this.#next = this.#write(this.#last)
      this.#last = this.#next.catch(() => undefined)
    }
    return this.#next
  }

  async #write(last: Promise<unknown>): Promise<string> {
    await last
    const restMs = this.#restsUntilMs - this.#clock.monotonic()
    if (restMs > 0) await sleep(this.#clock, restMs)
    this.#next = undefined
    const startedAtMs = this.#clock.monotonic()
    try {
      return await this.#registry.metrics()
    } finally {
      const now = this.#clock.monotonic()
      this.#restsUntilMs = now + REST * (now - startedAtMs)
    }
  }
}
