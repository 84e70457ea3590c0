/** Whether a node still has a log of an endpoint, as far as control knows. */
import type { Fence } from '#errors.ts'
import { toTime } from '../columns.ts'
import type { Db } from '../store.ts'
import { findRemovedCredential } from './node-credentials.ts'

export type LogHolder = {
  /** `removed`: its credential is remembered. */
  readonly node: 'registered' | 'removed' | 'unknown'
  /** Null for none, and for a node that is not registered. */
  readonly name: string | null
  /** The last heartbeat of its delivery, ISO 8601; undefined if it has not read its disk since it registered. */
  readonly reported_at: string | undefined
  /** Null for a node that is not registered. */
  readonly region: string | null
  /** The highest seq that it reported to hold, or has committed, or continues after; undefined if it never had a segment of the endpoint. */
  readonly highest_seq: number | undefined
  /** The highest seq that it has committed, or continues after: it has begun all before. -1 for none. */
  readonly committed_seq: number
  /**
   * When the machine before lost its place (ISO 8601), of which earlier reports are, and whether this one only delivers its log: it has not started
   * as a node since. Undefined if there was none.
   */
  readonly replaced: { readonly at: string; readonly isAdopted: boolean } | undefined
  /** Its log as of then; undefined if it held nothing. Seqs are null if it does not report them. */
  readonly held: { readonly first_seq: number | null; readonly parked: number; readonly blocked_by: string | null } | undefined
  /** Segments in its quarantine as of then; undefined for none. Seqs are the lowest and the highest, null if it does not report them. */
  readonly quarantine:
    | { readonly segments: number; readonly first_seq: number | null; readonly last_seq: number | null }
    | undefined
}

export async function findLogHolder(db: Db, endpoint_id: string, node_id: string): Promise<LogHolder> {
  const committed = await db
    .selectFrom('committed_seqs')
    .select('seq')
    .where(({ and }) => and({ node_id, endpoint_id }))
    .executeTakeFirst()
  const committed_seq = committed?.seq ?? -1
  const node = await db
    .selectFrom('nodes')
    .leftJoin('node_processes', (join) =>
      join.onRef('node_processes.node_id', '=', 'nodes.id').on('node_processes.process', '=', 'delivery'),
    )
    .leftJoin('endpoint_lags', (join) =>
      join.onRef('endpoint_lags.node_id', '=', 'nodes.id').on('endpoint_lags.endpoint_id', '=', endpoint_id),
    )
    .select([
      'nodes.name',
      'nodes.region',
      'nodes.registered_at',
      'last_seen_at',
      'applied_epoch',
      'open_segments',
      'undelivered_segments',
      'parked_segments',
      'first_seq',
      'last_seq',
      'blocked_by',
      'quarantined_segments',
      'quarantined_first_seq',
      'quarantined_last_seq',
    ])
    .where('nodes.id', '=', node_id)
    .executeTakeFirst()
  if (node === undefined) {
    const removed = await findRemovedCredential(db, node_id)
    const state = removed === undefined ? 'unknown' : 'removed'
    const nothing = {
      name: null,
      region: null,
      reported_at: undefined,
      replaced: undefined,
      held: undefined,
      quarantine: undefined,
    }
    return { node: state, ...nothing, highest_seq: committed?.seq, committed_seq }
  }
  const { name, region, last_seen_at, applied_epoch, open_segments, undelivered_segments, parked_segments, blocked_by } = node
  const { first_seq, last_seq } = node
  const count = (open_segments ?? 0) + (undelivered_segments ?? 0) + (parked_segments ?? 0)
  const held = count === 0 ? undefined : { first_seq, parked: parked_segments ?? 0, blocked_by }
  const hasReported = last_seen_at !== null && applied_epoch !== null && applied_epoch >= 0
  const known = [committed?.seq, last_seq, node.quarantined_last_seq].filter((seq) => seq != null)
  const highest_seq = known.length === 0 ? undefined : Math.max(...known)
  const { quarantined_segments: segments, quarantined_first_seq, quarantined_last_seq } = node
  const quarantined = { first_seq: quarantined_first_seq, last_seq: quarantined_last_seq }
  const quarantine = segments === null || segments === 0 ? undefined : { segments, ...quarantined }
  const reported_at = hasReported ? toTime(last_seen_at) : undefined
  const replaced = await findReplaced(db, node_id, node.registered_at)
  return { node: 'registered', name, region, highest_seq, committed_seq, reported_at, replaced, held, quarantine }
}

/** Whether the machine that has the place of the node only delivers the log of the one before: it begins no segment. */
export async function onlyDelivers(db: Db, node_id: string): Promise<boolean> {
  const node = await db.selectFrom('nodes').select('registered_at').where('id', '=', node_id).executeTakeFirst()
  return node !== undefined && (await findReplaced(db, node_id, node.registered_at))?.isAdopted === true
}

async function findReplaced(db: Db, node_id: string, registered_at: number): Promise<LogHolder['replaced']> {
  const last = await db
    .selectFrom('former_credentials')
    .select(['fence', 'ended_at'])
    .where('node_id', '=', node_id)
    .orderBy('ended_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  return last && { at: toTime(last.ended_at), isAdopted: last.fence === adopted && registered_at <= last.ended_at }
}

const adopted: Fence = 'node_adopted'
