import { type DlqFiles as DlqFilesOfView, type DlqFilesQuery, toCursor } from '#model/dlq-file.ts'
import { dlqLimits } from '#model/limits.ts'
import type { Principal } from '#model/principal.ts'
import { listDlqFiles } from '#store/commits/dlq-files.ts'
import { findMissingSinceOf } from '#store/commits/missing-commits.ts'
import { getView } from '#store/endpoints/views.ts'
import type { Store } from '#store/store.ts'
import type { DownloadLinks } from './download-links.ts'

export type DlqFilesOptions = { readonly store: Store; readonly downloadLinks: DownloadLinks }

export type DlqFiles = ReturnType<typeof dlqFileService>

/** Lists the files of rows that views rejected, with download URLs. */
export function dlqFileService({ downloadLinks, store }: DlqFilesOptions) {
  return {
    async list({ account_id }: Principal, view_id: string, query: DlqFilesQuery): Promise<DlqFilesOfView> {
      const { db } = store
      const { name, version } = await getView(db, account_id, view_id)
      const { limit, cursor, ...wanted } = query
      const page = { ...wanted, limit: limit ?? dlqLimits.filesMax, after: cursor }
      const { files, total, last } = await listDlqFiles(db, view_id, page)
      const urls = await downloadLinks.sign(
        account_id,
        files.map(({ s3_key: key, s3_bucket: bucket, destination_id, region }) => ({ key, bucket, destination_id, region })),
      )
      const listed = files.map(({ destination_id: _, ...file }, index) => ({ ...file, download_url: urls[index] ?? null }))
      const paging = limit === undefined ? {} : { next_cursor: last === undefined ? null : toCursor(last) }
      const may_lack_commits_since = await findMissingSinceOf(db, account_id, query.endpoint_id)
      return { view_id, view_name: name, view_version: version, files: listed, total, may_lack_commits_since, ...paging }
    },
  }
}
