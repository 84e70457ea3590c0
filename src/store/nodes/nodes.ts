import { type RawBuilder, type SelectQueryBuilder, type SqlBool, sql } from 'kysely'
import { AppError } from '#errors.ts'
import type { DatabasePosition } from '#model/database-position.ts'
import type { CredentialState } from '#model/node.ts'
import { type Heartbeat, hasReadDisk, type Register } from '#model/node-protocol.ts'
import { inChunks } from '../chunks.ts'
import { fromFlag, fromJson, fromJsonOrNull, toTime, toTimeOrNull } from '../columns.ts'
import { translateErrors } from '../engines/database-error.ts'
import { countRows } from '../page.ts'
import type { Database } from '../schema.ts'
import type { Db, Store, Tx } from '../store.ts'
import { changeLags, replaceBlockedLogs, replaceLags } from './node-reports.ts'

/** The last heartbeat of one process of a node. */
export type ProcessFacts = {
  readonly applied_epoch: number
  readonly healthy: boolean
  readonly reasons: readonly string[]
  /** Only of ingest: not healthy for want of room on the disk. */
  readonly disk_full: boolean
  /** Only of ingest: it was asked to stop, and gets no new clients. */
  readonly leaving: boolean
  /** Only of ingest: it may acknowledge for endpoints with two copies. */
  readonly has_copy_store: boolean
  /** The configuration that it keeps, because it refuses that of this database; null if it does not. */
  readonly kept_position: DatabasePosition | null
  /** Its silence is counted from here: outages of control move it (naming/outages.ts). */
  readonly last_seen_at: string
  /** The time of that heartbeat, which nothing moves. */
  readonly heard_at: string
  /** Only of delivery: as of when its report of the logs is; null if it does not say. */
  readonly counted_at: string | null
  /** Time of the last healthy heartbeat; null before the first. */
  readonly healthy_at: string | null
}

type NodeIds = readonly string[] | SelectQueryBuilder<Database, 'nodes', { id: string }>

export type NodeFacts = {
  readonly id: string
  readonly name: string | null
  readonly region: string
  readonly ipv4: readonly string[]
  readonly ipv6: readonly string[]
  readonly ingest_address: string
  /** Ports where clients find TLS. */
  readonly tls_ports: readonly number[]
  readonly registered_at: string
  readonly credential: CredentialState
  /** Null before the first heartbeat. */
  readonly ingest: ProcessFacts | null
  readonly delivery: ProcessFacts | null
}

/** Registers a node, or updates its addresses. */
export async function registerNode(db: Db, node: Register & { readonly node_id: string }, now: number): Promise<void> {
  const { node_id: id, region, ingest_address } = node
  const addresses = {
    region,
    ipv4: JSON.stringify(node.ipv4),
    ipv6: JSON.stringify(node.ipv6),
    ingest_address,
    tls_ports: JSON.stringify(node.tls_ports ?? []),
    registered_at: now,
    version: node.version ?? null,
  }
  await db
    .insertInto('nodes')
    .values({ id, ...addresses })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(addresses))
    .execute()
}

/**
 * Makes other changes of who has the place of the node wait until the transaction ends: a removal beside this one would record the same losses. An
 * update that changes nothing: SQLite has no `for update`.
 */
export async function lockNode(db: Tx, id: string): Promise<void> {
  await db
    .updateTable('nodes')
    .set(({ ref }) => ({ region: ref('region') }))
    .where('id', '=', id)
    .execute()
}

const unknownBase = new AppError(
  'conflict',
  'the report of the logs builds on one that this database does not have: report all logs',
)

const overtaken = new AppError('conflict', 'a later heartbeat of the process is recorded: this one was held up on its way')

/**
 * Replaces the last heartbeat of the process. Throws not_found for a node that never registered, and conflict for one that is older than the
 * last, or whose logs build on a report that is not the last one of this database.
 */
export async function recordHeartbeat(db: Tx, heartbeat: Heartbeat, now: number): Promise<void> {
  const { node_id, process, healthy } = heartbeat
  const order = orderOf(heartbeat)
  const facts = { ...factsOf(heartbeat, now), ...order }
  const inOrder = isNotOlder(order.run, order.number)
  if (heartbeat.process === 'delivery' && heartbeat.lag_base !== undefined) {
    const updated = await db
      .updateTable('node_processes')
      .set(healthy ? { ...facts, healthy_at: now } : facts)
      .where(({ and }) => and({ node_id, process }))
      .where('lag_version', '=', heartbeat.lag_base)
      .where(inOrder)
      .returning('node_id')
      .executeTakeFirst()
    if (updated === undefined) throw unknownBase
    return changeLags(db, node_id, { lags: heartbeat.lag, gone: heartbeat.lag_gone ?? [] }, now)
  }
  const upsert = db
    .insertInto('node_processes')
    .values({ node_id, process, ...facts, healthy_at: healthy ? now : null })
    .onConflict((conflict) =>
      conflict
        .columns(['node_id', 'process'])
        .doUpdateSet(healthy ? { ...facts, healthy_at: now } : facts)
        .where(inOrder),
    )
    .returning('node_id')
  const reference = new AppError('not_found', 'the node is not registered')
  if ((await translateErrors(upsert.execute(), { reference })).length === 0) throw overtaken
  if (!hasReadDisk(heartbeat)) return
  if (heartbeat.process === 'delivery') return replaceLags(db, node_id, heartbeat.lag, now)
  const { blocked, disk } = heartbeat
  if (disk !== undefined) {
    const space = { disk_free_bytes: disk.free_bytes, disk_total_bytes: disk.total_bytes }
    await db.updateTable('nodes').set(space).where('id', '=', node_id).execute()
  }
  await replaceBlockedLogs(db, node_id, blocked)
}

/** Returns the columns that a heartbeat says, without its order. */
export function factsOf(heartbeat: Heartbeat, now: number) {
  const { applied_epoch, healthy, reasons } = heartbeat
  const disk_full = fromFlag(heartbeat.process === 'ingest' && heartbeat.disk_full)
  const leaving = fromFlag(heartbeat.process === 'ingest' && heartbeat.leaving === true)
  const copy_store = fromFlag(heartbeat.process === 'ingest' && heartbeat.copy_store === true)
  const lag_version = heartbeat.process === 'delivery' ? (heartbeat.lag_version ?? null) : null
  const known = { applied_epoch, healthy: fromFlag(healthy), reasons: JSON.stringify(reasons), disk_full, leaving, copy_store }
  const kept_position = heartbeat.kept_position === undefined ? null : JSON.stringify(heartbeat.kept_position)
  const facts = { ...known, kept_position, last_seen_at: now, lag_version }
  if (heartbeat.process !== 'delivery' || !hasReadDisk(heartbeat)) return facts
  const { counted_at } = heartbeat
  return { ...facts, counted_at: counted_at === undefined ? null : Math.min(counted_at, now) }
}

/** Returns which heartbeat of which run of the process it is; nulls if the node does not say. */
export function orderOf({ order }: Heartbeat): Pick<Database['node_processes'], 'run' | 'number'> {
  return { run: order?.run ?? null, number: order?.number ?? null }
}

/**
 * Whether the recorded heartbeat of a process is not later than this one. Those of a cut connection can arrive when the process has ended: they
 * would prove that it lives. Those of different runs cannot be compared.
 */
export function isNotOlder(run: unknown, number: unknown): RawBuilder<SqlBool> {
  return sql`(node_processes.number is null or node_processes.run is distinct from ${run} or node_processes.number <= ${number})`
}

/** Returns the nodes of these regions with the last heartbeats of their processes. */
export async function listNodes(db: Db, regions: readonly string[]): Promise<readonly NodeFacts[]> {
  if (regions.length === 0) return []
  return readNodes(db, db.selectFrom('nodes').select('id').where('region', 'in', regions))
}

/** Returns the nodes of all regions where clients find TLS. */
export async function listTlsNodes(db: Db): Promise<readonly NodeFacts[]> {
  return readNodes(db, db.selectFrom('nodes').select('id').where('tls_ports', '!=', '[]'))
}

/** Returns the time of the newest heartbeat (epoch ms); null before the first. */
export async function newestHeartbeat(db: Db): Promise<number | null> {
  const { at } = await db
    .selectFrom('node_processes')
    .select(({ fn }) => fn.max('last_seen_at').as('at'))
    .executeTakeFirstOrThrow()
  return at
}

/** Returns the time of the last heartbeat of a process (epoch ms), and whether it kept its configuration. */
export async function findProcess(
  db: Db,
  node_id: string,
  process: Heartbeat['process'],
): Promise<{ readonly last_seen_at: number; readonly isRefusing: boolean } | undefined> {
  const row = await db
    .selectFrom('node_processes')
    .select(['last_seen_at', 'kept_position'])
    .where(({ and }) => and({ node_id, process }))
    .executeTakeFirst()
  return row && { last_seen_at: row.last_seen_at, isRefusing: row.kept_position !== null }
}

export type ProcessState = {
  readonly node_id: string
  readonly healthy: boolean
  readonly leaving: boolean
  /** Whether it refuses the configuration of this database. */
  readonly isRefusing: boolean
  /** Epoch ms. */
  readonly last_seen_at: number
}

/** Returns the processes of all nodes that had a heartbeat since then (epoch ms). */
export async function listProcessStates(db: Db, seenSince: number): Promise<readonly ProcessState[]> {
  const rows = await db
    .selectFrom('node_processes')
    .select(['node_id', 'healthy', 'leaving', 'kept_position', 'last_seen_at'])
    .where('last_seen_at', '>=', seenSince)
    .execute()
  return rows.map(({ healthy, leaving, kept_position, ...row }) => {
    return { ...row, healthy: healthy === 1, leaving: leaving === 1, isRefusing: kept_position !== null }
  })
}

/** Returns the regions that have a node. */
export async function listNodeRegions(db: Db): Promise<readonly string[]> {
  const rows = await db.selectFrom('nodes').select('region').distinct().orderBy('region').execute()
  return rows.map(({ region }) => region)
}

/** Returns the number of nodes of a region whose ingest was healthy at `seenSince` (epoch ms) or later. */
export function countHealthyNodes(db: Db, region: string, seenSince: number): Promise<number> {
  const healthy = db
    .selectFrom('nodes')
    .innerJoin('node_processes', 'node_processes.node_id', 'nodes.id')
    .where(({ and }) => and({ 'nodes.region': region, process: 'ingest', healthy: 1 }))
  return countRows(healthy.where('last_seen_at', '>=', seenSince))
}

/** Returns the nodes that ever received a configuration of these regions, wherever they are now, and the nodes with these ids. */
export async function listNodesOnceIn(
  db: Db,
  regions: readonly string[],
  ids: readonly string[],
): Promise<readonly (NodeFacts & { readonly received: ReadonlyMap<string, number> })[]> {
  const received = await db
    .selectFrom('node_snapshots')
    .selectAll()
    .where('region', 'in', [...regions, ''])
    .execute()
  const byNode = Map.groupBy(received, ({ node_id }) => node_id)
  const nodes = await listNodesById(db, [...new Set([...byNode.keys(), ...ids])])
  return nodes.map((node) => ({
    ...node,
    received: new Map((byNode.get(node.id) ?? []).map(({ region, epoch }) => [region, epoch])),
  }))
}

/**
 * Records that nodes are about to receive the configuration of a region. From then on they may hold data of every endpoint in it.
 * A restored database may have an older epoch: the highest counts. Control processes that record for the same nodes lock rows in the same order.
 */
export async function recordSnapshotsSent(
  db: Tx,
  dialect: Store['dialect'],
  sent: readonly Database['node_snapshots'][],
): Promise<void> {
  const highest = new Map<string, Database['node_snapshots']>()
  for (const row of sent.toSorted((a, b) => a.epoch - b.epoch)) highest.set(`${row.node_id} ${row.region}`, row)
  const inOrder = [...highest].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
  for (const some of inChunks(inOrder)) {
    const ids = some.map(({ node_id }) => node_id)
    const nodes = db.selectFrom('nodes').select('id').where('id', 'in', ids).orderBy('id')
    // Nobody removes these nodes before the transaction ends.
    const found = await (dialect === 'postgres' ? nodes.forKeyShare() : nodes).execute()
    const present = new Set(found.map(({ id }) => id))
    // A node may be removed meanwhile: it is told so with its next call.
    const rows = some.filter(({ node_id }) => present.has(node_id))
    if (rows.length === 0) continue
    await db
      .insertInto('node_snapshots')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .columns(['node_id', 'region'])
          .doUpdateSet(({ ref }) => ({ epoch: ref('excluded.epoch') }))
          .whereRef('node_snapshots.epoch', '<', 'excluded.epoch'),
      )
      .execute()
  }
}

/** Names a node, or takes its name away. Throws not_found, and conflict if another node has the name. */
export async function renameNode(db: Db, id: string, name: string | null): Promise<void> {
  const update = db.updateTable('nodes').set({ name }).where('id', '=', id).returning('id').executeTakeFirst()
  const row = await translateErrors(update, { unique: new AppError('conflict', 'another node has this name') })
  if (row === undefined) throw new AppError('not_found', 'there is no such node')
}

/** Returns nodes that have a name, in the order of their names. */
export async function listNodeNames(db: Db, limit: number): Promise<readonly { readonly id: string; readonly name: string }[]> {
  return db
    .selectFrom('nodes')
    .select(['id', 'name'])
    .where('name', 'is not', null)
    .orderBy('name')
    .limit(limit)
    .$narrowType<{ name: string }>()
    .execute()
}

/** Returns the id of the node with this name. */
export async function findNodeNamed(db: Db, name: string): Promise<string | undefined> {
  const row = await db.selectFrom('nodes').select('id').where('name', '=', name).executeTakeFirst()
  return row?.id
}

/** Returns the region of a node. Throws not_found for a node that never registered. */
export async function getNodeRegion(db: Db, id: string): Promise<string> {
  const row = await db.selectFrom('nodes').select('region').where('id', '=', id).executeTakeFirst()
  if (row === undefined) throw new AppError('not_found', 'the node is not registered')
  return row.region
}

function toProcessFacts(row: Database['node_processes']): ProcessFacts {
  return {
    applied_epoch: row.applied_epoch,
    healthy: row.healthy === 1,
    reasons: fromJson(row.reasons),
    disk_full: row.disk_full === 1,
    leaving: row.leaving === 1,
    has_copy_store: row.copy_store === 1,
    kept_position: fromJsonOrNull(row.kept_position),
    last_seen_at: toTime(row.last_seen_at),
    heard_at: toTime(row.last_seen_at),
    counted_at: toTimeOrNull(row.counted_at),
    healthy_at: toTimeOrNull(row.healthy_at),
  }
}

/** Returns the nodes with these ids. */
export async function listNodesById(db: Db, ids: readonly string[]): Promise<readonly NodeFacts[]> {
  return ids.length === 0 ? [] : readNodes(db, ids)
}

async function readNodes(db: Db, ids: NodeIds): Promise<readonly NodeFacts[]> {
  const nodes = await db.selectFrom('nodes').selectAll().where('id', 'in', ids).orderBy('id').execute()
  const processes = await db.selectFrom('node_processes').selectAll().where('node_id', 'in', ids).execute()
  const facts = new Map(processes.map((row) => [`${row.node_id} ${row.process}`, toProcessFacts(row)]))
  const factsOf = (id: string, process: Heartbeat['process']) => facts.get(`${id} ${process}`) ?? null
  return nodes.map((row) => ({
    id: row.id,
    name: row.name,
    region: row.region,
    ipv4: fromJson(row.ipv4),
    ipv6: fromJson(row.ipv6),
    ingest_address: row.ingest_address,
    tls_ports: fromJson(row.tls_ports),
    registered_at: toTime(row.registered_at),
    credential: row.credential_hash === null ? 'none' : row.credential_revoked_at === null ? 'active' : 'revoked',
    ingest: factsOf(row.id, 'ingest'),
    delivery: factsOf(row.id, 'delivery'),
  }))
}
