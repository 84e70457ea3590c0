/**
 * Says which delivered files a node verifies.
 *
 * Law: a node learns of endpoints of its region alone. Each endpoint is verified by one of the nodes there that deliver, whichever delivered its
 * files: nodes come and go, and the files stay. Two nodes that disagree about who is there verify an endpoint twice, or one pass later.
 */
import { createHash } from 'node:crypto'
import { AppError } from '#errors.ts'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import {
  type ScrubCommits,
  type ScrubCommitsRequest,
  type ScrubEndpoints,
  type ScrubEndpointsRequest,
  type ScrubKnown,
  type ScrubKnownRequest,
  scrubPageLimits,
} from '#model/scrub.ts'
import { hasRecentHeartbeat } from '#naming/serving-nodes.ts'
import { listOwnEndpoints } from '#store/cluster/node-scope.ts'
import { listCommitsToScrub, listEndpointsToScrub, listKnownMarkers, withTargets } from '#store/jobs/commits-to-scrub.ts'
import { listNodes } from '#store/nodes/nodes.ts'
import type { Store } from '#store/store.ts'
import type { NodeIdentity } from './node-access.ts'

export type ScrubsOptions = {
  readonly store: Store
  /** How long commits are kept. */
  readonly keptMs: number
  readonly clock: Clock
}

export type Scrubs = ReturnType<typeof scrubService>

export function scrubService({ store, keptMs, clock }: ScrubsOptions) {
  const assertOwn = async (node: NodeIdentity, endpointId: string) => {
    const own = await listOwnEndpoints(store.db, node.id, [endpointId])
    if (!own.has(endpointId)) throw new AppError('not_found', 'no such endpoint in the region of the node')
  }
  return {
    async endpoints(node: NodeIdentity, { after }: ScrubEndpointsRequest): Promise<ScrubEndpoints> {
      const now = clock.now()
      const limit = scrubPageLimits.endpointsMax
      const found = await listEndpointsToScrub(store.db, { after, region: node.region, limit })
      const nodes = await listNodes(store.db, [node.region])
      const ids = [node.id, ...nodes.flatMap(({ id, delivery }) => (hasRecentHeartbeat(delivery, now) ? [id] : []))]
      const own = found.filter(({ id }) => chooseNode(id, ids) === node.id)
      const endpoints = await Promise.all(own.map((endpoint) => withTargets(store.db, endpoint)))
      const next = found.length < limit ? null : (found.at(-1)?.id ?? null)
      return { endpoints, next, kept_since: isoTimestamp(Math.max(0, now - keptMs)) }
    },

    /** Throws not_found for an endpoint of another region. */
    async commits(node: NodeIdentity, { endpoint_id, after }: ScrubCommitsRequest): Promise<ScrubCommits> {
      await assertOwn(node, endpoint_id)
      const limit = scrubPageLimits.commitsMax
      const commits = await listCommitsToScrub(store.db, endpoint_id, { after, limit })
      return { commits: [...commits], is_last: commits.length < limit }
    },

    /** Throws not_found for an endpoint of another region. */
    async known(node: NodeIdentity, { endpoint_id, ids }: ScrubKnownRequest): Promise<ScrubKnown> {
      await assertOwn(node, endpoint_id)
      return { ids: [...(await listKnownMarkers(store.db, ids))] }
    },
  }
}

/** Rendezvous hashing: if a node comes or goes, no endpoint moves between the others. */
function chooseNode(endpointId: string, nodeIds: readonly string[]): string | undefined {
  const weight = (nodeId: string) => createHash('sha256').update(`${endpointId} ${nodeId}`).digest('hex')
  return nodeIds.toSorted((a, b) => (weight(a) < weight(b) ? 1 : -1))[0]
}
