import type { z } from 'zod'
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { AssignableDestination } from '#model/destination.ts'
import type { Heartbeat, Register, Registered } from '#model/node-protocol.ts'
import { findDestinationTarget } from '#store/destinations.ts'
import { recordHeartbeat, registerNode } from '#store/nodes.ts'
import { type Store, transact } from '#store/store.ts'
import type { EpochFeed } from './epoch-feed.ts'

export type NodesOptions = { readonly store: Store; readonly feed: EpochFeed; readonly clock: Clock; readonly logger: Logger }

export type Nodes = ReturnType<typeof nodeService>

export function nodeService({ store, feed, clock, logger }: NodesOptions) {
  return {
    /** Does not need a new epoch: snapshots do not contain the addresses of nodes. */
    async register(node: Register): Promise<z.infer<typeof Registered>> {
      await registerNode(store.db, node, clock.now())
      logger.info({ node_id: node.node_id, region: node.region, ingest_address: node.ingest_address }, 'node registered')
      return { epoch: await feed.refresh() }
    },

    heartbeat(heartbeat: Heartbeat): Promise<void> {
      return transact(store, (db) => recordHeartbeat(db, heartbeat, clock.now()))
    },

    /** Throws not_found. */
    async getDestination(id: string): Promise<AssignableDestination> {
      const found = await findDestinationTarget(store.db, id)
      if (found === undefined) throw new AppError('not_found', 'no such destination')
      return found
    },
  }
}
