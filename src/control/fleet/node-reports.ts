import type { z } from 'zod'
import { AppError } from '#errors.ts'
import { batchCalls } from '#lib/batch-calls.ts'
import type { AssignableDestination } from '#model/destination.ts'
import { nodeLimits } from '#model/limits.ts'
import type {
  Heartbeat,
  HeartbeatRecorded,
  KeyUseRecorded,
  KeyUseReport,
  LastHeartbeat,
  RecordedCommits,
  Register,
  Registered,
  SeriesRecorded,
  SeriesReport,
  UsageReport,
  UsageTotals,
} from '#model/node-protocol.ts'
import type { PublishedNodes } from '#naming/dns/published-nodes.ts'
import { recordUsage, sumUsage } from '#store/accounts/account-usage.ts'
import { listOwnKeys, recordKeyUse } from '#store/accounts/key-use.ts'
import { currentPosition } from '#store/cluster/epoch.ts'
import type { EpochFeed } from '#store/cluster/epoch-feed.ts'
import { listOwnAccounts } from '#store/cluster/node-scope.ts'
import { countRecordedCommits } from '#store/commits/commits.ts'
import { findFirstDelivery, findMissing, listMissingCommits, noteMissingCommits } from '#store/commits/missing-commits.ts'
import { findDestinationTarget } from '#store/endpoints/destinations.ts'
import {
  countHealthyNodes,
  findProcess,
  getNodeRegion,
  listNodesById,
  recordHeartbeat,
  registerNode,
} from '#store/nodes/nodes.ts'
import { isQuiet, recordQuietHeartbeats } from '#store/nodes/quiet-heartbeats.ts'
import { recordSeriesReport } from '#store/series/endpoint-series.ts'
import { type Tx, transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import type { DeliveryProcesses } from '../metrics/delivery-processes.ts'
import type { NodeIdentity } from './node-access.ts'

export type NodesOptions = Pick<ControlContext, 'store' | 'clock' | 'logger'> & {
  readonly feed: EpochFeed
  readonly deliveryProcesses: Pick<DeliveryProcesses, 'report'>
  /** Undefined if this installation manages no DNS. */
  readonly published?: PublishedNodes | undefined
}

export type Nodes = ReturnType<typeof nodeService>

export function nodeService({ store, feed, deliveryProcesses, published, clock, logger }: NodesOptions) {
  const recordQuiet = batchCalls((heartbeats: readonly Heartbeat[]) =>
    transact(store, (db) => recordQuietHeartbeats(db, heartbeats, clock.now())),
  )
  const record = async (heartbeat: Heartbeat): Promise<Compared> => {
    if (isQuiet(heartbeat) && (await recordQuiet(heartbeat)).has(heartbeat)) return {}
    return transact(store, async (db) => {
      const lost = await compareWith(db, heartbeat, clock.now())
      await recordHeartbeat(db, heartbeat, clock.now())
      return lost
    })
  }
  return {
    ...countReports({ store, clock }),

    /** Does not need a new epoch: snapshots do not contain the addresses of nodes. */
    async register({ id, region }: NodeIdentity, node: Register): Promise<z.infer<typeof Registered>> {
      if (node.region !== region)
        throw new AppError(
          'forbidden',
          `the credential of the node is for region ${region}: it has to join region ${node.region}`,
        )
      await registerNode(store.db, { node_id: id, ...node }, clock.now())
      logger.info({ node_id: id, region, ingest_address: node.ingest_address }, 'node registered')
      return { epoch: await feed.refresh() }
    },

    async heartbeat(heartbeat: Heartbeat): Promise<HeartbeatRecorded> {
      deliveryProcesses.report(heartbeat)
      const compared = await record(heartbeat)
      if (compared.noted !== undefined) logger.error({ node_id: heartbeat.node_id, ...compared.noted }, wentBack)
      const recorded = compared.recorded && { recorded: compared.recorded }
      if (published === undefined) return { may_stop_in_seconds: 0, time: clock.now(), ...recorded }
      const isLeaving = heartbeat.process === 'ingest' && heartbeat.leaving === true
      const may_stop_in_seconds = isLeaving ? await published.secondsUntilForgotten(heartbeat.node_id) : null
      return { may_stop_in_seconds, time: clock.now(), ...recorded }
    },

    async lastHeartbeat(node_id: string): Promise<LastHeartbeat> {
      const [node] = await listNodesById(store.db, [node_id])
      const times = [node?.ingest, node?.delivery].flatMap((process) =>
        process == null ? [] : [Date.parse(process.last_seen_at)],
      )
      const time = clock.now()
      return { seconds_ago: times.length === 0 ? null : Math.max(0, time - Math.max(...times)) / 1000, time }
    },

    /** Throws not_found, also for a destination of an account that never had an endpoint in the region of the node. */
    async getDestination(node: NodeIdentity, id: string): Promise<AssignableDestination> {
      const found = await findDestinationTarget(store.db, id)
      const isOwn = found !== undefined && (await listOwnAccounts(store.db, node.id, [found.account_id])).size > 0
      if (!isOwn) throw new AppError('not_found', 'no such destination')
      return found
    },
  }
}

/** Records what nodes report of their traffic. */
function countReports({ store, clock }: Pick<NodesOptions, 'store' | 'clock'>) {
  return {
    /**
     * Stores what a node accepted. Returns what all nodes accepted, and among how many a rate is divided. Leaves out accounts that never had
     * an endpoint in the region of the node. Throws not_found.
     */
    async reportUsage(reported: UsageReport): Promise<UsageTotals> {
      const now = clock.now()
      const { db } = store
      const ids = reported.accounts.map(({ account_id }) => account_id)
      const own = await listOwnAccounts(db, reported.node_id, ids)
      const report = { ...reported, accounts: reported.accounts.filter(({ account_id }) => own.has(account_id)) }
      const region = await getNodeRegion(db, report.node_id)
      if (report.accounts.length > 0) await transact(store, (db) => recordUsage(db, report, now))
      return {
        healthy_nodes: Math.max(1, await countHealthyNodes(store.db, region, now - nodeLimits.healthySeconds * 1000)),
        accounts: await sumUsage(store.db, report.accounts),
      }
    },

    async reportKeyUse({ node_id, keys }: KeyUseReport): Promise<KeyUseRecorded> {
      const own = await listOwnKeys(store.db, node_id, keys)
      if (own.length > 0) await transact(store, (db) => recordKeyUse(db, own, clock.now()))
      return { recorded: own.length }
    },

    /** Adds what a node accepted and refused to the series of its endpoints. */
    async reportSeries(report: SeriesReport): Promise<z.infer<typeof SeriesRecorded>> {
      await transact(store, (db) => recordSeriesReport(db, report, clock.now()))
      return { recorded: true }
    },
  }
}

const wentBack = 'the database went back to an older state: commits may be missing'
const remedy = 'inlet commits rebuild: docs/how-to/lost-database.md'
const ownRemedy = 'control records them again by itself'

type Compared = { readonly recorded?: RecordedCommits; readonly noted?: object }

/**
 * Compares what a node remembers of this database with what the database has. Call it before the heartbeat is recorded: the heartbeat before
 * is from the time to which the database went back. Each loss is noted once: from then on the node remembers the number in the answer.
 */
async function compareWith(db: Tx, heartbeat: Heartbeat, now: number): Promise<Compared> {
  const { node_id, process, kept_position } = heartbeat
  const told = heartbeat.process === 'delivery' ? heartbeat.recorded : undefined
  if (told === undefined && kept_position === undefined) return {}
  const position = await currentPosition(db)
  const before = await findProcess(db, node_id, process)
  const commits = await countRecordedCommits(db, node_id)
  const recorded = told === undefined ? undefined : { recorded: { database: position.database, commits } }
  const lost = told != null && told.database === position.database && told.commits > commits ? told.commits - commits : 0
  const beginsToRefuse = kept_position !== undefined && before?.isRefusing !== true
  if (lost === 0 && !beginsToRefuse) return recorded ?? {}
  const since = before?.last_seen_at ?? (await findFirstDelivery(db))
  const region = await getNodeRegion(db, node_id)
  // A node that refuses the configuration may be right about more than commits: an operator decides.
  await noteMissingCommits(db, region, since, now, { isAutomatic: kept_position === undefined })
  const isAutomatic = findMissing(await listMissingCommits(db), region)?.isAutomatic
  return {
    ...recorded,
    noted: {
      ...{ commits_lost: lost, since: new Date(since).toISOString(), kept: kept_position, database: position },
      remedy: isAutomatic ? ownRemedy : remedy,
    },
  }
}
