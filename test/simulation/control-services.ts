/** The services of control for nodes, composed as production does, on a database in memory. */
import { Registry } from 'prom-client'
import { rebuildRegion } from '#cli/commits/rebuild-region.ts'
import { searchEndpoint } from '#cli/commits/search-endpoint.ts'
import { JobLeases } from '#control/fleet/job-leases.ts'
import { leftOnDiskService } from '#control/fleet/left-on-disk.ts'
import { nodeAccess } from '#control/fleet/node-access.ts'
import { nodeService } from '#control/fleet/node-reports.ts'
import { reportedCommits } from '#control/fleet/reported-commits.ts'
import { scrubService } from '#control/fleet/scrubs.ts'
import { Snapshots } from '#control/fleet/snapshots.ts'
import { takeOverService } from '#control/fleet/take-overs.ts'
import { DeliveredMetrics } from '#control/metrics/delivered-metrics.ts'
import { DeliveryProcesses } from '#control/metrics/delivery-processes.ts'
import { jobService } from '#control/resources/jobs.ts'
import { receiptService } from '#control/resources/receipts.ts'
import { createLossSearch } from '#control/upkeep/losses-in-buckets.ts'
import { createCommitRecovery } from '#control/upkeep/lost-commits.ts'
import type { Clock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { currentEpoch } from '#store/cluster/epoch.ts'
import { EpochFeed } from '#store/cluster/epoch-feed.ts'
import { createLeadership } from '#store/cluster/leadership.ts'
import type { Store } from '#store/store.ts'
import { keyring } from '../support/keyring.ts'

const logger = createLogger('simulated control', 'silent')
const keptMs = 365 * 86_400_000

export type ControlServices = ReturnType<typeof composeServices>

/** `stores` are the buckets as control reads them. */
export function composeServices(store: Store, clock: Clock, stores: ObjectStores, takeOverAfterMs: number | null) {
  const feed = new EpochFeed({ readEpoch: () => currentEpoch(store.db), clock, logger })
  const delivered = new DeliveredMetrics(new Registry(), { byView: false, clock })
  const access = nodeAccess({ store, joinSecret: 'unused', registry: new Registry(), clock, logger })
  const register = { ipv4: [], ipv6: [], ingest_address: '127.0.0.1:8081' }
  const reading = { store, stores, clock, keptMs, logger }
  const newLeadership = () => createLeadership(store, { clock, logger })
  return {
    ...{ store, feed, access },
    nodes: nodeService({ store, feed, deliveryProcesses: new DeliveryProcesses(new Registry(), clock), clock, logger }),
    snapshots: new Snapshots({
      ...{ store, feed, readPublicKeys: async () => ({ keys: [] }), keyring, clock },
      ...{ issuer: 'http://control.test', baseDomain: null },
    }),
    commits: reportedCommits({ store, clock, delivered }),
    receipts: receiptService({ store }),
    jobs: jobService({ store, clock }),
    takeOvers: takeOverService({ store, clock, logger, afterMs: takeOverAfterMs }),
    leftOnDisks: leftOnDiskService({ store, clock, logger }),
    jobLeases: new JobLeases({ store, keyring, clock, logger, delivered }),
    scrubs: scrubService({ store, keptMs, clock }),
    upkeep: [
      createCommitRecovery({ ...reading, rebuild: rebuildRegion, leadership: newLeadership() }),
      createLossSearch({ ...reading, search: searchEndpoint, leadership: newLeadership() }),
    ],
    /** Lets a node have its id, as its first start does. */
    join: (node_id: string, secret: string) =>
      access.join({ token_id: null }, { node_id, region: 'loc', secret, previous_secret: null, ...register }),
  }
}
