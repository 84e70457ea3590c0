import type { Logger } from '#lib/telemetry.ts'
import type { Principal } from '#model/api-key.ts'
import { type DlqFiles as DlqFilesOfView, type DlqFilesQuery, toCursor } from '#model/dlq-file.ts'
import { dlqLimits } from '#model/limits.ts'
import type { ObjectStore, ObjectStores } from '#objects/object-store.ts'
import { sessionName } from '#objects/session-name.ts'
import { findDestination } from '#store/destinations.ts'
import { listDlqFiles, type StoredDlqFile } from '#store/dlq-files.ts'
import type { Store } from '#store/store.ts'
import { getView } from '#store/views.ts'

export type DlqFilesOptions = { readonly store: Store; readonly objectStores: ObjectStores; readonly logger: Logger }

export type DlqFiles = ReturnType<typeof dlqFileService>

/** Lists the files of rows that views rejected, with download URLs. */
export function dlqFileService({ logger, objectStores, store }: DlqFilesOptions) {
  /** Opens the bucket of the file with the current credentials of its destination. Returns undefined if the destination was deleted. */
  async function open(
    account_id: string,
    { destination_id, s3_bucket: bucket, region }: StoredDlqFile,
  ): Promise<ObjectStore | undefined> {
    const destination = await findDestination(store.db, account_id, destination_id)
    return destination === undefined
      ? undefined
      : objectStores.open({ ...destination, bucket, region, session: sessionName({ account_id }) })
  }

  async function sign(bucket: ObjectStore | undefined, key: string): Promise<string | null> {
    try {
      return (await bucket?.presign(key, dlqLimits.downloadSeconds)) ?? null
    } catch (error) {
      // The role may have been removed since. The files are still listed.
      logger.warn({ err: error }, 'download signing failed')
      return null
    }
  }

  return {
    async list({ account_id, scopes }: Principal, view_id: string, query: DlqFilesQuery): Promise<DlqFilesOfView> {
      const { db } = store
      const { name, version } = await getView(db, account_id, view_id)
      const { limit, cursor, ...wanted } = query
      const page = { ...wanted, limit: limit ?? dlqLimits.filesMax, after: cursor }
      const { files, total, last } = await listDlqFiles(db, view_id, page)
      const buckets = new Map<string, ObjectStore | undefined>()
      // The files have payloads. Other scopes read the state of an account, and not its data.
      const mayDownload = scopes.includes('admin')
      for (const file of mayDownload ? files : []) {
        if (!buckets.has(bucketIdOf(file))) buckets.set(bucketIdOf(file), await open(account_id, file))
      }
      const signed = files.map(async ({ destination_id, ...file }) => ({
        ...file,
        download_url: await sign(buckets.get(bucketIdOf({ destination_id, ...file })), file.s3_key),
      }))
      const paging = limit === undefined ? {} : { next_cursor: last === undefined ? null : toCursor(last) }
      return { view_id, view_name: name, view_version: version, files: await Promise.all(signed), total, ...paging }
    },
  }
}

function bucketIdOf({ destination_id, s3_bucket, region }: StoredDlqFile): string {
  return `${destination_id} ${s3_bucket} ${region}`
}
