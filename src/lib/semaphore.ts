import { assert } from './assert.ts'

type Waiter = { readonly permits: number; readonly grant: () => void }

/** Counted permits, granted in the order in which they were asked for. */
export class Semaphore {
  readonly capacity: number
  #free: number
  readonly #waiting: Waiter[] = []

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
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter: Waiter = { permits, grant: resolve }
    const abort = () => {
      const at = this.#waiting.indexOf(waiter)
      // Granted in the same turn: the caller has the permits and gives them back itself.
      if (at < 0) return
      this.#waiting.splice(at, 1)
      this.#grantNext()
      reject(signal.reason)
    }
    this.#waiting.push(waiter)
    signal.addEventListener('abort', abort, { once: true })
    try {
      await promise
    } finally {
      signal.removeEventListener('abort', abort)
    }
    return this.#held(permits)
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
  }
}
