/** Buckets in a directory that fail or stall on demand. */
import { digestFile } from '#lib/digest-file.ts'
import { type Files, systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { DirectoryStores } from '#objects/directory.ts'
import type { BucketTarget, ObjectStore, ObjectStores, PutOptions } from '#objects/object-store.ts'
import { ObjectStoreError } from '#objects/store-error.ts'

export type Fault =
  /** The put does not happen. */
  | 'refused'
  /** The put happens, but its response is lost. */
  | 'answer lost'
  /** The put is acknowledged, but does not happen. */
  | 'not stored'

export class FaultyStores implements ObjectStores {
  readonly #real: DirectoryStores
  /** Returns the fault of a put of this key in this bucket, if any. */
  fault: (key: string, bucket: string) => Fault | undefined = () => undefined
  /** Resolves when a put may begin. */
  delay: (key: string) => Promise<void> | undefined = () => undefined
  /** Keys in the order in which their puts finished. */
  readonly done: string[] = []
  attempts = 0
  /** The role may write but neither read nor list. */
  isUnreadable = false

  constructor(root: string, files: Files = systemFiles) {
    this.#real = new DirectoryStores({ ...system, files, root })
  }

  async #read<T>(read: () => Promise<T>): Promise<T> {
    if (this.isUnreadable) throw new ObjectStoreError('get_denied', 'get', 'AccessDenied', 'reading failed')
    return read()
  }

  open(target: BucketTarget): ObjectStore {
    const store = this.#real.open(target)
    const put = async <T>(key: string, act: () => Promise<T>, unstored: T): Promise<T> => {
      this.attempts += 1
      await this.delay(key)
      const fault = this.fault(key, target.bucket)
      if (fault === 'refused') throw new Error('503 SlowDown')
      if (fault === 'not stored') return unstored
      const result = await act()
      if (result !== false) this.done.push(key)
      if (fault === 'answer lost') throw new Error('connection reset')
      return result
    }
    return Object.assign(Object.create(store) as ObjectStore, {
      put: (key: string, ...rest: [Uint8Array, PutOptions]) => put(key, () => store.put(key, ...rest), undefined),
      putIfAbsent: (key: string, ...rest: [Uint8Array, PutOptions]) => put(key, () => store.putIfAbsent(key, ...rest), true),
      // As S3, which compares the checksum.
      putFile: async (key: string, path: string, options: PutOptions) => {
        if ((await digestFile(systemFiles, path)).sha256 !== options.sha256)
          throw new ObjectStoreError('damaged', 'put', 'BadDigest', 'the content has another checksum')
        await put(key, () => store.putFile(key, path, options), undefined)
      },
      get: (key: string) => this.#read(() => store.get(key)),
      head: (key: string) => this.#read(() => store.head(key)),
      getFile: (key: string, path: string) => this.#read(() => store.getFile(key, path)),
      digest: (key: string) => this.#read(() => store.digest(key)),
      list: (prefix: string) => store.list(prefix),
      remove: (key: string) => store.remove(key),
    })
  }
}
