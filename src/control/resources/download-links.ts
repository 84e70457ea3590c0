/**
 * Links to delivered files that need no credentials.
 *
 * Law: a file of an account is signed with the credentials of its own destination, and for a bounded time. Who may have links is decided by
 * the caller.
 */
import type { Logger } from '#lib/telemetry.ts'
import { downloadLimits } from '#model/limits.ts'
import type { ObjectStore, ObjectStores } from '#objects/object-store.ts'
import { sessionName } from '#objects/session-name.ts'
import { findDestination } from '#store/endpoints/destinations.ts'
import type { Store } from '#store/store.ts'
import type { BucketFile } from './bucket-files.ts'

export type DownloadLinksOptions = { readonly store: Store; readonly objectStores: ObjectStores; readonly logger: Logger }

type LinkedFile = Omit<BucketFile, 'bytes'>

export class DownloadLinks {
  readonly #options: DownloadLinksOptions

  constructor(options: DownloadLinksOptions) {
    this.#options = options
  }

  /** Returns a URL for each file, and null for one whose destination was deleted or denies reading. */
  async sign(account_id: string, files: readonly LinkedFile[]): Promise<readonly (string | null)[]> {
    const buckets = new Map<string, ObjectStore | undefined>()
    for (const file of files) {
      if (!buckets.has(bucketIdOf(file))) buckets.set(bucketIdOf(file), await this.#open(account_id, file))
    }
    return Promise.all(files.map((file) => this.#sign(buckets.get(bucketIdOf(file)), file.key)))
  }

  /** Opens the bucket of the file with the current credentials of its destination. Returns undefined if the destination was deleted. */
  async #open(account_id: string, { destination_id, bucket, region }: LinkedFile): Promise<ObjectStore | undefined> {
    const { store, objectStores } = this.#options
    const destination = await findDestination(store.db, account_id, destination_id)
    return destination === undefined
      ? undefined
      : objectStores.open({ ...destination, bucket, region, session: sessionName({ account_id }) })
  }

  async #sign(bucket: ObjectStore | undefined, key: string): Promise<string | null> {
    try {
      return (await bucket?.presign(key, downloadLimits.seconds)) ?? null
    } catch (error) {
      // The role may have been removed since. The files are still listed.
      this.#options.logger.warn({ err: error }, 'download signing failed')
      return null
    }
  }
}

function bucketIdOf({ destination_id, bucket, region }: LinkedFile): string {
  return `${destination_id} ${bucket} ${region}`
}
