import type { z } from 'zod'
import type { Clock } from '#lib/clock.ts'
import type { Principal } from '#model/api-key.ts'
import type { Commit, CommitsQuery, SegmentCommit } from '#model/commit.ts'
import type { CommitsFound, CommitsRecorded } from '#model/node-protocol.ts'
import { findCommits, listCommits, recordCommit } from '#store/commits.ts'
import { assertEverExisted } from '#store/endpoints.ts'
import { type Store, transact } from '#store/store.ts'

export type CommitsOptions = { readonly store: Store; readonly clock: Clock }

export type Commits = ReturnType<typeof commitService>

export function commitService({ store, clock }: CommitsOptions) {
  return {
    async list(
      { account_id }: Principal,
      endpoint_id: string,
      query: CommitsQuery,
    ): Promise<{ items: Commit[]; next_cursor: string | null }> {
      const { db } = store
      await assertEverExisted(db, account_id, endpoint_id)
      const { items, next_cursor } = await listCommits(db, endpoint_id, query)
      return { items: [...items], next_cursor }
    },

    /** Returns those of the commits that are recorded. */
    async find(ids: readonly string[]): Promise<CommitsFound> {
      return { commits: await findCommits(store.db, ids) }
    },

    /**
     * Records commits in the order given, each in its own transaction. Commits in the response are durable.
     * A commit of an unknown endpoint (the database was restored from an older copy) is recorded like any other: its objects are in
     * the bucket, and rejecting it would block the node's outbox forever.
     */
    async record(commits: readonly SegmentCommit[]): Promise<z.infer<typeof CommitsRecorded>> {
      const recorded: string[] = []
      let newCount = 0
      for (const commit of commits) {
        if ((await transact(store, (db) => recordCommit(db, commit, clock.now()))) === 'new') newCount += 1
        recorded.push(commit.id)
      }
      return { recorded, new: newCount }
    },
  }
}
