import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { LogOwner, Node, NodeLog, NodeProcess, NodeRemoval } from '#model/node.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { hasRecentHeartbeat } from '#naming/serving-nodes.ts'
import { revokeNodeCredential } from '#store/nodes/node-credentials.ts'
import { listNodeInventories, listNodeLogs } from '#store/nodes/node-inventory.ts'
import { planRemoval, releaseNodeId, removeNode } from '#store/nodes/node-removal.ts'
import { getNodeRegion, type ProcessFacts } from '#store/nodes/nodes.ts'
import { type Store, transact } from '#store/store.ts'

export type Inventory = ReturnType<typeof inventoryService>

export type InventoryOptions = { readonly store: Store; readonly clock: Clock; readonly logger: Logger }

/** The nodes and what they hold, over all accounts. Only for the operator. */
export function inventoryService({ store, clock, logger }: InventoryOptions) {
  return {
    async listNodes(page: PageQuery): Promise<Page<Node>> {
      const { items, ...rest } = await listNodeInventories(store.db, page)
      const nowMs = clock.now()
      const isWell = (process: ProcessFacts | null) => process?.healthy === true && hasRecentHeartbeat(process, nowMs)
      return {
        ...rest,
        items: items.map(({ ingest, delivery, ipv4, ipv6, ...node }) => ({
          ...node,
          ipv4: [...ipv4],
          ipv6: [...ipv6],
          healthy: isWell(ingest) && isWell(delivery),
          ingest: toNodeProcess(ingest),
          delivery: toNodeProcess(delivery),
        })),
      }
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

    /** Returns the losses that a release records. Throws not_found. */
    async revokeCredential(node_id: string, release: boolean): Promise<number> {
      const now = clock.now()
      const losses = await transact(store, async (db) => {
        if (release) return releaseNodeId(db, node_id, now)
        await revokeNodeCredential(db, node_id, false, now)
        return 0
      })
      logger.notice({ node_id, release, losses }, 'node credential revoked')
      return losses
    },
  }
}

function toNodeProcess(process: ProcessFacts | null): NodeProcess | null {
  if (process === null) return null
  const { healthy, reasons, applied_epoch, leaving, kept_position, last_seen_at } = process
  return { healthy, reasons: [...reasons], applied_epoch, leaving, kept_position, last_seen_at }
}
