import { AppError } from '#errors.ts'
import type { EndpointLag, Heartbeat, Register } from '#model/node-protocol.ts'
import { fromFlag, fromJson, fromTimeOrNull, toStorableText, toTime, toTimeOrNull } from './columns.ts'
import { translateErrors } from './database-error.ts'
import { storeLimits } from './limits.ts'
import type { Database } from './schema.ts'
import type { Db, Tx } from './store.ts'

/** The last heartbeat of one process of a node. */
export type ProcessFacts = {
  readonly applied_epoch: number
  readonly healthy: boolean
  readonly reasons: readonly string[]
  readonly last_seen_at: string
  /** Time of the last healthy heartbeat; null before the first. */
  readonly healthy_at: string | null
}

export type NodeFacts = {
  readonly id: string
  readonly region: string
  readonly ipv4: readonly string[]
  readonly ipv6: readonly string[]
  readonly ingest_address: string
  readonly registered_at: string
  /** Null before the first heartbeat. */
  readonly ingest: ProcessFacts | null
  readonly delivery: ProcessFacts | null
}

export type NodeLag = EndpointLag & { readonly node_id: string }

/** Registers a node, or updates its addresses. */
export async function registerNode(db: Db, node: Register, now: number): Promise<void> {
  const { node_id: id, region, ingest_address } = node
  const addresses = {
    region,
    ipv4: JSON.stringify(node.ipv4),
    ipv6: JSON.stringify(node.ipv6),
    ingest_address,
    registered_at: now,
  }
  await db
    .insertInto('nodes')
    .values({ id, ...addresses })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(addresses))
    .execute()
}

/** Replaces the last heartbeat of the process. Throws not_found for a node that never registered. */
export async function recordHeartbeat(db: Tx, heartbeat: Heartbeat, now: number): Promise<void> {
  const { node_id, process, applied_epoch, healthy, reasons } = heartbeat
  const facts = { applied_epoch, healthy: fromFlag(healthy), reasons: JSON.stringify(reasons), last_seen_at: now }
  const upsert = db
    .insertInto('node_processes')
    .values({ node_id, process, ...facts, healthy_at: healthy ? now : null })
    .onConflict((conflict) =>
      conflict.columns(['node_id', 'process']).doUpdateSet(healthy ? { ...facts, healthy_at: now } : facts),
    )
  await translateErrors(upsert.execute(), { reference: new AppError('not_found', 'the node is not registered') })
  if (heartbeat.process === 'delivery') await replaceLags(db, node_id, heartbeat.lag)
}

/** Returns the nodes of these regions with the last heartbeats of their processes. */
export async function listNodes(db: Db, regions: readonly string[]): Promise<readonly NodeFacts[]> {
  if (regions.length === 0) return []
  const nodes = await db.selectFrom('nodes').selectAll().where('region', 'in', regions).orderBy('id').execute()
  const processes = await db
    .selectFrom('node_processes')
    .innerJoin('nodes', 'nodes.id', 'node_processes.node_id')
    .selectAll('node_processes')
    .where('nodes.region', 'in', regions)
    .execute()
  const facts = new Map(processes.map((row) => [`${row.node_id} ${row.process}`, toProcessFacts(row)]))
  const factsOf = (id: string, process: Heartbeat['process']) => facts.get(`${id} ${process}`) ?? null
  return nodes.map((row) => ({
    id: row.id,
    region: row.region,
    ipv4: fromJson(row.ipv4),
    ipv6: fromJson(row.ipv6),
    ingest_address: row.ingest_address,
    registered_at: toTime(row.registered_at),
    ingest: factsOf(row.id, 'ingest'),
    delivery: factsOf(row.id, 'delivery'),
  }))
}

/** Returns the region of a node. Throws not_found for a node that never registered. */
export async function getNodeRegion(db: Db, id: string): Promise<string> {
  const row = await db.selectFrom('nodes').select('region').where('id', '=', id).executeTakeFirst()
  if (row === undefined) throw new AppError('not_found', 'the node is not registered')
  return row.region
}

/** Returns the delivery lag of these endpoints per node. An endpoint without a row has no lag. */
export async function listLags(db: Db, endpointIds: readonly string[]): Promise<readonly NodeLag[]> {
  const lags: NodeLag[] = []
  for (let start = 0; start < endpointIds.length; start += storeLimits.insertRowsMax) {
    const rows = await db
      .selectFrom('endpoint_lags')
      .selectAll()
      .where('endpoint_id', 'in', endpointIds.slice(start, start + storeLimits.insertRowsMax))
      .orderBy('endpoint_id')
      .orderBy('node_id')
      .execute()
    lags.push(...rows.map((row) => ({ ...row, oldest_sealed_at: toTimeOrNull(row.oldest_sealed_at) })))
  }
  return lags
}

/** Returns the lags of all accounts, for operators. */
export async function listAllLags(db: Db): Promise<readonly NodeLag[]> {
  const rows = await db.selectFrom('endpoint_lags').selectAll().orderBy('endpoint_id').orderBy('node_id').execute()
  return rows.map((row) => ({ ...row, oldest_sealed_at: toTimeOrNull(row.oldest_sealed_at) }))
}

/** Returns the lags that degrade an account's endpoints: blocked, or with a segment sealed before `sealedBefore` (epoch ms). */
export async function listDegradingLags(db: Db, account_id: string, sealedBefore: number): Promise<readonly NodeLag[]> {
  const rows = await db
    .selectFrom('endpoint_lags')
    .innerJoin('endpoints', 'endpoints.id', 'endpoint_lags.endpoint_id')
    .selectAll('endpoint_lags')
    .where('endpoints.account_id', '=', account_id)
    .where('endpoints.deleted_at', 'is', null)
    .where(({ eb, or }) => or([eb('blocked_by', 'is not', null), eb('oldest_sealed_at', '<', sealedBefore)]))
    .execute()
  return rows.map((row) => ({ ...row, oldest_sealed_at: toTimeOrNull(row.oldest_sealed_at) }))
}

async function replaceLags(db: Tx, node_id: string, lags: readonly EndpointLag[]): Promise<void> {
  await db.deleteFrom('endpoint_lags').where('node_id', '=', node_id).execute()
  const rows = new Map(lags.map((lag) => [lag.endpoint_id, toLagRow(node_id, lag)])).values().toArray()
  for (let start = 0; start < rows.length; start += storeLimits.insertRowsMax) {
    await db
      .insertInto('endpoint_lags')
      .values(rows.slice(start, start + storeLimits.insertRowsMax))
      .execute()
  }
}

function toLagRow(node_id: string, lag: EndpointLag): Database['endpoint_lags'] {
  return {
    node_id,
    endpoint_id: lag.endpoint_id,
    undelivered_segments: lag.undelivered_segments,
    undelivered_bytes: lag.undelivered_bytes,
    oldest_sealed_at: fromTimeOrNull(lag.oldest_sealed_at),
    blocked_by: lag.blocked_by === null ? null : toStorableText(lag.blocked_by),
  }
}

function toProcessFacts(row: Database['node_processes']): ProcessFacts {
  return {
    applied_epoch: row.applied_epoch,
    healthy: row.healthy === 1,
    reasons: fromJson(row.reasons),
    last_seen_at: toTime(row.last_seen_at),
    healthy_at: toTimeOrNull(row.healthy_at),
  }
}
