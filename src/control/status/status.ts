/**
 * The status of an endpoint, computed from facts at each read.
 *
 * Owns: the rules. Does not own: the facts.
 */
import { isoTimestamp } from '#lib/clock.ts'
import { countNoun } from '#lib/count-noun.ts'
import { namedId } from '#lib/named-id.ts'
import type { DestinationStatus } from '#model/destination.ts'
import { describeEmptyRegion } from '#model/empty-region.ts'
import { copiesDefault, type EndpointStatus } from '#model/endpoint.ts'
import { nodeLimits } from '#model/limits.ts'
import { describeLost, isSingular } from '#model/lost-records.ts'
import { judgeNaming, listOrderReasons, type NamingFacts, needsNaming } from '#naming/checks/naming.ts'
import { hasRecentHeartbeat, servingNodes } from '#naming/serving-nodes.ts'
import type { OpenLoss } from '#store/commits/losses.ts'
import type { Missing } from '#store/commits/missing-commits.ts'
import type { EndpointFacts } from '#store/endpoints/endpoints.ts'
import type { NodeBlockedLog, NodeLag } from '#store/nodes/node-reports.ts'
import type { NodeFacts } from '#store/nodes/nodes.ts'
import { deliveryLagSecondsMax, nodeFailedSeconds, nodeGoneSeconds, provisioningSeconds } from '../limits.ts'
import { describeSegments, holdsSegments } from './reports.ts'

/** Nodes that a status lists by themselves. */
const nodeReasonsMax = 20
/** Losses that a status lists by themselves. */
const lossReasonsMax = 5

export type ComputedStatus = { readonly status: EndpointStatus; readonly reasons: readonly string[] }

/** Reports of nodes about one endpoint, and the checks of its name. */
export type Reports = {
  readonly lags: readonly NodeLag[]
  /** Logs that ingest cannot append to, or that wait for a file it cannot recover: the reason says which. */
  readonly blocked: readonly NodeBlockedLog[]
  /** Causes of a full disk by node id, in words for the owner of the endpoint. */
  readonly diskCauses: ReadonlyMap<string, string>
  readonly naming: NamingFacts
  /** Regions that have nodes, for an endpoint whose region has none. */
  readonly otherRegions: readonly string[]
  /** Commits that may be missing in the database; undefined if it has all. */
  readonly missingCommits?: Missing | undefined
  /** Losses that are neither recovered nor confirmed. */
  readonly losses?: readonly OpenLoss[]
}

export function computeStatus(
  endpoint: Omit<EndpointFacts, 'id'>,
  nodes: readonly NodeFacts[],
  { lags, blocked, diskCauses, naming: namingFacts, otherRegions, missingCommits, losses = [] }: Reports,
  nowMs: number,
): ComputedStatus {
  const blockedReasons = blocked
    .filter(({ node_id }) => nodes.some(({ id }) => id === node_id))
    .map(({ node_id, node_name, reason }) => `node ${namedId(node_id, node_name)}: ${reason}`)
  if (endpoint.desired_state === 'draining')
    return { status: 'draining', reasons: ['the endpoint is being deleted', ...blockedReasons] }
  const waiting = new Set(lags.flatMap((lag) => listLagReasons(lag, nowMs)))
  const held = [...blockedReasons, ...waiting, ...listLossReasons(losses, missingCommits)]
  if (endpoint.account_suspended)
    return { status: 'paused', reasons: ['the account is suspended: ask the operator of this installation', ...held] }
  if (endpoint.desired_state === 'paused') return { status: 'paused', reasons: ['the endpoint is paused', ...held] }
  const serving = servingNodes(endpoint, nodes, nowMs)
  const accepting = new Set(serving)
  const missing = listNodeReasons(
    nodes.filter((node) => !accepting.has(node)),
    (node) => explainNode(node, diskCauses.get(node.id), nowMs),
  )
  if (serving.length === 0) {
    const reasons = nodes.length === 0 ? [describeEmptyRegion(endpoint.region, otherRegions)] : missing
    return {
      status: statusWithoutServingNode(endpoint, nodes, namingFacts, nowMs),
      reasons: [...reasons, ...listOrderReasons(namingFacts.failedOrder), ...listMissingReasons(missingCommits), ...held],
    }
  }
  const naming = judgeNaming(serving, namingFacts, nowMs)
  const reasons = [
    ...missing,
    ...naming.reasons,
    ...listDestinationReasons(endpoint.destination_status),
    ...serving.flatMap((node) => listCopyReasons(endpoint, node)),
    ...serving.flatMap((node) => listDeliveryReasons(node, nowMs)),
    ...listMissingReasons(missingCommits),
    ...held,
  ]
  if (reasons.length === 0) return { status: 'active', reasons }
  const isProvisioned = naming.isProvisioned || endpoint.provisioned_at !== null
  return { status: isProvisioned ? 'degraded' : statusOfNew(endpoint, nowMs), reasons }
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
  naming: NamingFacts,
  nowMs: number,
): EndpointStatus {
  const { created_at, provisioned_at, since_epoch } = endpoint
  // A node that was not healthy since the endpoint exists has not served it, even if it knows it.
  const hasServed = ({ ingest }: NodeFacts) =>
    ingest?.healthy_at != null && ingest.healthy_at >= created_at && ingest.applied_epoch >= since_epoch
  const wasServed = provisioned_at !== null || (nodes.some(hasServed) && !needsNaming(naming, nodes))
  if (!wasServed) return statusOfNew(endpoint, nowMs)
  const healthyMs = nodes.flatMap(({ ingest }) => (ingest?.healthy_at == null ? [] : [Date.parse(ingest.healthy_at)]))
  return nowMs - Math.max(Date.parse(created_at), ...healthyMs) > nodeFailedSeconds * 1000 ? 'failed' : 'degraded'
}

/** The status of an endpoint that was never served under its name. */
function statusOfNew({ created_at }: Omit<EndpointFacts, 'id'>, nowMs: number): EndpointStatus {
  return nowMs - Date.parse(created_at) > provisioningSeconds * 1000 ? 'failed' : 'deploying'
}

/** Lists so many one by one. A region may have hundreds of nodes, and a page two hundred endpoints. */
function listNodeReasons(nodes: readonly NodeFacts[], explain: (node: NodeFacts) => string): readonly string[] {
  const reasons = nodes.slice(0, nodeReasonsMax).map(explain)
  const more = nodes.length - nodeReasonsMax
  if (more <= 0) return reasons
  return [...reasons, more === 1 ? '1 more node does not serve the endpoint' : `${more} more nodes do not serve the endpoint`]
}

function explainNode(facts: NodeFacts, diskCause: string | undefined, nowMs: number): string {
  const { id, name, credential, ingest } = facts
  const node = `node ${namedId(id, name)}`
  if (credential === 'revoked') return `the credential of ${node} is revoked`
  if (credential === 'none') return `the id of ${node} was released, and no node has joined with it since`
  if (ingest === null || !hasRecentHeartbeat(ingest, nowMs))
    return ingest?.leaving === true && !hasJustRegistered(facts, nowMs)
      ? `${node} was shut down at ${ingest.heard_at}`
      : explainSilence(node, facts, nowMs)
  if (!ingest.healthy) {
    const cause = diskCause === undefined ? [] : [diskCause]
    return `${node} is not healthy${formatReasons([...ingest.reasons, ...cause])}`
  }
  if (ingest.leaving) return `${node} is shutting down`
  if (ingest.kept_position !== null)
    return `${node} keeps its configuration of epoch ${ingest.kept_position.epoch}: the database of control is an older copy or another one, which the operator has to replace or accept`
  return `${node} does not know the endpoint yet`
}

function explainSilence(who: string, node: NodeFacts, nowMs: number): string {
  return hasJustRegistered(node, nowMs)
    ? `${who} has not sent a heartbeat since the node registered at ${node.registered_at}`
    : `${who} has not sent a heartbeat for ${nodeLimits.healthySeconds} s`
}

/** A node has as long for its first heartbeat as for each later one. */
function hasJustRegistered({ registered_at }: NodeFacts, nowMs: number): boolean {
  return nowMs - Date.parse(registered_at) <= nodeLimits.healthySeconds * 1000
}

function listLossReasons(losses: readonly OpenLoss[], missing: Missing | undefined): readonly string[] {
  const reasons = losses.slice(0, lossReasonsMax).map((loss) => {
    const { id, node_id, node_name, first_seq } = loss
    const from = first_seq === null ? '' : `, from segment ${first_seq} on`
    const what = describeLost(loss, ` of node ${namedId(node_id, node_name)}${from}`)
    return `${what}, ${describeLoss(loss, doubtOf(loss, missing))} (inlet losses confirm ${id})`
  })
  const more = losses.length - lossReasonsMax
  return more <= 0 ? reasons : [...reasons, more === 1 ? '1 more loss is not confirmed' : `${more} more losses are not confirmed`]
}

function describeLoss(loss: OpenLoss, doubt: string | undefined): string {
  const { cause, recorded_at, is_node_back, records } = loss
  const isOne = isSingular(loss)
  if (cause === 'left_on_disk') return describeLeft(isOne ? 'is' : 'are', doubt)
  const returned =
    cause === 'node_taken_over' ? 'that node delivers what has copies' : 'the node is back, and delivers what it still has'
  const advice = is_node_back
    ? `${returned}${records === null ? '; what is in quarantine needs a person (docs/operations.md)' : ''}`
    : 'bring its disk back (inlet node --adopt DIR --join-token TOKEN)'
  const when = {
    node_removed: 'it was removed',
    node_released: 'its id was released',
    node_adopted: 'another machine adopted its log',
    node_taken_over: 'another node took over its copies',
  }[cause]
  const what = `${isOne ? 'was' : 'were'} not delivered when ${when} at ${recorded_at}`
  if (doubt === undefined) return `${what}: ${advice}, or confirm the loss`
  return `${what}, and may be in the bucket already: ${doubt}; ${advice}; confirm the loss only after that`
}

/** Returns why a loss may be in the bucket; undefined once control has read the markers since. */
function doubtOf({ is_searched, search_problem }: OpenLoss, missing: Missing | undefined): string | undefined {
  if (missing?.isAutomatic === false) return 'the operator has to run inlet commits rebuild'
  if (search_problem !== null) return is_searched ? search_problem : `${search_problem}; control tries again`
  return missing === undefined && is_searched ? undefined : 'control is reading the markers'
}

/** The machine does not know which of its commits control lacks. */
function describeLeft(are: string, doubt: string | undefined): string {
  const machine = 'of a machine that lost its place to another one'
  if (doubt === undefined)
    return `${are} only on the disk ${machine}: bring in what is there (docs/fencing.md), or confirm the loss`
  return `${are} on the disk ${machine}, and may be in the bucket already: ${doubt}; confirm the loss only after that`
}

function listMissingReasons(missing: Missing | undefined): readonly string[] {
  if (missing === undefined) return []
  const what = `commits since ${isoTimestamp(missing.since)} may be missing in lists, counters and queries`
  return [
    missing.isAutomatic
      ? `${what}: nodes may have delivered more than the database has, and control records it from the buckets; if it takes long, the operator has to run inlet commits rebuild`
      : `${what}: the database went back to an older state, and the operator has to run inlet commits rebuild`,
  ]
}

function listDestinationReasons(status: DestinationStatus | null): readonly string[] {
  if (status === null) return ['no destination is bound: data is kept on the nodes']
  return status === 'valid' ? [] : ['the destination is not validated']
}

/** A node that knows of copies says so itself if it has no copy store. */
function listCopyReasons({ copies }: Pick<EndpointFacts, 'copies'>, { id, name, ingest }: NodeFacts): readonly string[] {
  if ((copies ?? copiesDefault) === copiesDefault || ingest === null || ingest.has_copy_store) return []
  return [`node ${namedId(id, name)} has no copy store: set INLET_COPY_URL on it, or copies of the endpoint to 1`]
}

function listDeliveryReasons(node: NodeFacts, nowMs: number): readonly string[] {
  const { id, name, delivery } = node
  const who = `delivery of node ${namedId(id, name)}`
  if (delivery === null || !hasRecentHeartbeat(delivery, nowMs)) return [explainSilence(who, node, nowMs)]
  return delivery.healthy ? [] : [`${who} is not healthy${formatReasons(delivery.reasons)}`]
}

function listLagReasons(lag: NodeLag, nowMs: number): readonly string[] {
  const { reported_at } = lag
  if (nowMs - Date.parse(reported_at) > nodeGoneSeconds * 1000)
    return holdsSegments(lag) ? [`${nodeOf(lag)} last reported ${describeSegments(lag)} at ${reported_at}: start it again`] : []
  return [...listWaitReasons(lag, nowMs), ...listScrubReasons(lag)]
}

function listScrubReasons(lag: NodeLag): readonly string[] {
  const { scrub_findings, scrub_finding } = lag
  if (scrub_findings === 0) return []
  return [
    `the scrub found ${countNoun(scrub_findings, 'damaged file')}: ${scrub_finding ?? ''}; inlet scrub on ${nodeOf(lag)} lists all and says what to do`,
  ]
}

function listWaitReasons(lag: NodeLag, nowMs: number): readonly string[] {
  const { oldest_sealed_at, blocked_by } = lag
  if (blocked_by !== null) return [blocked_by]
  if (lag.parked_segments + lag.quarantined_segments > 0) return [`${nodeOf(lag)} holds ${describeSegments(lag)}`]
  const lagMs = oldest_sealed_at === null ? 0 : nowMs - Date.parse(oldest_sealed_at)
  return lagMs <= deliveryLagSecondsMax * 1000 ? [] : [`delivery of ${nodeOf(lag)} is ${Math.round(lagMs / 1000)} s behind`]
}

function nodeOf({ node_id, node_name }: NodeLag): string {
  return `node ${namedId(node_id, node_name)}`
}

function formatReasons(reasons: readonly string[]): string {
  return reasons.length === 0 ? '' : `: ${reasons.join('; ')}`
}
