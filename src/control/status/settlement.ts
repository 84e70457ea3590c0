/**
 * Decides from the reports of nodes whether a detached binding is settled: no node can hold a segment that it applies to.
 *
 * Owns: which nodes count, and what proves that one holds no such segment. Does not own: dropping the binding (upkeep/settlements.ts).
 * Law: every node that received the endpoint must report, at an epoch that includes the detachment, that it holds no segment sealed before.
 * An open segment does not matter, because it will be sealed later.
 */

import type { UnsettledBinding } from '#store/endpoints/unsettled-bindings.ts'
import type { NodeLag } from '#store/nodes/node-reports.ts'
import { settlementLimits } from '../limits.ts'
import type { NodeHistory } from './drain.ts'

type Detached = Pick<UnsettledBinding, 'endpoint_id' | 'region' | 'since_epoch' | 'deactivated_at' | 'unsettled_epoch'>

export function isSettled(binding: Detached, nodes: readonly NodeHistory[], lags: readonly NodeLag[], nowMs: number): boolean {
  if (nowMs - binding.deactivated_at < settlementLimits.graceMs) return false
  return nodes.every((node) => {
    const lag = lags.find(({ node_id, endpoint_id }) => node_id === node.id && endpoint_id === binding.endpoint_id)
    const received = (node.received.get(binding.region) ?? -1) >= binding.since_epoch
    if (!received && lag === undefined) return true
    return isGone(node, nowMs) || (hasReported(node, binding) && !holdsSegmentSealedBefore(lag, binding.deactivated_at))
  })
}

function isGone({ registered_at, delivery }: NodeHistory, nowMs: number): boolean {
  return nowMs - Date.parse(delivery?.last_seen_at ?? registered_at) > settlementLimits.silentMs
}

/** A node that moved to another region does not learn of the detachment. */
function hasReported({ region, registered_at, delivery }: NodeHistory, binding: Detached): boolean {
  if (delivery === null) return false
  return region === binding.region ? delivery.applied_epoch >= binding.unsettled_epoch : delivery.last_seen_at > registered_at
}

/** Quarantined segments are never delivered. An unknown time counts as before. */
function holdsSegmentSealedBefore(lag: NodeLag | undefined, beforeMs: number): boolean {
  if (lag === undefined || lag.undelivered_segments + lag.parked_segments === 0) return false
  return lag.oldest_sealed_at === null || Date.parse(lag.oldest_sealed_at) < beforeMs
}
