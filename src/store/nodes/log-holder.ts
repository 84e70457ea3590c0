/** Whether a node still has a log of an endpoint, as far as control knows. */
import { toTime } from '../columns.ts'
import type { Db } from '../store.ts'

export type LogHolder = {
  /** `removed`: its credential is remembered. */
  readonly node: 'registered' | 'removed' | 'unknown'
  /** Null for none, and for a node that is not registered. */
  readonly name: string | null
  /** The last heartbeat of its delivery, ISO 8601; undefined if it has not read its disk since it registered. */
  readonly reported_at: string | undefined
  /** Its log as of then; undefined if it held nothing. Seqs are null if it does not report them. */
  readonly held: { readonly first_seq: number | null; readonly parked: number; readonly blocked_by: string | null } | undefined
}

export async function findLogHolder(db: Db, endpoint_id: string, node_id: string): Promise<LogHolder> {
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
      'last_seen_at',
      'applied_epoch',
      'open_segments',
      'undelivered_segments',
      'parked_segments',
      'first_seq',
      'blocked_by',
    ])
    .where('nodes.id', '=', node_id)
    .executeTakeFirst()
  if (node === undefined) {
    const removed = await db.selectFrom('removed_nodes').select('id').where('id', '=', node_id).executeTakeFirst()
    return { node: removed === undefined ? 'unknown' : 'removed', name: null, reported_at: undefined, held: undefined }
  }
  const { name, last_seen_at, applied_epoch, open_segments, undelivered_segments, parked_segments, first_seq, blocked_by } = node
  const count = (open_segments ?? 0) + (undelivered_segments ?? 0) + (parked_segments ?? 0)
  const held = count === 0 ? undefined : { first_seq, parked: parked_segments ?? 0, blocked_by }
  const hasReported = last_seen_at !== null && applied_epoch !== null && applied_epoch >= 0
  return { node: 'registered', name, reported_at: hasReported ? toTime(last_seen_at) : undefined, held }
}
