/**
 * Heartbeats of processes that have nothing to report: one statement for many nodes.
 *
 * Owns: recording these together. Does not own: any other heartbeat (`recordHeartbeat` in nodes.ts).
 * Law: it leaves the database as `recordHeartbeat` would for each of them.
 */
import { type Heartbeat, hasReadDisk } from '#model/node-protocol.ts'
import { inChunks } from '../chunks.ts'
import type { Tx } from '../store.ts'
import { factsOf } from './nodes.ts'

/** Whether a heartbeat has no rows, does not name a new report of logs, and says nothing of the database. */
export function isQuiet(heartbeat: Heartbeat): boolean {
  if (heartbeat.kept_position !== undefined) return false
  if (heartbeat.process === 'ingest') return heartbeat.blocked.length === 0 && heartbeat.disk === undefined
  const { lag, lag_gone = [], lag_base, lag_version, recorded } = heartbeat
  return recorded === undefined && lag.length === 0 && lag_gone.length === 0 && lag_base === lag_version
}

/**
 * Records quiet heartbeats. Returns those that were recorded: not those of a process that never sent one before, or whose logs are not those
 * of the report that it names.
 */
export async function recordQuietHeartbeats(
  db: Tx,
  heartbeats: readonly Heartbeat[],
  now: number,
): Promise<ReadonlySet<Heartbeat>> {
  const recorded = new Set<Heartbeat>()
  // Nearly all are alike: healthy, and at the newest epoch.
  const alike = Map.groupBy(heartbeats, (each) =>
    JSON.stringify({ ...factsOf(each, now), process: each.process, lag_version: hasBase(each) }),
  )
  for (const group of alike.values())
    for (const some of inChunks(group)) {
      const updated = await updateFacts(db, some, now)
      for (const each of some) if (updated.has(each.node_id)) recorded.add(each)
    }
  const emptied = (process: Heartbeat['process']) =>
    [...recorded].filter((each) => each.process === process && !hasBase(each) && hasReadDisk(each)).map(({ node_id }) => node_id)
  for (const ids of inChunks(emptied('ingest'))) await db.deleteFrom('blocked_logs').where('node_id', 'in', ids).execute()
  for (const ids of inChunks(emptied('delivery'))) await db.deleteFrom('endpoint_lags').where('node_id', 'in', ids).execute()
  return recorded
}

/** Returns the nodes whose process has a row. `alike` have the same process and facts, and all or none of them a base. */
async function updateFacts(db: Tx, alike: readonly Heartbeat[], now: number): Promise<ReadonlySet<string>> {
  const [first] = alike
  if (first === undefined) return new Set()
  const { lag_version, ...facts } = factsOf(first, now)
  const update = db
    .updateTable('node_processes')
    .set(first.healthy ? { ...facts, healthy_at: now } : facts)
    .where('process', '=', first.process)
    .returning('node_id')
  const bases = alike.flatMap((each) =>
    each.process === 'delivery' && each.lag_base !== undefined ? [[each.node_id, each.lag_base] as const] : [],
  )
  const matching =
    bases.length > 0
      ? update.where(({ eb, refTuple, tuple }) =>
          eb(
            refTuple('node_id', 'lag_version'),
            'in',
            bases.map(([node_id, base]) => tuple(node_id, base)),
          ),
        )
      : update.set({ lag_version: null }).where(
          'node_id',
          'in',
          alike.map(({ node_id }) => node_id),
        )
  return new Set((await matching.execute()).map(({ node_id }) => node_id))
}

function hasBase(heartbeat: Heartbeat): boolean {
  return heartbeat.process === 'delivery' && heartbeat.lag_base !== undefined
}
