/**
 * Losses of a machine that lost its place: what is on its disk and nowhere else.
 *
 * Owns: comparing its segments with the commits. Does not own: the rows (loss-rows.ts), and how a loss ends (losses.ts).
 */
import type { LeftSegments } from '#model/left-on-disk.ts'
import type { LossCause } from '#model/loss.ts'
import { inChunks } from '../chunks.ts'
import type { Db, Tx } from '../store.ts'
import { listCommitted } from './log-commits.ts'
import { type LossOwner, lockCommitsOf, noBounds, openLosses } from './loss-rows.ts'
import { missingOf, sumMissing } from './loss-runs.ts'

/** A machine by the credential that control refuses. */
export type FormerMachine = {
  readonly node_id: string
  readonly region: string | null
  readonly credential_hash: string
  /** Its node was removed, so no other machine has its place, and it may come back. */
  readonly isRemoved: boolean
}

/** Records what no commit has. Returns the number of endpoints with such records. Idempotent. */
export async function recordLeftOnDisk(
  db: Tx,
  machine: FormerMachine,
  left: readonly LeftSegments[],
  now: number,
): Promise<number> {
  await lockCommitsOf(db, machine.node_id)
  const logs = Map.groupBy(left, ({ endpoint_id }) => endpoint_id)
  const losses = await openLosses(db, machine, now)
  const cause: LossCause = machine.isRemoved ? 'node_removed' : 'left_on_disk'
  const node_name = (await findName(db, machine.node_id))?.name ?? null
  for (const owner of await listOwners(db, machine, [...logs.keys()])) {
    const left = logs.get(owner.endpoint_id) ?? []
    const runs = missingOf(left, await listCommitted(db, { node_id: machine.node_id, endpoint_id: owner.endpoint_id }, left))
    // A segment may have been opened, and nothing acknowledged in it.
    if (sumMissing(runs).records === 0) continue
    const exactly = { reported_at: now, isExact: true, segments_unknown: 0, records_unknown: 0, boundsUnknown: noBounds }
    await losses.put({ ...owner, node_name }, { cause, runs, bytes: sumMissing(runs).bytes, ...exactly })
  }
  return losses.end()
}

/** Endpoints that were deleted, are unknown, or of another region have no owner to tell. */
async function listOwners(db: Db, { node_id, region }: FormerMachine, ids: readonly string[]) {
  const found: Omit<LossOwner, 'node_name'>[] = []
  for (const some of inChunks(ids)) {
    const owned = db
      .selectFrom('endpoints')
      .select(['id as endpoint_id', 'account_id', 'region'])
      .where('id', 'in', some)
      .where('deleted_at', 'is', null)
    // Where the region is not known, only the logs are believed that the node had.
    const seqs = db.selectFrom('committed_seqs').select('endpoint_id').where('node_id', '=', node_id)
    found.push(...(await (region === null ? owned.where('id', 'in', seqs) : owned.where('region', '=', region)).execute()))
  }
  return found
}

async function findName(db: Db, id: string) {
  return db.selectFrom('nodes').select('name').where('id', '=', id).executeTakeFirst()
}
