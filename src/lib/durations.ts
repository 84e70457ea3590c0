/**
 * A histogram of durations for code that is too hot for labels and objects: counting is a few comparisons.
 *
 * Owns: the counts. Does not own: their text (metrics.ts).
 */
export class Durations {
  /** Upper bounds of the buckets in seconds, ascending. What is longer than the last one is only in `count`. */
  readonly bounds: readonly number[]
  readonly #counts: Float64Array
  #sumSeconds = 0
  #count = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.#counts = new Float64Array(bounds.length)
  }

  get sumSeconds(): number {
    return this.#sumSeconds
  }

  get count(): number {
    return this.#count
  }

  /** Counts `times` durations of so many milliseconds. */
  observe(ms: number, times = 1): void {
    const { bounds } = this
    const seconds = ms > 0 ? ms / 1000 : 0
    this.#sumSeconds += seconds * times
    this.#count += times
    let index = 0
    while (index < bounds.length && seconds > (bounds[index] as number)) index += 1
    if (index < bounds.length) this.#counts[index] = (this.#counts[index] as number) + times
  }

  /** Returns for each bound how many durations were at most as long. */
  cumulative(): number[] {
    let total = 0
    return Array.from(this.#counts, (count) => {
      total += count
      return total
    })
  }
}
