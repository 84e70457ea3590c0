/** Nodes that clients of an endpoint should use. */
import { nodeLimits } from '#model/limits.ts'
import type { EndpointFacts } from '#store/endpoints/endpoints.ts'
import type { NodeFacts, ProcessFacts } from '#store/nodes/nodes.ts'

/** Returns those that are trusted, healthy and not about to stop, with an applied epoch that includes the endpoint. */
export function servingNodes(
  { since_epoch }: Pick<EndpointFacts, 'since_epoch'>,
  nodes: readonly NodeFacts[],
  nowMs: number,
): readonly NodeFacts[] {
  return nodes.filter(
    (node) =>
      hasValidCredential(node) &&
      node.ingest?.healthy === true &&
      !node.ingest.leaving &&
      hasRecentHeartbeat(node.ingest, nowMs) &&
      node.ingest.applied_epoch >= since_epoch,
  )
}

/** Says whether control still trusts the node. One whose id was released has no credential. */
export function hasValidCredential({ credential }: Pick<NodeFacts, 'credential'>): boolean {
  return credential === 'active'
}

export function hasRecentHeartbeat(process: ProcessFacts | null, nowMs: number): boolean {
  return process !== null && nowMs - Date.parse(process.last_seen_at) <= nodeLimits.healthySeconds * 1000
}
