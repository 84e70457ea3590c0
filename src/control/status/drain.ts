/**
 * Decides from the reports of nodes whether a deleted endpoint is drained, and what still holds it.
 *
 * Owns: which nodes count, what proves that one holds nothing, the sentence for each that does not. Does not own: removing the endpoint
 * (upkeep/drains.ts).
 * Law: no clock decides. Every node that ever received the endpoint must report, at an epoch that includes the drain, that its log is
 * closed and has no segment of any kind. A node that is silent holds the drain until it reports, or until the endpoint is deleted by force.
 */

import { namedId } from '#lib/named-id.ts'
import { hasRecentHeartbeat } from '#naming/serving-nodes.ts'
import type { NodeLag } from '#store/nodes/node-reports.ts'
import type { NodeFacts } from '#store/nodes/nodes.ts'
import { describeSegments, holdsSegments } from './reports.ts'

/** A node with the newest epoch of each region that it ever received. */
export type NodeHistory = NodeFacts & { readonly received: ReadonlyMap<string, number> }

export type Draining = {
  readonly id: string
  readonly region: string
  readonly since_epoch: number
  /** Infinity for an endpoint that no node has been told to drain: then no report proves anything yet. */
  readonly draining_epoch: number
}

export type DrainHold = {
  readonly node: NodeHistory
  /** The last report of the node about the endpoint. */
  readonly lag: NodeLag | undefined
  readonly reason: string
}

/** Holds that a status lists by themselves. */
const reasonsMax = 20

/** Returns one sentence per node, and how many more nodes there are. */
export function listHoldReasons(holds: readonly DrainHold[]): readonly string[] {
  const reasons = holds.slice(0, reasonsMax).map(({ reason }) => reason)
  const more = holds.length - reasonsMax
  if (more <= 0) return reasons
  return [...reasons, more === 1 ? '1 more node holds the deletion' : `${more} more nodes hold the deletion`]
}

/** Returns the nodes that are not known to hold nothing; empty once the endpoint is drained. */
export function listDrainHolds(
  endpoint: Draining,
  nodes: readonly NodeHistory[],
  lags: readonly NodeLag[],
  nowMs: number,
): readonly DrainHold[] {
  return nodes.flatMap((node) => {
    const lag = lags.find(({ node_id, endpoint_id }) => node_id === node.id && endpoint_id === endpoint.id)
    const received = (node.received.get(endpoint.region) ?? -1) >= endpoint.since_epoch
    const mayHold = received || (lag !== undefined && holdsSegments(lag))
    if (!mayHold || isEmpty(endpoint, node, lag)) return []
    return [{ node, lag, reason: explainHold(endpoint, node, lag, nowMs) }]
  })
}

function isEmpty({ region, draining_epoch }: Draining, node: NodeHistory, lag: NodeLag | undefined): boolean {
  const { ingest, delivery, registered_at } = node
  if (ingest === null || delivery === null) return false
  if (node.region === region) return delivery.applied_epoch >= draining_epoch && lag?.closed === true && !holdsSegments(lag)
  // The node moved to another region, so it no longer learns of the endpoint. Its ingest sealed everything before it registered there.
  const reportedSince = [ingest, delivery].every(({ last_seen_at }) => last_seen_at > registered_at)
  return Number.isFinite(draining_epoch) && reportedSince && (lag === undefined || !holdsSegments(lag))
}

function explainHold({ draining_epoch }: Draining, node: NodeHistory, lag: NodeLag | undefined, nowMs: number): string {
  const { ingest, delivery, registered_at } = node
  const who = `node ${namedId(node.id, node.name)}`
  const held = lag !== undefined && holdsSegments(lag) ? describeSegments(lag) : undefined
  for (const [name, process] of [
    ['delivery', delivery],
    ['ingest', ingest],
  ] as const) {
    if (hasRecentHeartbeat(process, nowMs)) continue
    // Delivery empties a closed log without ingest.
    if (name === 'ingest' && lag?.closed === true) continue
    const since = process === null ? `it registered at ${registered_at}` : process.last_seen_at
    const last = held === undefined ? '' : `, and last reported ${held}`
    return `${name} of ${who} has not sent a heartbeat since ${since}${last}: start it again; if its disk is lost, delete the endpoint with ?force=true, which abandons what the node holds`
  }
  if (lag !== undefined && held !== undefined) return explainSegments(who, lag, held)
  if (Math.min(delivery?.applied_epoch ?? -1, ingest?.applied_epoch ?? -1) < draining_epoch)
    return `${who} has not applied the deletion yet`
  return `${who} has not closed the log yet`
}

function explainSegments(who: string, lag: NodeLag, held: string): string {
  const { blocked_by, parked_segments, quarantined_segments } = lag
  const parts = [`${who} holds ${held}`]
  if (blocked_by !== null) parts.push(blocked_by)
  if (parked_segments > 0)
    parts.push('on the node, `inlet segments list` shows parked ones: `inlet segments retry`, or `export` and `discard`')
  if (quarantined_segments > 0)
    parts.push('on the node, `inlet segments list` shows quarantined ones: `inlet segments export` and `discard`')
  return parts.join(': ')
}
