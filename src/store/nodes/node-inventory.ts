/** Nodes and what is on their disks, over all accounts: only for operators. */
import { type ExpressionBuilder, sql } from 'kysely'
import { AppError } from '#errors.ts'
import type { DiskSpace } from '#lib/files.ts'
import { safeSum } from '#lib/safe-sum.ts'
import type { LogOwner, NodeLog, SegmentTotals } from '#model/node.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { toTimeOrNull } from '../columns.ts'
import { readPage } from '../page.ts'
import { sumOf } from '../safe-sums.ts'
import type { Database } from '../schema.ts'
import type { Db } from '../store.ts'
import { listNodesById, type NodeFacts } from './nodes.ts'

export type NodeInventory = NodeFacts & {
  readonly segments: SegmentTotals
  readonly unowned: SegmentTotals
  readonly blocked_logs: number
  readonly scrub_findings: number
  readonly join_token_id: string | null
  /** Version of Inlet that it runs; null if it reports none. */
  readonly version: string | null
  /** Disk of its write-ahead log; null before the first report. */
  readonly disk: DiskSpace | null
}

/** Returns one page of the nodes of all regions, in order of their ids. */
export async function listNodeInventories(db: Db, page: PageQuery): Promise<Page<NodeInventory>> {
  const { items: rows, ...rest } = await readPage(selectDescribed(db).orderBy('id'), page, (row) => row)
  return { ...rest, items: await describeNodes(db, rows) }
}

/** Throws not_found. */
export async function getNodeInventory(db: Db, id: string): Promise<NodeInventory> {
  const [node] = await describeNodes(db, await selectDescribed(db).where('id', '=', id).execute())
  if (node === undefined) throw new AppError('not_found', 'there is no such node')
  return node
}

type Described = Pick<Database['nodes'], 'id' | 'join_token_id' | 'version' | 'disk_free_bytes' | 'disk_total_bytes'>

function selectDescribed(db: Db) {
  return db.selectFrom('nodes').select(['id', 'join_token_id', 'version', 'disk_free_bytes', 'disk_total_bytes'])
}

async function describeNodes(db: Db, rows: readonly Described[]): Promise<NodeInventory[]> {
  const ids = rows.map(({ id }) => id)
  if (ids.length === 0) return []
  const nodes = await listNodesById(db, ids)
  const totals = await listTotals(db, ids)
  const blocked = await db
    .selectFrom('blocked_logs')
    .select('node_id')
    .select(({ fn }) => fn.countAll<number>().as('logs'))
    .where('node_id', 'in', ids)
    .groupBy('node_id')
    .execute()
  return nodes.map((node) => {
    const of = totals.filter(({ node_id }) => node_id === node.id)
    const { logs = 0 } = blocked.find(({ node_id }) => node_id === node.id) ?? {}
    const row = rows.find(({ id }) => id === node.id)
    const { join_token_id = null, version = null } = row ?? {}
    const unowned = add(of.filter(({ is_owned }) => is_owned === 0))
    const scrub_findings = safeSum(of.map((row) => row.scrub_findings))
    const of_node = { blocked_logs: Number(logs), scrub_findings, join_token_id, version, disk: diskOf(row) }
    return { ...node, segments: add(of), unowned, ...of_node }
  })
}

function diskOf(row: Described | undefined): DiskSpace | null {
  const { disk_free_bytes: free_bytes = null, disk_total_bytes: total_bytes = null } = row ?? {}
  return free_bytes === null || total_bytes === null ? null : { free_bytes, total_bytes }
}

/** Returns everything that a node holds, as it last reported. */
export async function sumNodeSegments(db: Db, node_id: string): Promise<SegmentTotals> {
  return add(await listTotals(db, [node_id]))
}

async function listTotals(db: Db, nodeIds: readonly string[]) {
  const sum = (column: string) => sumOf(sql.ref(column))
  return db
    .selectFrom('endpoint_lags')
    .leftJoin('endpoints', 'endpoints.id', 'endpoint_lags.endpoint_id')
    .select('endpoint_lags.node_id')
    .select(isOwned.as('is_owned'))
    .select([
      sum('open_segments').as('open_segments'),
      sum('undelivered_segments').as('sealed_segments'),
      sum('parked_segments').as('parked_segments'),
      sum('quarantined_segments').as('quarantined_segments'),
      sum('undelivered_bytes').as('bytes'),
      sum('scrub_findings').as('scrub_findings'),
    ])
    .where('endpoint_lags.node_id', 'in', nodeIds)
    .groupBy(['endpoint_lags.node_id', isOwned])
    .execute()
}

const isOwned = sql<number>`case when endpoints.id is not null and endpoints.deleted_at is null then 1 else 0 end`

function add(rows: readonly SegmentTotals[]): SegmentTotals {
  const sum = (read: (row: SegmentTotals) => number) => safeSum(rows.map(read))
  return {
    open_segments: sum((row) => row.open_segments),
    sealed_segments: sum((row) => row.sealed_segments),
    parked_segments: sum((row) => row.parked_segments),
    quarantined_segments: sum((row) => row.quarantined_segments),
    bytes: sum((row) => row.bytes),
  }
}

/** Returns one page of the logs that the node holds or cannot append to, in order of their endpoints, optionally of one kind of owner. */
export async function listNodeLogs(db: Db, node_id: string, page: PageQuery, owner?: LogOwner): Promise<Page<NodeLog>> {
  const logs = selectLogs(db, node_id)
  return readLogs(owner === undefined ? logs : logs.where((row) => ownerIs(row, owner)), page)
}

/** Returns one page of the logs that the node holds segments of, or may hold because it could not list them, those with the most bytes first. */
export async function listHeldLogs(db: Db, node_id: string, page: PageQuery): Promise<Page<NodeLog>> {
  const held = selectLogs(db, node_id).where(
    sql<boolean>`(${segmentCount} > 0 or (held = '[]' and endpoint_lags.records is null))`,
  )
  return readLogs(held.orderBy('undelivered_bytes', 'desc'), page)
}

const segmentCount = sql<number>`(open_segments + undelivered_segments + parked_segments + quarantined_segments)`

function selectLogs(db: Db, node_id: string) {
  const reported = db
    .selectFrom('endpoint_lags')
    .select('endpoint_id')
    .where('node_id', '=', node_id)
    .union(db.selectFrom('blocked_logs').select('endpoint_id').where('node_id', '=', node_id))
  return db
    .selectFrom(reported.as('reported'))
    .leftJoin('endpoints', 'endpoints.id', 'reported.endpoint_id')
    .leftJoin('endpoint_lags', (join) =>
      join.onRef('endpoint_lags.endpoint_id', '=', 'reported.endpoint_id').on('endpoint_lags.node_id', '=', node_id),
    )
    .leftJoin('blocked_logs', (join) =>
      join.onRef('blocked_logs.endpoint_id', '=', 'reported.endpoint_id').on('blocked_logs.node_id', '=', node_id),
    )
}

function readLogs(logs: ReturnType<typeof selectLogs>, page: PageQuery): Promise<Page<NodeLog>> {
  return readPage(
    logs
      .select('endpoints.name as endpoint_name')
      .select(['reported.endpoint_id', 'endpoints.account_id', 'endpoints.desired_state', 'endpoints.deleted_at'])
      .select(['open_segments', 'undelivered_segments', 'parked_segments', 'quarantined_segments', 'undelivered_bytes'])
      .select(['endpoint_lags.records', 'endpoint_lags.first_seq'])
      .select(['oldest_sealed_at', 'blocked_by', 'closed', 'scrub_findings', 'scrub_finding', 'blocked_logs.reason'])
      .orderBy('reported.endpoint_id'),
    page,
    (row) => ({
      endpoint_id: row.endpoint_id,
      endpoint_name: row.endpoint_name,
      account_id: row.account_id,
      owner: toOwner(row.desired_state, row.deleted_at),
      open_segments: row.open_segments ?? 0,
      sealed_segments: row.undelivered_segments ?? 0,
      parked_segments: row.parked_segments ?? 0,
      quarantined_segments: row.quarantined_segments ?? 0,
      bytes: row.undelivered_bytes ?? 0,
      records: row.records,
      first_segment_seq: row.first_seq,
      oldest_sealed_at: toTimeOrNull(row.oldest_sealed_at),
      blocked_by: row.blocked_by,
      append_blocked_by: row.reason,
      closed: row.closed === 1,
      scrub_findings: row.scrub_findings ?? 0,
      scrub_finding: row.scrub_finding,
    }),
  )
}

function toOwner(desired_state: string | null, deleted_at: number | null): LogOwner {
  if (desired_state === null) return 'unknown'
  return deleted_at === null ? (desired_state as LogOwner) : 'deleted'
}

function ownerIs({ eb, and }: ExpressionBuilder<Database, 'endpoints'>, owner: LogOwner) {
  if (owner === 'unknown') return eb('endpoints.id', 'is', null)
  if (owner === 'deleted') return eb('endpoints.deleted_at', 'is not', null)
  return and([eb('endpoints.desired_state', '=', owner), eb('endpoints.deleted_at', 'is', null)])
}
