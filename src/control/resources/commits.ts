import { AppError } from '#errors.ts'
import type { CommitFiles, CommitList, CommitsQuery } from '#model/commit.ts'
import type { Principal } from '#model/principal.ts'
import { findEndpointCommit, listCommits, listSegmentCommits } from '#store/commits/commits.ts'
import { findMissingSinceOf } from '#store/commits/missing-commits.ts'
import { assertEverExisted } from '#store/endpoints/endpoints.ts'
import type { Store } from '#store/store.ts'
import type { DownloadLinks } from './download-links.ts'

export type CommitsOptions = { readonly store: Store; readonly downloadLinks: DownloadLinks }

export type Commits = ReturnType<typeof commitService>

export function commitService({ store, downloadLinks }: CommitsOptions) {
  return {
    async list(
      { account_id }: Principal,
      endpoint_id: string,
      { node_id, segment_seq: seq, ...page }: CommitsQuery,
    ): Promise<CommitList> {
      const { db } = store
      await assertEverExisted(db, account_id, endpoint_id)
      const may_lack_commits_since = await findMissingSinceOf(db, account_id, endpoint_id)
      if (node_id !== undefined && seq !== undefined) {
        const items = await listSegmentCommits(db, endpoint_id, { node_id, seq })
        return { items, next_cursor: null, may_lack_commits_since }
      }
      const { items, next_cursor } = await listCommits(db, endpoint_id, page)
      return { items: [...items], next_cursor, may_lack_commits_since }
    },

    /** Returns a commit with a link to each of its files. Throws not_found. */
    async listFiles({ account_id }: Principal, endpoint_id: string, id: string): Promise<CommitFiles> {
      await assertEverExisted(store.db, account_id, endpoint_id)
      const found = await findEndpointCommit(store.db, endpoint_id, id)
      if (found === undefined) throw new AppError('not_found', 'no such commit of the endpoint')
      const { destination_id, region } = found
      const { artifacts, ...commit } = found.commit
      const files = Object.entries(artifacts).map(([kind, file]) => ({ kind, ...file }))
      const urls = await downloadLinks.sign(
        account_id,
        files.map(({ key, moved_to }) => ({ key: moved_to?.key ?? key, destination_id, region, bucket: commit.bucket })),
      )
      return { ...commit, files: files.map((file, index) => ({ ...file, download_url: urls[index] ?? null })) }
    },
  }
}
