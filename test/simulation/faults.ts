/**
 * Faults of a history. Each has a name, so that a failure can be tried again with fewer of them.
 *
 * Law: a fault that is left out draws what it would have drawn. So those of other sources stay as they were.
 */
import type { Kernel } from './kernel.ts'

export class Faults {
  /** Names of those that happened. */
  readonly happened: string[] = []
  readonly #kernel: Kernel
  readonly #kept: ReadonlySet<string> | undefined
  readonly #counts = new Map<string, number>()
  #areOver = false

  /** `kept` names the only faults that may happen. */
  constructor(kernel: Kernel, kept?: readonly string[]) {
    this.#kernel = kernel
    this.#kept = kept && new Set(kept)
  }

  /** Nothing goes wrong from now on. */
  end(): void {
    this.#areOver = true
  }

  /** Whether the next fault of this name happens. */
  next(name: string): boolean {
    const count = (this.#counts.get(name) ?? 0) + 1
    this.#counts.set(name, count)
    const numbered = `${name} ${count}`
    if (this.#areOver || this.#kept?.has(numbered) === false) return false
    this.#kernel.note(`fault: ${numbered}`)
    this.happened.push(numbered)
    return true
  }

  /** A source of faults: returns one of the kinds for that share of its calls. */
  of<T extends string>(name: string, share: number, kinds: readonly T[]): () => T | undefined {
    const draw = this.#kernel.draw(name)
    return () => {
      if (!draw.chance(share)) return undefined
      const kind = draw.pick(kinds)
      return this.next(`${name}: ${kind}`) ? kind : undefined
    }
  }

  /** Does it again and again, after a time with that mean. */
  repeat(everyMs: number, name: string, act: () => void): void {
    const draw = this.#kernel.draw(name)
    const wait = () =>
      this.#kernel.after(draw.delay(everyMs), name, () => {
        if (this.#areOver) return
        if (this.next(name)) act()
        wait()
      })
    wait()
  }
}
