import type { Clock } from '#lib/clock.ts'
import type { Compact } from '#model/compaction.ts'
import type { Job } from '#model/job.ts'
import type { Principal } from '#model/principal.ts'
import { startCompaction } from '#store/jobs/compaction-jobs.ts'
import type { Store } from '#store/store.ts'
import { actorOf } from './actor.ts'

export type CompactionsOptions = { readonly store: Store; readonly clock: Clock }

export type Compactions = ReturnType<typeof compactionService>

/** Plans compactions that somebody asks for. Nodes run them (`job-leases.ts`). */
export function compactionService({ store, clock }: CompactionsOptions) {
  return {
    /** Returns undefined if there is nothing to merge. */
    start(principal: Principal, endpoint_id: string, request: Compact): Promise<Job | undefined> {
      return startCompaction(store, { ...principal, created_by: actorOf(principal) }, endpoint_id, request, clock.now())
    },
  }
}
