import { seededRandom } from '#lib/random.ts'

/** Random choices that a seed repeats. */
export class Random {
  readonly #next: () => number

  constructor(seed: number) {
    this.#next = seededRandom(seed).fraction
  }

  /** Returns a number in [0, 1). */
  share(): number {
    return this.#next()
  }

  /** Returns an integer from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.#next() * (max - min + 1))
  }

  isLuckyIn(sides: number): boolean {
    return this.between(1, sides) === 1
  }

  pick<T>(from: readonly T[]): T {
    const chosen = from[this.between(0, from.length - 1)]
    if (chosen === undefined) throw new Error('cannot pick from an empty list')
    return chosen
  }

  /** Returns some of the items, at least one, in their order. */
  some<T>(from: readonly T[]): readonly T[] {
    const chosen = from.filter(() => this.isLuckyIn(2))
    return chosen.length > 0 ? chosen : [this.pick(from)]
  }

  /** Returns a seed for an independent generator. */
  seed(): number {
    return this.between(1, 0x7fff_ffff)
  }
}

/** Returns the seed of a round, so that a round can be repeated without those before it. */
export function seedOfRound(seed: number, round: number): number {
  return Math.imul(seed ^ (round * 0x9e37_79b1), 0x85eb_ca6b) >>> 1
}
