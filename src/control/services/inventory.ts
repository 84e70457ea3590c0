import type { Clock } from '#lib/clock.ts'
import type { LogOwner, Node, NodeLog, NodeProcess } from '#model/node.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { listNodeInventories, listNodeLogs } from '#store/node-inventory.ts'
import { getNodeRegion, type ProcessFacts } from '#store/nodes.ts'
import type { Store } from '#store/store.ts'
import { hasRecentHeartbeat } from '../provisioning/reports.ts'

export type Inventory = ReturnType<typeof inventoryService>

/** Reads what nodes hold, over all accounts. Only for the operator. */
export function inventoryService({ store, clock }: { readonly store: Store; readonly clock: Clock }) {
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
  }
}

function toNodeProcess(process: ProcessFacts | null): NodeProcess | null {
  if (process === null) return null
  const { healthy, reasons, applied_epoch, leaving, kept_position, last_seen_at } = process
  return { healthy, reasons: [...reasons], applied_epoch, leaving, kept_position, last_seen_at }
}
