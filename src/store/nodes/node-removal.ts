/**
 * Removal of a node by the operator.
 *
 * Owns: what that abandons, and which nodes are removed only by force. Does not own: to whom the id belongs afterwards
 * (node-credentials.ts).
 * Law: nothing that was delivered is forgotten, and nothing that was lost (commits/losses.ts). Commits stay, and so do the highest seqs: a node
 * that comes back joins again, delivers what it still holds, and continues its log above all that it may have used.
 */
import { AppError } from '#errors.ts'
import { isoTimestamp } from '#lib/clock.ts'
import { countNoun } from '#lib/count-noun.ts'
import { nodeLimits } from '#model/limits.ts'
import type { NodeRemoval } from '#model/node.ts'
import { skipSeqs } from '../commits/commits.ts'
import { recordLosses } from '../commits/losses.ts'
import type { Db, Tx } from '../store.ts'
import { deleteNode, findNodeCredential, releaseNodeCredential } from './node-credentials.ts'
import { listHeldLogs, sumNodeSegments } from './node-inventory.ts'
import { forgetLags } from './node-reports.ts'
import { listNodesById, lockNode, type NodeFacts } from './nodes.ts'
import { forgetTakeOver } from './take-overs.ts'

export type PlannedRemoval = {
  readonly removal: NodeRemoval
  /** Why the node is removed only by force; undefined if nothing is known to be lost. */
  readonly obstacle: string | undefined
}

/** Says what the removal of a node would abandon. Throws not_found. */
export async function planRemoval(db: Db, id: string, now: number): Promise<PlannedRemoval> {
  const [node] = await listNodesById(db, [id])
  if (node === undefined) throw new AppError('not_found', 'there is no such node')
  const segments = await sumNodeSegments(db, id)
  const { items: logs, total: endpoints } = await listHeldLogs(db, id, { limit: nodeLimits.removedLogsMax, offset: 0 })
  const reported_at = node.delivery?.counted_at ?? node.delivery?.last_seen_at ?? null
  const removal = {
    node_id: id,
    region: node.region,
    reported_at,
    segments,
    endpoints,
    logs,
    losses: 0,
    note: describeTrust(node, reported_at, now),
  }
  return { removal, obstacle: findObstacle(node, removal, now) }
}

/** Removes a node with its credential and everything that it reported. Throws not_found, and conflict if there is an obstacle. */
export async function removeNode(db: Tx, id: string, force: boolean, now: number): Promise<NodeRemoval> {
  await lockNode(db, id)
  const { removal, obstacle } = await planRemoval(db, id, now)
  if (obstacle !== undefined && !force) throw new AppError('conflict', obstacle)
  const { credential_hash = null } = (await findNodeCredential(db, id)) ?? {}
  const losses = await recordLosses(db, id, { cause: 'node_removed', credential_hash }, now)
  await deleteNode(db, id, now)
  await forgetTakeOver(db, id)
  return { ...removal, losses }
}

/**
 * Gives the id of a node up, because its disk is lost: any node may register under it. What the disk held is a loss, and its seqs are not used
 * again: a receipt must not name two segments. Throws not_found, and conflict for a node that runs, without `force`.
 */
export async function releaseNodeId(db: Tx, id: string, force: boolean, now: number): Promise<number> {
  await lockNode(db, id)
  const obstacle = await findReleaseObstacle(db, id, now)
  if (obstacle !== undefined && !force) throw new AppError('conflict', obstacle)
  const { credential_hash = null } = (await findNodeCredential(db, id)) ?? {}
  const losses = await recordLosses(db, id, { cause: 'node_released', credential_hash }, now)
  await skipSeqs(db, id)
  await forgetLags(db, id)
  await releaseNodeCredential(db, id, now)
  await forgetTakeOver(db, id)
  return losses
}

/** Says why an id is released only by force; undefined if it may be, or there is no such node. */
export async function findReleaseObstacle(db: Db, id: string, now: number): Promise<string | undefined> {
  const [node] = await listNodesById(db, [id])
  const seenAt = node && lastSeenAt(node)
  if (node === undefined || seenAt === undefined || !isRunning(node, now)) return undefined
  return `the node runs: its last heartbeat was at ${seenAt}, and it stops for good once its id is released; release the id only if its disk, or its credential, is lost; if it has just stopped, repeat this after ${silentAt(seenAt)}`
}

function findObstacle(node: NodeFacts, { segments, endpoints, reported_at }: NodeRemoval, now: number): string | undefined {
  const seenAt = lastSeenAt(node)
  if (seenAt !== undefined && isRunning(node, now)) {
    return `the node runs: its last heartbeat was at ${seenAt}; stop it first; if it has just stopped, or its adoption has just ended, repeat this after ${silentAt(seenAt)}`
  }
  if (endpoints > 0) {
    const count = segments.open_segments + segments.sealed_segments + segments.parked_segments + segments.quarantined_segments
    const what = count === 0 ? 'logs that it could not list' : `${countNoun(count, 'segment')} (${segments.bytes} bytes)`
    const held = `${what} of ${endpoints === 1 ? '1 endpoint' : `${endpoints} endpoints`}`
    return `the removal would abandon ${held}, which the node reported at ${reported_at}; start it again, or deliver its disk on another machine (inlet node --adopt DIR)`
  }
  // One that sent no heartbeat at all never accepted anything.
  if (reported_at === null && seenAt !== undefined)
    return 'delivery of the node never reported what its disk holds; start it again'
  return undefined
}

function describeTrust(node: NodeFacts, reported_at: string | null, now: number): string {
  const seenAt = lastSeenAt(node)
  if (seenAt === undefined) return 'the node has never sent a heartbeat'
  if (isRunning(node, now))
    return 'the node runs, so what it holds changes; if it has a join token or the join secret, it joins again'
  const since = reported_at === null ? 'all that it acknowledged' : `what it acknowledged after ${reported_at}`
  return `the node is silent since ${seenAt}: ${since} is not counted, and lost with its disk`
}

function isRunning(node: NodeFacts, now: number): boolean {
  const seenAt = lastSeenAt(node)
  return seenAt !== undefined && now - Date.parse(seenAt) <= nodeLimits.healthySeconds * 1000
}

function silentAt(seenAt: string): string {
  return isoTimestamp(Date.parse(seenAt) + nodeLimits.healthySeconds * 1000)
}

/** Times in ISO 8601 sort as text. */
function lastSeenAt({ ingest, delivery }: NodeFacts): string | undefined {
  return [ingest, delivery]
    .flatMap((process) => process?.last_seen_at ?? [])
    .toSorted()
    .at(-1)
}
