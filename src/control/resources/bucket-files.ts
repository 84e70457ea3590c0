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

/** Why a file is left out where others can be read in its place. */
export type UnreadReason = 'gone' | 'destination_deleted'

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
  withCopies<T>(
    account_id: string,
    files: readonly BucketFile[],
    signal: AbortSignal,
    use: (paths: readonly string[]) => Promise<T>,
  ): Promise<T> {
    return this.#withCopies(account_id, files, signal, (copied) => {
      const paths = files.map((file) => {
        const copy = copied.get(idOf(file))
        if (copy === undefined || 'unread' in copy) throw new AppError('conflict', describeUnread(file, copy?.unread ?? 'gone'))
        return copy.path
      })
      return use(paths)
    })
  }

  /** The same, but without files that are gone. Throws conflict if a bucket cannot be read. */
  withReadableCopies<File extends BucketFile, T>(
    account_id: string,
    files: readonly File[],
    signal: AbortSignal,
    use: (copies: readonly (File & { readonly path: string })[], unread: ReadonlyMap<string, UnreadReason>) => Promise<T>,
  ): Promise<T> {
    return this.#withCopies(account_id, files, signal, (copied) => {
      const copies = files.flatMap((file) => {
        const copy = copied.get(idOf(file))
        return copy === undefined || 'unread' in copy ? [] : [{ ...file, path: copy.path }]
      })
      const unread = [...copied].flatMap(([id, copy]) => ('unread' in copy ? [[id, copy.unread] as const] : []))
      return use(copies, new Map(unread))
    })
  }

  async #withCopies<T>(
    account_id: string,
    files: readonly BucketFile[],
    signal: AbortSignal,
    use: (copied: ReadonlyMap<string, Copy>) => Promise<T>,
  ): Promise<T> {
    using _copy = await this.#copies.acquire(1, signal)
    const directory = await mkdtemp(join(tmpdir(), 'inlet-read-'))
    try {
      // Files of segments that were merged are parts of one.
      const copied = new Map<string, Copy>()
      for (const file of files) {
        if (copied.has(idOf(file))) continue
        const path = join(directory, String(copied.size))
        const unread = await this.#copy(account_id, file, path, signal)
        copied.set(idOf(file), unread === undefined ? { path } : { unread })
      }
      return await use(copied)
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  }

  /** Returns why there is no copy, unless there is one. Throws conflict if the bucket cannot be read. */
  async #copy(account_id: string, file: BucketFile, path: string, signal: AbortSignal): Promise<UnreadReason | undefined> {
    const { store, objectStores, logger } = this.#options
    const { destination_id, bucket, region, key } = file
    const destination = await findDestination(store.db, account_id, destination_id)
    if (destination === undefined) return 'destination_deleted'
    try {
      const objects = objectStores.open({ ...destination, bucket, region, session: sessionName({ account_id }) })
      return (await objects.getFile(key, path, signal)) ? undefined : 'gone'
    } catch (error) {
      signal.throwIfAborted()
      logger.warn({ err: error, destination_id }, 'delivered file read failed')
      throw new AppError('conflict', `the bucket ${bucket} cannot be read: validate the destination`)
    }
  }
}

type Copy = { readonly path: string } | { readonly unread: UnreadReason }

function idOf({ destination_id, bucket, key }: BucketFile): string {
  return `${destination_id} ${bucket} ${key}`
}

function describeUnread({ key, bucket }: BucketFile, reason: UnreadReason): string {
  return reason === 'gone'
    ? `${key} is no longer in the bucket ${bucket}`
    : `the destination of ${key} was deleted: nothing can read it`
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
