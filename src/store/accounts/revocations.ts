/**
 * How far revocations of keys got.
 *
 * Owns: which nodes count, and what was noted. Does not own: when it is looked at (control/upkeep/revocations.ts).
 * Law: a node counts while it is registered in a region where the account has an endpoint, and was ever sent a configuration of that region:
 * it may know the key, whether or not it is in reach. Its ingest reports the epoch that it applied.
 */
import { describeRevocation, type KeyHolder, type Revocation } from '#model/revocation.ts'
import { inChunks } from '../chunks.ts'
import { toTime } from '../columns.ts'
import type { Db, Tx } from '../store.ts'
import { eventOutsideApi, insertAuditEvent } from './audit-events.ts'

/** Returns the progress of those of these keys whose revocation is known, by id. `now` is epoch ms. */
export async function findRevocations(
  db: Db,
  account_id: string,
  ids: readonly string[],
  now: number,
): Promise<ReadonlyMap<string, Revocation>> {
  const found = new Map<string, Revocation>()
  let holders: readonly KeyHolder[] | undefined
  for (const some of inChunks(ids)) {
    const rows = await db
      .selectFrom('api_keys')
      .select(['id', 'revocation_epoch', 'revocation_applied_at'])
      .where('account_id', '=', account_id)
      .where('id', 'in', some)
      .where('revocation_epoch', 'is not', null)
      .execute()
    for (const { id, revocation_epoch, revocation_applied_at } of rows) {
      holders ??= await listKeyHolders(db, account_id)
      const progress = describeRevocation(revocation_epoch ?? 0, holders, now)
      found.set(id, revocation_applied_at === null ? progress : markApplied(progress, toTime(revocation_applied_at)))
    }
  }
  return found
}

/** Nodes of later may lag behind for other reasons. */
function markApplied({ nodes }: Revocation, applied_at: string): Revocation {
  return { summary: `applied on all nodes at ${applied_at}`, applied_nodes: nodes, nodes, applied_at, waiting: [] }
}

/** Returns the nodes that may know keys of an account. */
export async function listKeyHolders(db: Db, account_id: string): Promise<readonly KeyHolder[]> {
  const regions = db
    .selectFrom('endpoints')
    .select('region')
    .distinct()
    .where('account_id', '=', account_id)
    .where('deleted_at', 'is', null)
  const rows = await db
    .selectFrom('nodes')
    .innerJoin('node_snapshots', (join) =>
      join.onRef('node_snapshots.node_id', '=', 'nodes.id').onRef('node_snapshots.region', '=', 'nodes.region'),
    )
    .leftJoin('node_processes', (join) =>
      join.onRef('node_processes.node_id', '=', 'nodes.id').on('node_processes.process', '=', 'ingest'),
    )
    .select([
      'nodes.id as node_id',
      'nodes.name as node_name',
      'nodes.region',
      'node_processes.applied_epoch',
      'node_processes.last_seen_at',
    ])
    .where('nodes.region', 'in', regions)
    .orderBy('nodes.id')
    .execute()
  return rows.map(({ applied_epoch, ...row }) => ({ ...row, applied_epoch: applied_epoch ?? -1 }))
}

export type RunningRevocation = { readonly id: string; readonly account_id: string; readonly epoch: number }

/** Returns revocations that some node may not have applied, the oldest first. */
export async function listRunningRevocations(db: Db, limit: number): Promise<readonly RunningRevocation[]> {
  const rows = await db
    .selectFrom('api_keys')
    .select(['id', 'account_id', 'revocation_epoch'])
    .where('revocation_epoch', 'is not', null)
    .where('revocation_applied_at', 'is', null)
    .orderBy('revocation_epoch')
    .limit(limit)
    .execute()
  return rows.map(({ id, account_id, revocation_epoch }) => ({ id, account_id, epoch: revocation_epoch ?? 0 }))
}

/** Returns how many revocations some node may not have applied. */
export async function countRunningRevocations(db: Db): Promise<number> {
  const { running } = await db
    .selectFrom('api_keys')
    .select(({ fn }) => fn.countAll<number>().as('running'))
    .where('revocation_epoch', 'is not', null)
    .where('revocation_applied_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(running)
}

/** Notes that every node has applied a revocation, also in the audit trail, unless there was a later one of the key. */
export async function noteRevocationApplied(db: Tx, { id, account_id, epoch }: RunningRevocation, now: number): Promise<boolean> {
  const noted = await db
    .updateTable('api_keys')
    .set({ revocation_applied_at: now })
    .where(({ and }) => and({ id, revocation_epoch: epoch }))
    .where('revocation_applied_at', 'is', null)
    .returning('id')
    .executeTakeFirst()
  if (noted === undefined) return false
  const event = { actor: 'inlet', operation: 'applyRevocation', account_id, resource_id: id } as const
  await insertAuditEvent(db, eventOutsideApi(event, now))
  return true
}
