/** Says how long clients may still find a node by DNS that is about to stop. */
import type { Clock } from '#lib/clock.ts'
import { findLastRemoval, isAddressPublished } from '#store/naming/dns-records.ts'
import { listNodes, listNodesById } from '#store/nodes/nodes.ts'
import type { Store } from '#store/store.ts'
import { type ControlOutages, discountControlOutages } from '../outages.ts'
import { servingNodes } from '../serving-nodes.ts'
import type { DnsProvider } from './provider.ts'
import { addressesOf } from './wanted.ts'

/** Says how long clients may still find a node by DNS. */
export interface PublishedNodes {
  /** Returns the seconds until no client finds the node; null while a record still names it. 0 if it stays although the node leaves. */
  secondsUntilForgotten(node_id: string): Promise<number | null>
}

export type PublishedNodesOptions = {
  readonly store: Store
  readonly provider: Pick<DnsProvider, 'settleSeconds'>
  readonly outages: Pick<ControlOutages, 'recent'>
  readonly ttlSeconds: number
  readonly clock: Clock
}

export function publishedNodes({ store, provider, outages, ttlSeconds, clock }: PublishedNodesOptions): PublishedNodes {
  const lingerMs = (ttlSeconds + provider.settleSeconds) * 1000
  return {
    async secondsUntilForgotten(nodeId) {
      const [node] = await listNodesById(store.db, [nodeId])
      if (node === undefined) return 0
      const nowMs = clock.now()
      const { region } = node
      const nodes = (await listNodes(store.db, [region])).filter(({ id }) => id !== nodeId)
      const others = servingNodes({ since_epoch: Number.NEGATIVE_INFINITY }, discountControlOutages(nodes, outages.recent), nowMs)
      // Other nodes at the same address take over what arrives there.
      const kept = new Set(others.flatMap(addressesOf))
      const addresses = addressesOf(node).filter((address) => !kept.has(address))
      // Endpoints that no other node serves keep their addresses, however long this one waits.
      const epoch = Math.max(-1, ...others.map(({ ingest }) => ingest?.applied_epoch ?? -1))
      if (await isAddressPublished(store.db, { region, addresses, epoch })) return null
      const removedAt = await findLastRemoval(store.db, region, addresses)
      return removedAt === null ? 0 : Math.max(0, removedAt + lingerMs - nowMs) / 1000
    },
  }
}
