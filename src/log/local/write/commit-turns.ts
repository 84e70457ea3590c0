/**
 * Turns at the disk, shared by the owners of the logs. It reads no clock and starts nothing: the same calls give the same order.
 *
 * Owns: which log writes and syncs next. Does not own: what it writes (log.ts).
 * Law: no turn is free while a log waits. The next turn goes to the owner with the fewest turns, and between equals to the one that has
 * waited the longest since its last turn. So many logs of one owner do not delay another one. Logs of one owner take turns in order.
 */
import { assert } from '#lib/assert.ts'

class Owner {
  turns = 0
  /** Starts the turn of each log that waits. */
  readonly waiting: (() => void)[] = []
}

export class CommitTurns {
  readonly #owners = new Map<string, Owner>()
  /** The owners with waiting logs, by their number of turns, each in the order in which they began to wait with it. */
  readonly #waiting: readonly Set<Owner>[]
  #free: number

  constructor(capacity: number) {
    assert(capacity > 0, 'logs need at least one turn')
    this.#free = capacity
    this.#waiting = Array.from({ length: capacity + 1 }, () => new Set())
  }

  /** Returns undefined if the turn has begun, else a promise that resolves when it begins. Call `end` after each turn. */
  begin(name: string): Promise<void> | undefined {
    let owner = this.#owners.get(name)
    if (owner === undefined) {
      owner = new Owner()
      this.#owners.set(name, owner)
    }
    if (this.#free > 0) {
      this.#free -= 1
      owner.turns += 1
      return undefined
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    owner.waiting.push(resolve)
    this.#waiting[owner.turns]?.add(owner)
    return promise
  }

  end(name: string): void {
    const owner = this.#owners.get(name)
    assert(owner !== undefined && owner.turns > 0, 'a turn ended that had not begun')
    this.#setTurns(owner, owner.turns - 1)
    if (owner.turns === 0 && owner.waiting.length === 0) this.#owners.delete(name)
    this.#free += 1
    this.#beginNext()
  }

  #beginNext(): void {
    for (const owners of this.#waiting) {
      for (const owner of owners) {
        const start = owner.waiting.shift()
        this.#free -= 1
        this.#setTurns(owner, owner.turns + 1)
        start?.()
        return
      }
    }
  }

  #setTurns(owner: Owner, turns: number): void {
    this.#waiting[owner.turns]?.delete(owner)
    owner.turns = turns
    if (owner.waiting.length > 0) this.#waiting[turns]?.add(owner)
  }
}
