/**
 * Restricts an account to the parts of a bucket that the operator allows.
 *
 * Law: no request is sent for a key that is not below an entry of the account. Where a store has roles, their policies see to that.
 */
import { entryOf, isAllowed } from '#model/allowed-bucket.ts'
import type {
  BucketTarget,
  ChecksumTrial,
  DigestOptions,
  ObjectEntry,
  ObjectFacts,
  ObjectStore,
  PutOptions,
} from './object-store.ts'
import { ObjectStoreError, type StoreStep } from './store-error.ts'

export class AllowedStore implements ObjectStore {
  readonly #store: ObjectStore
  readonly #target: BucketTarget

  constructor(store: ObjectStore, target: BucketTarget) {
    this.#store = store
    this.#target = target
  }

  async putFile(key: string, path: string, options: PutOptions): Promise<void> {
    return this.#store.putFile(this.#checked(key, 'put'), path, options)
  }

  async put(key: string, body: Uint8Array, options: PutOptions): Promise<void> {
    return this.#store.put(this.#checked(key, 'put'), body, options)
  }

  async putIfAbsent(key: string, body: Uint8Array, options: PutOptions): Promise<boolean> {
    return this.#store.putIfAbsent(this.#checked(key, 'put'), body, options)
  }

  async get(key: string, signal?: AbortSignal): Promise<Uint8Array | undefined> {
    return this.#store.get(this.#checked(key, 'get'), signal)
  }

  async head(key: string, signal?: AbortSignal): Promise<ObjectFacts | undefined> {
    return this.#store.head(this.#checked(key, 'get'), signal)
  }

  async getFile(key: string, path: string, signal?: AbortSignal, bytesMax?: number): Promise<boolean> {
    return this.#store.getFile(this.#checked(key, 'get'), path, signal, bytesMax)
  }

  async digest(key: string, options?: DigestOptions): ReturnType<ObjectStore['digest']> {
    return this.#store.digest(this.#checked(key, 'get'), options)
  }

  async presign(key: string, seconds: number): Promise<string> {
    return this.#store.presign(this.#checked(key, 'sign'), seconds)
  }

  async remove(key: string, signal?: AbortSignal): Promise<void> {
    return this.#store.remove(this.#checked(key, 'remove'), signal)
  }

  async tryParts(key: string, options: PutOptions): Promise<void> {
    return this.#store.tryParts?.(this.#checked(key, 'put'), options)
  }

  async tryTorn(key: string, options: PutOptions): Promise<void> {
    return this.#store.tryTorn?.(this.#checked(key, 'put'), options)
  }

  async countUploads(prefix: string, signal?: AbortSignal): Promise<number> {
    return (await this.#store.countUploads?.(this.#checked(prefix, 'list'), signal)) ?? 0
  }

  async tryVersions(key: string, options: PutOptions): Promise<boolean> {
    return (await this.#store.tryVersions?.(this.#checked(key, 'put'), options)) ?? false
  }

  async tryChecksums(newKey: () => string, options: PutOptions): Promise<ChecksumTrial> {
    const tried = this.#store.tryChecksums?.(() => this.#checked(newKey(), 'put'), options)
    return (await tried) ?? { refused: [], stored: [] }
  }

  async readTime(prefix: string, signal?: AbortSignal): Promise<number | undefined> {
    return this.#store.readTime?.(this.#checked(prefix, 'list'), signal)
  }

  async *list(prefix: string, signal?: AbortSignal): AsyncIterable<ObjectEntry> {
    yield* this.#store.list(this.#checked(prefix, 'list'), signal)
  }

  #checked(key: string, step: StoreStep): string {
    const { bucket, allowed_buckets } = this.#target
    // Some stores resolve such parts like a file system does, and would leave the prefix.
    const leaves = key.split('/').some((part) => part === '.' || part === '..')
    if (!leaves && isAllowed(allowed_buckets, bucket, key)) return key
    const advice = `the operator of this installation has not allowed this account to use ${entryOf(this.#target)}; ask them to add it to the buckets of the account`
    throw new ObjectStoreError('not_allowed', step, 'NotAllowed', `using bucket ${bucket} failed (NotAllowed): ${advice}`)
  }
}
