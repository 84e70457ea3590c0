import type { Clock } from './clock.ts'

export type RecentOptions = {
  readonly clock: Clock
  readonly max: number
  /** What nobody asked for in this time is dropped. */
  readonly idleMs: number
}

/** Things that are made once and kept while they are used: `max` at most, the one that was used longest ago goes first. */
export class Recent<T> {
  readonly #options: RecentOptions
  /** In order of use, the latest last. */
  readonly #entries = new Map<string, { readonly value: T; readonly usedAt: number }>()

  constructor(options: RecentOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string, make: () => T): T {
    const now = this.#options.clock.monotonic()
    const value = this.#entries.get(key)?.value ?? make()
    this.#entries.delete(key)
    this.#entries.set(key, { value, usedAt: now })
    for (const [other, { usedAt }] of this.#entries) {
      if (this.#entries.size <= this.#options.max && now - usedAt < this.#options.idleMs) break
      this.#entries.delete(other)
    }
    return value
  }
}
