/**
 * Prepares the units of a compaction, the new file and the removal of what it replaces, and records their results.
 *
 * Law: the sources and their order are those of the plan, whoever gets the unit and however often.
 */
import { AppError } from '#errors.ts'
import { compactedKey, isCompactedKey, parseArtifactKind } from '#model/artifact.ts'
import type { ArtifactFile } from '#model/commit.ts'
import { DestinationTarget } from '#model/destination.ts'
import type { CompactionUnit, RemovalUnit } from '#model/job-protocol.ts'
import type { ViewCounts } from '#model/view-metrics.ts'
import { findDestination } from '#store/endpoints/destinations.ts'
import { findEndpoint } from '#store/endpoints/endpoints.ts'
import { areSourcesRead, findCompaction, listSources, publishCompaction, type StoredCompaction } from '#store/jobs/compactions.ts'
import type { Tx } from '#store/store.ts'

type Prepared =
  | Pick<CompactionUnit, 'account_id' | 'compaction' | 'target'>
  | Pick<RemovalUnit, 'account_id' | 'removal' | 'target'>
  /** A node still reads what is to be removed. */
  | 'later'
  | { readonly status: 'skipped' | 'failed'; readonly reason: string }

/** Why a unit of a compaction has nothing to do that is no longer in the database. */
export const goneReason =
  'the plan is gone: another compaction in the bucket has merged some of its files, or its commits are older than the database keeps them'

/** A unit of a compaction is what it needs next: its file, or the removal of its sources. */
export async function prepareCompaction(db: Tx, account_id: string, id: string, now: number): Promise<Prepared> {
  const planned = await findCompaction(db, id)
  if (planned === undefined) return { status: 'skipped', reason: goneReason }
  const { file, removing_since, removed_at } = planned
  if (file !== null && removing_since === null) return { status: 'skipped', reason: 'an earlier job has merged these files' }
  if (removed_at !== null) return { status: 'skipped', reason: 'an earlier job has removed these files' }
  if (file !== null && !(await removesFiles(db, account_id, planned)))
    return { status: 'skipped', reason: 'the endpoint no longer removes these files' }
  if (file !== null && (await areSourcesRead(db, id, now))) return 'later'
  const { endpoint_id, kind, view, date, bucket, region, prefix } = planned
  const destination = await findDestination(db, account_id, planned.destination_id)
  if (destination === undefined) return { status: 'failed', reason: 'the destination of the files was deleted' }
  const sources = (await listSources(db, id)).map(({ marker_id, first_row, rows, bytes, sha256 }) => {
    return { id: marker_id, first_row, rows, bytes, sha256 }
  })
  const target = DestinationTarget.parse({ ...destination, bucket, region, prefix })
  const compaction = { id, endpoint_id, kind, date, view, sources }
  return file === null ? { account_id, compaction, target } : { account_id, removal: { ...compaction, file }, target }
}

/** Whether the endpoint still removes files of this kind: its owner may have changed that since the job was planned. */
async function removesFiles(db: Tx, account_id: string, { endpoint_id, kind }: StoredCompaction): Promise<boolean> {
  const { compaction } = (await findEndpoint(db, account_id, endpoint_id)) ?? {}
  const parsed = parseArtifactKind(kind)
  if (compaction === undefined || compaction === null || (compaction.remove_after_hours ?? null) === null) return false
  return parsed !== undefined && !('name' in parsed && compaction.except_views.includes(parsed.name))
}

/** Records the new file. Returns the rows that were moved, or undefined if the plan is gone. Throws validation_error if it is not the file that was planned. */
export async function recordCompaction(
  db: Tx,
  id: string,
  { file, now }: { readonly file: ArtifactFile; readonly now: number },
): Promise<ViewCounts | undefined> {
  const planned = await findCompaction(db, id)
  if (planned === undefined) return undefined
  const last = (await listSources(db, id)).at(-1)
  const rows = last === undefined ? 0 : last.first_row + last.rows
  const { prefix, endpoint_id: endpointId, date } = planned
  const [place, kind, name] = [{ prefix, endpointId, date }, parseArtifactKind(planned.kind), { id, sha256: file.sha256 }]
  if (kind === undefined || !isCompactedKey(file.key, place, kind, name) || file.rows !== rows) {
    const key = kind === undefined ? 'of a known kind' : compactedKey(place, kind, name)
    throw new AppError('validation_error', `the file must be ${key} with ${rows} rows`)
  }
  await publishCompaction(db, id, { file, now })
  return { processed: rows, accepted: rows, dropped: 0, dlq: 0, failed: 0 }
}
