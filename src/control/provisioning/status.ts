/**
 * The status of an endpoint, computed from facts at each read.
 *
 * Owns: the rules. Does not own: the facts.
 */
import type { DestinationStatus } from '#model/destination.ts'
import type { EndpointStatus } from '#model/endpoint.ts'
import type { EndpointFacts } from '#store/endpoints.ts'
import type { NodeLag } from '#store/node-reports.ts'
import type { NodeFacts } from '#store/nodes.ts'
import { deliveryLagSecondsMax, nodeFailedSeconds, nodeGoneSeconds, nodeHealthySeconds } from '../limits.ts'
import { hasRecentHeartbeat } from './reports.ts'

export type ComputedStatus = { readonly status: EndpointStatus; readonly reasons: readonly string[] }

export function computeStatus(
  endpoint: Omit<EndpointFacts, 'id'>,
  nodes: readonly NodeFacts[],
  lags: readonly NodeLag[],
  nowMs: number,
): ComputedStatus {
  if (endpoint.desired_state === 'draining') return { status: 'draining', reasons: ['the endpoint is being deleted'] }
  if (endpoint.desired_state === 'paused') return { status: 'paused', reasons: ['the endpoint is paused'] }
  const serving = servingNodes(endpoint, nodes, nowMs)
  if (serving.length === 0) return statusWithoutServingNode(endpoint, nodes, nowMs)
  const reasons = [
    ...nodes.filter((node) => !serving.includes(node)).map((node) => explainNode(node, nowMs)),
    ...listDestinationReasons(endpoint.destination_status),
    ...serving.flatMap((node) => listDeliveryReasons(node, nowMs)),
    ...lags.flatMap((lag) => listLagReasons(lag, nowMs)),
  ]
  return reasons.length === 0 ? { status: 'active', reasons } : { status: 'degraded', reasons }
}

/** The nodes that accept data for the endpoint: healthy, with an applied epoch that includes it. */
export function servingNodes(
  { since_epoch }: Pick<EndpointFacts, 'since_epoch'>,
  nodes: readonly NodeFacts[],
  nowMs: number,
): readonly NodeFacts[] {
  return nodes.filter(
    ({ ingest }) => ingest?.healthy === true && hasRecentHeartbeat(ingest, nowMs) && ingest.applied_epoch >= since_epoch,
  )
}

/** Drops nodes that are gone: a replaced machine must not keep its endpoints degraded. */
export function presentNodes(nodes: readonly NodeFacts[], nowMs: number): readonly NodeFacts[] {
  return nodes.filter((node) => nowMs - lastHeartbeatMs(node) <= nodeGoneSeconds * 1000)
}

function lastHeartbeatMs({ registered_at, ingest }: NodeFacts): number {
  return Date.parse(ingest?.last_seen_at ?? registered_at)
}

function statusWithoutServingNode(
  endpoint: Omit<EndpointFacts, 'id'>,
  nodes: readonly NodeFacts[],
  nowMs: number,
): ComputedStatus {
  const reasons =
    nodes.length === 0 ? [`no node serves region ${endpoint.region}`] : nodes.map((node) => explainNode(node, nowMs))
  const healthyMs = nodes.flatMap(({ ingest }) => (ingest?.healthy_at == null ? [] : [Date.parse(ingest.healthy_at)]))
  if (nowMs - Math.max(Date.parse(endpoint.created_at), ...healthyMs) > nodeFailedSeconds * 1000)
    return { status: 'failed', reasons }
  const wasServed = nodes.some(({ ingest }) => ingest !== null && ingest.applied_epoch >= endpoint.since_epoch)
  return { status: wasServed ? 'degraded' : 'deploying', reasons }
}

function explainNode({ id, ingest }: NodeFacts, nowMs: number): string {
  if (ingest === null || !hasRecentHeartbeat(ingest, nowMs))
    return `node ${id} has not sent a heartbeat for ${nodeHealthySeconds} s`
  if (!ingest.healthy) return `node ${id} is not healthy${formatReasons(ingest.reasons)}`
  return `node ${id} does not know the endpoint yet`
}

function listDestinationReasons(status: DestinationStatus | null): readonly string[] {
  if (status === null) return ['no destination is bound: data is kept on the nodes']
  return status === 'valid' ? [] : ['the destination is not validated']
}

function listDeliveryReasons({ id, delivery }: NodeFacts, nowMs: number): readonly string[] {
  if (delivery === null || !hasRecentHeartbeat(delivery, nowMs))
    return [`delivery of node ${id} has not sent a heartbeat for ${nodeHealthySeconds} s`]
  return delivery.healthy ? [] : [`delivery of node ${id} is not healthy${formatReasons(delivery.reasons)}`]
}

function listLagReasons({ node_id, oldest_sealed_at, blocked_by }: NodeLag, nowMs: number): readonly string[] {
  if (blocked_by !== null) return [blocked_by]
  const lagMs = oldest_sealed_at === null ? 0 : nowMs - Date.parse(oldest_sealed_at)
  return lagMs <= deliveryLagSecondsMax * 1000 ? [] : [`delivery of node ${node_id} is ${Math.round(lagMs / 1000)} s behind`]
}

function formatReasons(reasons: readonly string[]): string {
  return reasons.length === 0 ? '' : `: ${reasons.join('; ')}`
}
