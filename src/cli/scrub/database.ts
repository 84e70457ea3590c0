import type { DeliveredCommits } from '#delivery/scrub/scrub-bucket.ts'
import { isoTimestamp } from '#lib/clock.ts'
import { scrubPageLimits } from '#model/scrub.ts'
import { listCommitsToScrub, listEndpointsToScrub, listKnownMarkers, withTargets } from '#store/jobs/commits-to-scrub.ts'
import type { Db } from '#store/store.ts'

/** Everything that was delivered, of every region. */
export function readDelivered(db: Db, keptSinceMs: number): DeliveredCommits {
  return {
    async endpoints(after) {
      const limit = scrubPageLimits.endpointsMax
      const found = await listEndpointsToScrub(db, { after, limit })
      const endpoints = await Promise.all(found.map((endpoint) => withTargets(db, endpoint)))
      return { endpoints, next: found.length < limit ? null : (found.at(-1)?.id ?? null), kept_since: isoTimestamp(keptSinceMs) }
    },
    async commits(endpointId, after) {
      const limit = scrubPageLimits.commitsMax
      const commits = await listCommitsToScrub(db, endpointId, { after, limit })
      return { commits: [...commits], is_last: commits.length < limit }
    },
    known: (_, ids) => listKnownMarkers(db, ids),
  }
}
