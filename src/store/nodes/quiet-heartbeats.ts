/**
 * Heartbeats of processes that have nothing to report: one statement for many nodes.
 *
 * Owns: recording these together. Does not own: any other heartbeat (`recordHeartbeat` in nodes.ts).
 * Law: it leaves the database as `recordHeartbeat` would for each of them.
 */
import { sql } from 'kysely'
import { type Heartbeat, hasReadDisk } from '#model/node-protocol.ts'
import { inChunks } from '../chunks.ts'
import type { Tx } from '../store.ts'
import { factsOf, isNotOlder, orderOf } from './nodes.ts'

/** Whether a heartbeat has no rows, does not name a new report of logs, and says nothing of the database. */
export function isQuiet(heartbeat: Heartbeat): boolean {
  if (heartbeat.kept_position !== undefined) return false
  if (heartbeat.process === 'ingest') return heartbeat.blocked.length === 0 && heartbeat.disk === undefined
  const { lag, lag_gone = [], lag_base, lag_version, recorded } = heartbeat
  return recorded === undefined && lag.length === 0 && lag_gone.length === 0 && lag_base === lag_version
}

/**
 * Records quiet heartbeats. Returns those that were recorded: not those of a process that never sent one before, or whose logs are not those
 * of the report that it names, and not one that is older than the last.
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
  const { lag_version, ...alikeFacts } = factsOf(first, now)
  const facts = first.healthy ? { ...alikeFacts, healthy_at: now } : alikeFacts
  const rows = alike.map((each) => {
    const { run, number } = orderOf(each)
    return sql`(${each.node_id}, cast(${run} as text), cast(${number} as bigint), cast(${baseOf(each)} as text))`
  })
  // Both engines call the columns of values so.
  const sent = sql<SentValues>`(values ${sql.join(rows)})`.as('sent')
  const update = db
    .updateTable('node_processes')
    .from(sent)
    .set(({ ref }) => ({ ...facts, run: ref('sent.column2'), number: ref('sent.column3') }))
    .where('process', '=', first.process)
    .whereRef('node_id', '=', 'sent.column1')
    .where(isNotOlder(sql.ref('sent.column2'), sql.ref('sent.column3')))
    .returning('node_id')
  const matching = hasBase(first) ? update.whereRef('lag_version', '=', 'sent.column4') : update.set({ lag_version: null })
  return new Set((await matching.execute()).map(({ node_id }) => node_id))
}

type SentValues = {
  readonly column1: string
  readonly column2: string | null
  readonly column3: number | null
  readonly column4: string | null
}

function baseOf(heartbeat: Heartbeat): string | null {
  return (heartbeat.process === 'delivery' && heartbeat.lag_base) || null
}

function hasBase(heartbeat: Heartbeat): boolean {
  return baseOf(heartbeat) !== null
}
