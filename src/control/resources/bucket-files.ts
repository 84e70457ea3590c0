/**
 * Copies delivered files from buckets, for processes that look into them.
 *
 * Law: this process only copies bytes, and never more than the caller bounds. Files of an account are read with the credentials of its own
 * destinations. The copies are removed whatever happens.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError } from '#errors.ts'
import { Semaphore } from '#lib/semaphore.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { sessionName } from '#objects/session-name.ts'
import { findDestination } from '#store/endpoints/destinations.ts'
import type { Store } from '#store/store.ts'

/** Where a file is: its destination may have moved to another bucket since. */
export type BucketFile = {
  readonly key: string
  readonly bytes: number
  readonly destination_id: string
  readonly bucket: string
  readonly region: string
}

export type BucketFilesOptions = { readonly store: Store; readonly objectStores: ObjectStores; readonly logger: Logger }

/** Copies at once, of all accounts: each takes memory and disk. */
const copiesAtOnce = 2

export class BucketFiles {
  readonly #options: BucketFilesOptions
  readonly #copies = new Semaphore(copiesAtOnce)

  constructor(options: BucketFilesOptions) {
    this.#options = options
  }

  /** Calls `use` with the paths of copies, in one directory of their own. Throws conflict, which says why a file cannot be read. */
  async withCopies<T>(
    account_id: string,
    files: readonly BucketFile[],
    signal: AbortSignal,
    use: (paths: readonly string[]) => Promise<T>,
  ): Promise<T> {
    using _copy = await this.#copies.acquire(1, signal)
    const directory = await mkdtemp(join(tmpdir(), 'inlet-read-'))
    try {
      // Files of segments that were merged are parts of one.
      const copied = new Map<string, string>()
      for (const file of files) {
        const id = `${file.destination_id} ${file.bucket} ${file.key}`
        if (copied.has(id)) continue
        const path = join(directory, String(copied.size))
        await this.#copy(account_id, file, path, signal)
        copied.set(id, path)
      }
      return await use(files.map(({ destination_id, bucket, key }) => copied.get(`${destination_id} ${bucket} ${key}`) ?? ''))
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  }

  async #copy(account_id: string, file: BucketFile, path: string, signal: AbortSignal): Promise<void> {
    const { store, objectStores, logger } = this.#options
    const { destination_id, bucket, region, key } = file
    const destination = await findDestination(store.db, account_id, destination_id)
    if (destination === undefined) throw new AppError('conflict', `the destination of ${key} was deleted: nothing can read it`)
    let isCopied: boolean
    try {
      const objects = objectStores.open({ ...destination, bucket, region, session: sessionName({ account_id }) })
      isCopied = await objects.getFile(key, path, signal)
    } catch (error) {
      signal.throwIfAborted()
      logger.warn({ err: error, destination_id }, 'delivered file read failed')
      throw new AppError('conflict', `the bucket ${bucket} cannot be read: validate the destination`)
    }
    if (!isCopied) throw new AppError('conflict', `${key} is no longer in the bucket ${bucket}`)
  }
}

/** Returns the first files that together stay within the bounds. One of which several are parts counts once. */
export function takeFitting<File extends { readonly key: string; readonly bytes: number }>(
  files: readonly File[],
  { filesMax, bytesMax }: { readonly filesMax: number; readonly bytesMax: number },
): readonly File[] {
  let bytes = 0
  const taken = new Set<string>()
  return files.slice(0, filesMax).filter((file) => {
    if (taken.has(file.key)) return true
    if (bytes + file.bytes > bytesMax) return false
    bytes += file.bytes
    taken.add(file.key)
    return true
  })
}
