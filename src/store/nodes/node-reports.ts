/**
 * Reports of nodes about the logs on their disks.
 *
 * Owns: the rows of each node, replaced by every report. Does not own: what they mean for an endpoint (control/provisioning).
 * Law: a row needs no endpoint. Nodes also report logs whose endpoint was deleted, or is unknown to this database.
 */
import type { BlockedLog, EndpointLag } from '#model/node-protocol.ts'
import { inChunks } from '../chunks.ts'
import { listForeignEndpoints, listForeignViews } from '../cluster/node-scope.ts'
import { fromFlag, fromTimeOrNull, toStorableText, toTime, toTimeOrNull } from '../columns.ts'
import type { Database } from '../schema.ts'
import { addViewFailures } from '../series/view-counters.ts'
import type { Db, Tx } from '../store.ts'

type NamedNode = { readonly node_id: string; readonly node_name: string | null }
/** `reported_at` is the time of the last heartbeat of delivery, which had this row. */
export type NodeLag = EndpointLag & NamedNode & { readonly reported_at: string }
export type NodeBlockedLog = BlockedLog & NamedNode

type LagRow = Database['endpoint_lags']

/** Returns what nodes hold of these endpoints. A node without a row of an endpoint holds nothing of it. */
export async function listLags(db: Db, endpointIds: readonly string[]): Promise<readonly NodeLag[]> {
  const lags: NodeLag[] = []
  for (const ids of inChunks(endpointIds)) {
    const rows = await selectLags(db)
      .where('endpoint_lags.endpoint_id', 'in', ids)
      .orderBy('endpoint_lags.endpoint_id')
      .orderBy('endpoint_lags.node_id')
      .execute()
    lags.push(...rows.map(toNodeLag))
  }
  return lags
}

/**
 * Returns the lags that degrade an account's endpoints: blocked, with segments that need a person, with a segment sealed before
 * `sealedBefore`, or last reported before `reportedBefore` (both epoch ms).
 */
export async function listDegradingLags(
  db: Db,
  account_id: string,
  { sealedBefore, reportedBefore }: { readonly sealedBefore: number; readonly reportedBefore: number },
): Promise<readonly NodeLag[]> {
  const rows = await selectLags(db)
    .innerJoin('endpoints', 'endpoints.id', 'endpoint_lags.endpoint_id')
    .where('endpoints.account_id', '=', account_id)
    .where('endpoints.deleted_at', 'is', null)
    .where(({ eb, or }) =>
      or([
        eb('blocked_by', 'is not', null),
        eb('oldest_sealed_at', '<', sealedBefore),
        eb('parked_segments', '>', 0),
        eb('quarantined_segments', '>', 0),
        eb('scrub_findings', '>', 0),
        eb('node_processes.last_seen_at', '<', reportedBefore),
      ]),
    )
    .execute()
  return rows.map(toNodeLag)
}

export type LargestLag = NodeLag & { readonly account_id: string | null; readonly endpoint_name: string | null }

/** Returns the log with the most bytes on the node, and its endpoint, if that is known. */
export async function findLargestLag(db: Db, node_id: string): Promise<LargestLag | undefined> {
  const row = await selectLags(db)
    .leftJoin('endpoints', 'endpoints.id', 'endpoint_lags.endpoint_id')
    .select(['endpoints.account_id', 'endpoints.name as endpoint_name'])
    .where('endpoint_lags.node_id', '=', node_id)
    .orderBy('undelivered_bytes', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (row === undefined) return undefined
  const { account_id, endpoint_name, ...lag } = row
  return { ...toNodeLag(lag), account_id, endpoint_name }
}

/** Returns the logs of these endpoints that ingest of a node cannot append to. */
export async function listBlockedLogs(db: Db, endpointIds: readonly string[]): Promise<readonly NodeBlockedLog[]> {
  const blocked: NodeBlockedLog[] = []
  for (const ids of inChunks(endpointIds))
    blocked.push(...(await selectBlocked(db).where('endpoint_id', 'in', ids).orderBy('node_id').execute()))
  return blocked
}

/** Returns the same for all endpoints of an account. */
export function listBlockedLogsOfAccount(db: Db, account_id: string): Promise<readonly NodeBlockedLog[]> {
  return selectBlocked(db)
    .innerJoin('endpoints', 'endpoints.id', 'blocked_logs.endpoint_id')
    .where('endpoints.account_id', '=', account_id)
    .where('endpoints.deleted_at', 'is', null)
    .orderBy('blocked_logs.node_id')
    .execute()
}

function selectBlocked(db: Db) {
  return db
    .selectFrom('blocked_logs')
    .innerJoin('nodes', 'nodes.id', 'blocked_logs.node_id')
    .selectAll('blocked_logs')
    .select('nodes.name as node_name')
}

/** Makes the rows of the node those of its report. */
export async function replaceLags(db: Tx, node_id: string, lags: readonly EndpointLag[], now: number): Promise<void> {
  const stored = await db.selectFrom('endpoint_lags').selectAll().where('node_id', '=', node_id).execute()
  const reported = new Set(lags.map(({ endpoint_id }) => endpoint_id))
  const gone = stored.flatMap(({ endpoint_id }) => (reported.has(endpoint_id) ? [] : [endpoint_id]))
  await writeLags(db, node_id, { lags, gone, stored }, now)
}

type LagChange = { readonly lags: readonly EndpointLag[]; readonly gone: readonly string[] }

/** Writes the rows that differ from the last report of the node. */
export async function changeLags(db: Tx, node_id: string, { lags, gone }: LagChange, now: number): Promise<void> {
  const stored: LagRow[] = []
  for (const some of inChunks(lags)) {
    const ids = some.map(({ endpoint_id }) => endpoint_id)
    const rows = db.selectFrom('endpoint_lags').selectAll().where('node_id', '=', node_id).where('endpoint_id', 'in', ids)
    stored.push(...(await rows.execute()))
  }
  await writeLags(db, node_id, { lags, gone, stored }, now)
}

/**
 * Writes only rows that differ: most logs are idle between two reports. `stored` has the rows of `lags` as they are. A view that now fails on a
 * log counts as an error.
 */
async function writeLags(
  db: Tx,
  node_id: string,
  { lags, gone, stored }: LagChange & { readonly stored: readonly LagRow[] },
  now: number,
): Promise<void> {
  const reported = new Map(lags.map((lag) => [lag.endpoint_id, toLagRow(node_id, lag)]))
  const failing = new Map(stored.map(({ endpoint_id, failing_view_id }) => [endpoint_id, failing_view_id]))
  for (const row of stored) if (isSame(row, reported.get(row.endpoint_id))) reported.delete(row.endpoint_id)
  await removeForeign(db, node_id, reported)
  const failures = [...reported.values()].flatMap(({ endpoint_id, failing_view_id: view_id, blocked_by }) =>
    view_id === null || failing.get(endpoint_id) === view_id ? [] : [{ endpoint_id, view_id, message: blocked_by ?? '' }],
  )
  for (const some of inChunks(failures)) await addViewFailures(db, some, now)
  for (const ids of inChunks(gone))
    await db.deleteFrom('endpoint_lags').where('node_id', '=', node_id).where('endpoint_id', 'in', ids).execute()
  for (const rows of inChunks([...reported.values()]))
    await db
      .insertInto('endpoint_lags')
      .values(rows)
      .onConflict((conflict) =>
        conflict.columns(['endpoint_id', 'node_id']).doUpdateSet(({ ref }) => ({
          open_segments: ref('excluded.open_segments'),
          undelivered_segments: ref('excluded.undelivered_segments'),
          parked_segments: ref('excluded.parked_segments'),
          quarantined_segments: ref('excluded.quarantined_segments'),
          undelivered_bytes: ref('excluded.undelivered_bytes'),
          records: ref('excluded.records'),
          first_seq: ref('excluded.first_seq'),
          last_seq: ref('excluded.last_seq'),
          held: ref('excluded.held'),
          quarantined_first_seq: ref('excluded.quarantined_first_seq'),
          quarantined_last_seq: ref('excluded.quarantined_last_seq'),
          oldest_sealed_at: ref('excluded.oldest_sealed_at'),
          blocked_by: ref('excluded.blocked_by'),
          failing_view_id: ref('excluded.failing_view_id'),
          failing_since: ref('excluded.failing_since'),
          closed: ref('excluded.closed'),
          scrub_findings: ref('excluded.scrub_findings'),
          scrub_finding: ref('excluded.scrub_finding'),
          counted_at: ref('excluded.counted_at'),
        })),
      )
      .execute()
}

/** Leaves out rows about endpoints or views of other regions: the owner of the endpoint or view reads them. */
async function removeForeign(db: Tx, node_id: string, reported: Map<string, LagRow>): Promise<void> {
  if (reported.size === 0) return
  const endpoints = await listForeignEndpoints(db, node_id, [...reported.keys()])
  const failing = [...reported.values()].flatMap(({ failing_view_id }) => failing_view_id ?? [])
  const views = await listForeignViews(db, node_id, [...new Set(failing)])
  for (const [id, { failing_view_id }] of reported)
    if (endpoints.has(id) || (failing_view_id !== null && views.has(failing_view_id))) reported.delete(id)
}

/** Forgets what the node reported to hold. Its next report must have all logs. */
export async function forgetLags(db: Tx, node_id: string): Promise<void> {
  await db.deleteFrom('endpoint_lags').where('node_id', '=', node_id).execute()
  await db
    .updateTable('node_processes')
    .set({ lag_version: null, counted_at: null })
    .where(({ and }) => and({ node_id, process: 'delivery' }))
    .execute()
}

export async function replaceBlockedLogs(db: Tx, node_id: string, blocked: readonly BlockedLog[]): Promise<void> {
  await db.deleteFrom('blocked_logs').where('node_id', '=', node_id).execute()
  const rows = new Map(
    blocked.map(({ endpoint_id, reason }) => [endpoint_id, { node_id, endpoint_id, reason: toStorableText(reason) }]),
  )
  for (const id of await listForeignEndpoints(db, node_id, [...rows.keys()])) rows.delete(id)
  for (const chunk of inChunks([...rows.values()])) await db.insertInto('blocked_logs').values(chunk).execute()
}

function isSame(stored: LagRow, reported: LagRow | undefined): boolean {
  if (reported === undefined) return false
  return Object.entries(reported).every(([column, value]) => stored[column as keyof LagRow] === value)
}

function toLagRow(
  node_id: string,
  { closed, oldest_sealed_at, blocked_by, failing_view, scrub_finding, records, first_seq, last_seq, held, ...lag }: EndpointLag,
): LagRow {
  return {
    ...lag,
    records: records ?? null,
    first_seq: first_seq ?? null,
    last_seq: last_seq ?? null,
    held: held === undefined ? null : JSON.stringify(held),
    quarantined_first_seq: lag.quarantined_first_seq ?? null,
    quarantined_last_seq: lag.quarantined_last_seq ?? null,
    node_id,
    oldest_sealed_at: fromTimeOrNull(oldest_sealed_at),
    blocked_by: blocked_by === null ? null : toStorableText(blocked_by),
    failing_view_id: failing_view?.view_id ?? null,
    failing_since: fromTimeOrNull(failing_view?.since ?? null),
    closed: fromFlag(closed),
    scrub_finding: scrub_finding === null ? null : toStorableText(scrub_finding),
    counted_at: fromTimeOrNull(lag.counted_at ?? null),
  }
}

function selectLags(db: Db) {
  return db
    .selectFrom('endpoint_lags')
    .innerJoin('node_processes', (join) =>
      join.onRef('node_processes.node_id', '=', 'endpoint_lags.node_id').on('node_processes.process', '=', 'delivery'),
    )
    .innerJoin('nodes', 'nodes.id', 'endpoint_lags.node_id')
    .selectAll('endpoint_lags')
    .select(['nodes.name as node_name', 'node_processes.last_seen_at as reported_at'])
}

function toNodeLag({
  failing_view_id,
  failing_since,
  held: _,
  counted_at: __,
  ...row
}: LagRow & { node_name: string | null; reported_at: number }): NodeLag {
  return {
    ...row,
    oldest_sealed_at: toTimeOrNull(row.oldest_sealed_at),
    failing_view: failing_view_id === null ? null : { view_id: failing_view_id, since: toTime(failing_since ?? row.reported_at) },
    closed: row.closed === 1,
    reported_at: toTime(row.reported_at),
  }
}
