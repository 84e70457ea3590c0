import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import { isUuid } from '#lib/uuid.ts'
import type { ChangeNode, LogOwner, Node, NodeLog, NodeProcess, NodeRemoval } from '#model/node.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { hasRecentHeartbeat } from '#naming/serving-nodes.ts'
import { revokeNodeCredential } from '#store/nodes/node-credentials.ts'
import { getNodeInventory, listNodeInventories, listNodeLogs, type NodeInventory } from '#store/nodes/node-inventory.ts'
import { findReleaseObstacle, planRemoval, releaseNodeId, removeNode } from '#store/nodes/node-removal.ts'
import { findNodeNamed, getNodeRegion, type ProcessFacts, renameNode } from '#store/nodes/nodes.ts'
import { type Store, transact } from '#store/store.ts'

export type Inventory = ReturnType<typeof inventoryService>

export type InventoryOptions = { readonly store: Store; readonly clock: Clock; readonly logger: Logger }

/** The nodes and what they hold, over all accounts. Only for the operator. */
export function inventoryService({ store, clock, logger }: InventoryOptions) {
  return {
    async listNodes(page: PageQuery): Promise<Page<Node>> {
      const { items, ...rest } = await listNodeInventories(store.db, page)
      const nowMs = clock.now()
      return { ...rest, items: items.map((node) => toNode(node, nowMs)) }
    },

    /** Throws not_found, and conflict if another node has the name. */
    async change(node_id: string, { name }: ChangeNode): Promise<Node> {
      const node = await transact(store, async (db) => {
        await renameNode(db, node_id, name)
        return getNodeInventory(db, node_id)
      })
      logger.info({ node_id, name }, 'node renamed')
      return toNode(node, clock.now())
    },

    /** Returns the id of the node that the text names. Throws not_found. */
    async findId(idOrName: string): Promise<string> {
      if (isUuid(idOrName)) return idOrName.toLowerCase()
      const id = await findNodeNamed(store.db, idOrName)
      if (id === undefined) throw new AppError('not_found', `no node has the name ${idOrName}`)
      return id
    },

    /** Throws not_found. */
    async listSegments(nodeId: string, page: PageQuery, owner: LogOwner | undefined): Promise<Page<NodeLog>> {
      await getNodeRegion(store.db, nodeId)
      return listNodeLogs(store.db, nodeId, page, owner)
    },

    /** Returns what the removal of a node abandons, and why it needs force. Throws not_found. */
    planRemoval(node_id: string): ReturnType<typeof planRemoval> {
      return planRemoval(store.db, node_id, clock.now())
    },

    /** Removes a node, and says what that abandons. Throws not_found, and conflict without `force` if it may abandon something. */
    async remove(node_id: string, force: boolean): Promise<NodeRemoval> {
      const removal = await transact(store, (db) => removeNode(db, node_id, force, clock.now()))
      const { logs, ...abandoned } = removal
      logger.notice({ force, ...abandoned }, 'node removed')
      return removal
    },

    /** Throws not_found. */
    async revokeCredential(node_id: string): Promise<void> {
      await transact(store, (db) => revokeNodeCredential(db, node_id, clock.now()))
      logger.notice({ node_id }, 'node credential revoked')
    },

    /** Returns why the release of an id needs force. */
    findReleaseObstacle(node_id: string): Promise<string | undefined> {
      return findReleaseObstacle(store.db, node_id, clock.now())
    },

    /** Returns the losses that a release records. Throws not_found, and conflict without `force` if the node runs. */
    async release(node_id: string, force: boolean): Promise<number> {
      const losses = await transact(store, (db) => releaseNodeId(db, node_id, force, clock.now()))
      logger.notice({ node_id, force, losses }, 'node id released')
      return losses
    },
  }
}

function toNode({ ingest, delivery, ipv4, ipv6, ...node }: NodeInventory, nowMs: number): Node {
  const isWell = (process: ProcessFacts | null) => process?.healthy === true && hasRecentHeartbeat(process, nowMs)
  return {
    ...node,
    ipv4: [...ipv4],
    ipv6: [...ipv6],
    healthy: isWell(ingest) && isWell(delivery),
    ingest: toNodeProcess(ingest),
    delivery: toNodeProcess(delivery),
  }
}

function toNodeProcess(process: ProcessFacts | null): NodeProcess | null {
  if (process === null) return null
  const { healthy, reasons, applied_epoch, leaving, kept_position, last_seen_at } = process
  return { healthy, reasons: [...reasons], applied_epoch, leaving, kept_position, last_seen_at }
}
