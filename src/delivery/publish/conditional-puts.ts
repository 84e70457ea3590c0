/**
 * Puts markers that are to be there once, into one bucket.
 *
 * Owns: whether the store enforces the condition, which the first put of a process shows. Does not own: what a marker that is there means.
 * Law: where the store enforces it, one of two machines that deliver the same segment writes its marker, and the other one learns of it. Where it
 * does not, the bucket is asked right before the put, so two that come within a round trip are not noticed.
 */
import type { Logger } from '#lib/telemetry.ts'
import type { BucketTarget, ObjectStore, PutOptions } from '#objects/object-store.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import { unlessReadDenied } from './bucket.ts'

export type ConditionalPutsOf = (target: Pick<BucketTarget, 'id' | 'bucket'>) => ConditionalPuts

/** Returns the puts of each destination: they keep what the store has shown. */
export function conditionalPutsByDestination(logger: Logger): ConditionalPutsOf {
  const known = new Map<string, ConditionalPuts>()
  return ({ id, bucket }) => {
    const found = known.get(`${id} ${bucket}`) ?? new ConditionalPuts(bucket, logger)
    known.set(`${id} ${bucket}`, found)
    return found
  }
}

export class ConditionalPuts {
  readonly #bucket: string
  readonly #logger: Logger
  /** Undefined until a put has shown it. */
  #isEnforced: boolean | undefined

  constructor(bucket: string, logger: Logger) {
    this.#bucket = bucket
    this.#logger = logger
  }

  /** Whether the store has shown that it enforces the condition. */
  get isEnforced(): boolean {
    return this.#isEnforced === true
  }

  /**
   * Puts the object if it is not there. Returns the content of one that is there and differs. If the role may not read, nothing can be compared: then
   * the object is replaced.
   */
  async put(store: ObjectStore, key: string, body: Uint8Array, options: PutOptions): Promise<Uint8Array | undefined> {
    const { signal } = options
    const isFree = this.#isEnforced === true || (await unlessReadDenied(() => store.head(key, signal), undefined)) === undefined
    if (isFree && (await this.#putOnce(store, key, body, options))) return undefined
    // Nothing, if the object is gone by now, or may not be read.
    const found = await unlessReadDenied(() => store.get(key, signal), undefined)
    if (found === undefined) await store.put(key, body, options)
    return found === undefined || Buffer.compare(found, body) === 0 ? undefined : found
  }

  async #putOnce(store: ObjectStore, key: string, body: Uint8Array, options: PutOptions): Promise<boolean> {
    if (this.#isEnforced === false) {
      await store.put(key, body, options)
      return true
    }
    try {
      const isPut = await store.putIfAbsent(key, body, options)
      if (this.#isEnforced === undefined) this.#setEnforced(!isPut || !(await store.putIfAbsent(key, body, options)))
      return isPut
    } catch (error) {
      if (!(error instanceof ObjectStoreError) || error.reason !== 'condition_refused') throw error
      this.#setEnforced(false)
      return this.#putOnce(store, key, body, options)
    }
  }

  #setEnforced(isEnforced: boolean): void {
    this.#isEnforced = isEnforced
    if (!isEnforced)
      this.#logger.warn(
        { bucket: this.#bucket },
        'the store replaces objects although it is told not to (If-None-Match): see markers in docs/fencing.md',
      )
  }
}
