import { assert } from './assert.ts'

type Waiter = { readonly permits: number; readonly grant: () => void }

/** A permit for work that gives way. */
export type LentPermit = Disposable & {
  /** Aborts as soon as somebody waits who does not give way. */
  readonly wanted: AbortSignal
}

/** Counted permits, granted in the order in which they were asked for; what nobody wants now is lent. */
export class Semaphore {
  readonly capacity: number
  #free: number
  readonly #waiting: Waiter[] = []
  readonly #borrowers: Waiter[] = []
  readonly #lent = new Set<AbortController>()

  constructor(capacity: number) {
    assert(capacity > 0, 'a semaphore needs a permit')
    this.capacity = capacity
    this.#free = capacity
  }

  /** Waits for `permits`; the answer gives them back. Throws the signal's reason if it aborts first. */
  async acquire(permits: number, signal: AbortSignal): Promise<Disposable> {
    assert(permits <= this.capacity, 'more permits than there are')
    signal.throwIfAborted()
    if (this.#waiting.length === 0 && this.#free >= permits) {
      this.#free -= permits
      return this.#held(permits)
    }
    const granted = this.#wait(this.#waiting, permits, signal)
    for (const lent of this.#lent) lent.abort()
    await granted
    return this.#held(permits)
  }

  /** Waits for one permit that nobody else wants, to be given back when it is `wanted`. Throws the signal's reason if it aborts first. */
  async borrow(signal: AbortSignal): Promise<LentPermit> {
    signal.throwIfAborted()
    if (this.#waiting.length === 0 && this.#borrowers.length === 0 && this.#free >= 1) this.#free -= 1
    else await this.#wait(this.#borrowers, 1, signal)
    const lent = new AbortController()
    this.#lent.add(lent)
    // Somebody came between the grant and now.
    if (this.#waiting.length > 0) lent.abort()
    const held = this.#held(1)
    return {
      wanted: lent.signal,
      [Symbol.dispose]: () => {
        this.#lent.delete(lent)
        held[Symbol.dispose]()
      },
    }
  }

  async #wait(line: Waiter[], permits: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter: Waiter = { permits, grant: resolve }
    const abort = () => {
      const at = line.indexOf(waiter)
      // Granted in the same turn: the caller has the permits and gives them back itself.
      if (at < 0) return
      line.splice(at, 1)
      this.#grantNext()
      reject(signal.reason)
    }
    line.push(waiter)
    signal.addEventListener('abort', abort, { once: true })
    try {
      await promise
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  #held(permits: number): Disposable {
    let held = true
    return {
      [Symbol.dispose]: () => {
        if (!held) return
        held = false
        this.#free += permits
        this.#grantNext()
      },
    }
  }

  #grantNext(): void {
    for (let next = this.#waiting[0]; next !== undefined && next.permits <= this.#free; next = this.#waiting[0]) {
      this.#waiting.shift()
      this.#free -= next.permits
      next.grant()
    }
    while (this.#waiting.length === 0 && this.#free >= 1) {
      const borrower = this.#borrowers.shift()
      if (borrower === undefined) return
      this.#free -= 1
      borrower.grant()
    }
  }
}
