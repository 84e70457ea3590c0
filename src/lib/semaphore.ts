import { assert } from './assert.ts'

type Waiter = { readonly permits: number; readonly grant: () => void }

/** Counted permits, granted in the order of the requests. */
export class Semaphore {
  readonly capacity: number
  #free: number
  readonly #waiting: Waiter[] = []

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
    await this.#wait(permits, signal)
    return this.#held(permits)
  }

  async #wait(permits: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter: Waiter = { permits, grant: resolve }
    const abort = () => {
      const at = this.#waiting.indexOf(waiter)
      // Granted just before the abort: the caller has the permits and releases them.
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
