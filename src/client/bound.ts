import { deferred } from './deferred.ts'
import { TimeoutError } from './errors.ts'

export type CallOptions = {
  /** Ends the call. It then throws the reason of the signal. */
  readonly signal?: AbortSignal | undefined
  /** Bound of the whole call, with all its attempts, in milliseconds. */
  readonly timeoutMs?: number | undefined
}

/** A timer with a longer delay fires at once. */
const timerMsMax = 2 ** 31 - 1

/** When something ends without a result: after its timeout, or as its caller no longer wants it. Call `release` at the end. */
export class Bound {
  readonly #controller = new AbortController()
  readonly #work: string
  readonly #timeoutMs: number
  readonly #deadline: number
  readonly #given: AbortSignal | undefined
  readonly #timer: ReturnType<typeof setTimeout>
  readonly #onGiven = () => this.#controller.abort(this.#given?.reason)

  constructor(work: string, timeoutMs: number, given?: AbortSignal) {
    this.#work = work
    this.#timeoutMs = timeoutMs
    this.#deadline = performance.now() + timeoutMs
    this.#given = given
    this.#timer = setTimeout(() => this.#controller.abort(), Math.min(timeoutMs, timerMsMax))
    if (given?.aborted === true) this.#onGiven()
    given?.addEventListener('abort', this.#onGiven, { once: true })
  }

  /** Aborted in both cases. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get remainingMs(): number {
    return Math.max(0, this.#deadline - performance.now())
  }

  /** `cause` is why there is no result yet. */
  throwIfOver(cause?: unknown): void {
    this.#given?.throwIfAborted()
    if (this.signal.aborted) throw new TimeoutError(`${this.#work} took longer than ${this.#timeoutMs} ms`, { cause })
  }

  /** Returns what the promise returns, unless the call ends before. */
  async wait<T>(promise: Promise<T>): Promise<T> {
    this.throwIfOver()
    const { promise: end, reject } = deferred<never>()
    const onEnd = () => reject(this.signal.reason)
    this.signal.addEventListener('abort', onEnd, { once: true })
    try {
      return await Promise.race([promise, end])
    } catch (error) {
      this.throwIfOver(error)
      throw error
    } finally {
      this.signal.removeEventListener('abort', onEnd)
    }
  }

  async pause(delayMs: number): Promise<void> {
    const { promise, resolve } = deferred<void>()
    const timer = setTimeout(resolve, Math.min(delayMs, timerMsMax))
    await this.wait(promise).finally(() => clearTimeout(timer))
  }

  release(): void {
    clearTimeout(this.#timer)
    this.#given?.removeEventListener('abort', this.#onGiven)
  }
}
