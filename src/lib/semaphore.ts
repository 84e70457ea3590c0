import { assert } from './assert.ts'

type Waiter = { readonly permits: number; readonly grant: () => void }

/** A permit for low-priority work. */
export type LentPermit = Disposable & {
  /** Aborts as soon as `acquire` waits for a permit. */
  readonly wanted: AbortSignal
}

/** Counted permits, granted in the order of the requests. Idle permits are lent to low-priority work, which gives them back on request. */
export class Semaphore {
  readonly capacity: number
  #free: number
  readonly #waiting: Waiter[] = []
  readonly #borrowers: Waiter[] = []
  readonly #lent = new Set<AbortController>()

  constructor(capacity: number) {
    assert(capacity > 0, 'a semaphore needs at least one permit')
    this.capacity = capacity
    this.#free = capacity
  }

  /** Waits for `permits`. Dispose the result to release them. Throws the signal's reason if it aborts first. */
  async acquire(permits: number, signal: AbortSignal): Promise<Disposable> {
    assert(permits <= this.capacity, 'cannot acquire more permits than the semaphore has')
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

  /** Waits for an idle permit. Release it when `wanted` aborts. Throws the signal's reason if it aborts first. */
  async borrow(signal: AbortSignal): Promise<LentPermit> {
    signal.throwIfAborted()
    if (this.#waiting.length === 0 && this.#borrowers.length === 0 && this.#free >= 1) this.#free -= 1
    else await this.#wait(this.#borrowers, 1, signal)
    const lent = new AbortController()
    this.#lent.add(lent)
    // An `acquire` may have started to wait since the permit was granted.
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

  async #wait(queue: Waiter[], permits: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter: Waiter = { permits, grant: resolve }
    const abort = () => {
      const at = queue.indexOf(waiter)
      // Granted just before the abort: the caller has the permits and releases them.
      if (at < 0) return
      queue.splice(at, 1)
      this.#grantNext()
      reject(signal.reason)
    }
    queue.push(waiter)
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
