/**
 * Compactions: which files become one, and the file that they became.
 *
 * Law: a file of a commit is in one compaction at most, for ever: the primary key of `compacted_artifacts` sees to it. Its position is fixed
 * when the compaction is planned, so whoever does the work, once or twice, makes the same file. A planned compaction is never taken back,
 * because a node that nobody hears of may still publish it; only one that is in the bucket displaces it.
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { AppError } from '#errors.ts'
import { isMarkerKind } from '#model/artifact.ts'
import type { ArtifactFile, ArtifactFiles } from '#model/commit.ts'
import { inChunks } from '../chunks.ts'
import { fromJson, fromJsonOrNull } from '../columns.ts'
import { translateErrors } from '../engines/database-error.ts'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'

/** Where the sources of a compaction are, and its result. */
export type CompactionPlace = {
  readonly endpoint_id: string
  /** Kind of the sources, as commits name it. */
  readonly kind: string
  readonly view: { readonly id: string; readonly version: number } | null
  /** The UTC date on which the sources were sealed. */
  readonly date: string
  readonly destination_id: string
  readonly bucket: string
  readonly region: string
  readonly prefix: string
}

export type PlannedSource = Omit<Database['compacted_artifacts'], 'compaction_id' | 'kind'>

export type NewCompaction = CompactionPlace & { readonly id: string; readonly sources: readonly PlannedSource[] }

export type StoredCompaction = CompactionPlace & {
  readonly id: string
  readonly account_id: string
  readonly file: ArtifactFile | null
  readonly removing_since: number | null
  readonly removed_at: number | null
}

const alreadyPlanned = new AppError('conflict', 'another compaction of these files was planned in the meantime: try again')

/** Throws conflict if another compaction has one of the files. */
export async function insertCompaction(db: Tx, account_id: string, compaction: NewCompaction, now: number): Promise<void> {
  const { sources, view, ...row } = compaction
  const { id, kind } = row
  const ofView = { view_id: view?.id ?? null, view_version: view?.version ?? null }
  await db
    .insertInto('compactions')
    .values({ ...row, ...ofView, account_id, planned_at: now })
    .execute()
  for (const some of inChunks(sources))
    await translateErrors(
      db
        .insertInto('compacted_artifacts')
        .values(some.map((source) => ({ ...source, kind, compaction_id: id })))
        .execute(),
      { unique: alreadyPlanned },
    )
}

/** A commit with its files and those of additions. */
export type CommitToCompact = {
  readonly id: string
  readonly sealed_at: number
  readonly destination_id: string
  readonly bucket: string
  readonly region: string
  readonly files: readonly ListedFile[]
}

/** A file, and the marker that lists it. */
export type ListedFile = { readonly kind: string; readonly marker_id: string; readonly artifact: ArtifactFile }

/** Returns commits of an endpoint that were sealed in `[from, to)` (epoch ms), in order from `after` on, with their files that no compaction has. */
export async function listCommitsToCompact(
  db: Db,
  endpoint_id: string,
  { from, to }: { readonly from: number; readonly to: number },
  { after, limit }: { readonly after: Pick<CommitToCompact, 'sealed_at' | 'id'> | undefined; readonly limit: number },
): Promise<readonly CommitToCompact[]> {
  const commits = await db
    .selectFrom('commits')
    .select(commitColumns)
    .where('endpoint_id', '=', endpoint_id)
    .where('sealed_at', '>=', from)
    .where('sealed_at', '<', to)
    .$if(after !== undefined, (query) =>
      query.where(({ eb, refTuple, tuple }) =>
        eb(refTuple('sealed_at', 'id'), '>', tuple(after?.sealed_at ?? 0, after?.id ?? '')),
      ),
    )
    .orderBy('sealed_at')
    .orderBy('id')
    .limit(limit)
    .execute()
  return withFiles(db, commits)
}

/** Returns those of the commits that the database has, with their files that no published compaction has. */
export async function findUnmergedCommits(
  db: Db,
  endpoint_id: string,
  ids: readonly string[],
): Promise<readonly CommitToCompact[]> {
  const found: CommitRow[] = []
  for (const some of inChunks(ids))
    found.push(
      ...(await db
        .selectFrom('commits')
        .select(commitColumns)
        .where('id', 'in', some)
        .where('endpoint_id', '=', endpoint_id)
        .execute()),
    )
  return withFiles(db, found, { exceptPlanned: true })
}

/** Removes the compactions that were planned for one of these files and not published: another one, which is in the bucket, has merged it. */
export async function displacePlanned(db: Tx, kind: string, commitIds: readonly string[]): Promise<void> {
  for (const some of inChunks(commitIds))
    await db
      .deleteFrom('compactions')
      .where('published_at', 'is', null)
      .where('id', 'in', ({ selectFrom }) =>
        selectFrom('compacted_artifacts').select('compaction_id').where('commit_id', 'in', some).where('kind', '=', kind),
      )
      .execute()
}

const commitColumns = ['id', 'sealed_at', 'destination_id', 'bucket', 'region', 'artifacts'] as const
type CommitRow = Pick<Database['commits'], (typeof commitColumns)[number]>

async function withFiles(
  db: Db,
  commits: readonly CommitRow[],
  { exceptPlanned = false }: { readonly exceptPlanned?: boolean } = {},
): Promise<readonly CommitToCompact[]> {
  const taken = new Set<string>()
  const added = new Map<string, ListedFile[]>()
  for (const ids of inChunks(commits.map(({ id }) => id))) {
    const moved = db
      .selectFrom('compacted_artifacts')
      .select(['commit_id', 'compacted_artifacts.kind'])
      .where('commit_id', 'in', ids)
      .$if(exceptPlanned, (query) =>
        query
          .innerJoin('compactions', 'compactions.id', 'compacted_artifacts.compaction_id')
          .where('published_at', 'is not', null),
      )
    for (const { commit_id, kind } of await moved.execute()) taken.add(`${commit_id} ${kind}`)
    const additions = db.selectFrom('commit_additions').select(['commit_id', 'artifacts']).where('commit_id', 'in', ids)
    for (const { commit_id, artifacts } of await additions.execute())
      added.set(commit_id, [...(added.get(commit_id) ?? []), ...listed(commit_id, fromJson<ArtifactFiles>(artifacts))])
  }
  return commits.map(({ artifacts, ...commit }) => {
    const files = [...listed(commit.id, fromJson<ArtifactFiles>(artifacts)), ...(added.get(commit.id) ?? [])]
    return { ...commit, files: files.filter(({ kind }) => !taken.has(`${commit.id} ${kind}`)) }
  })
}

/** Returns files with the id of the marker among them, which is its name. */
function listed(commit_id: string, artifacts: ArtifactFiles): readonly ListedFile[] {
  const markerKey = Object.entries(artifacts).find(([kind]) => isMarkerKind(kind))?.[1].key
  const marker_id = markerKey?.slice(markerKey.lastIndexOf('/') + 1, -'.json'.length) ?? commit_id
  return Object.entries(artifacts).map(([kind, artifact]) => ({ kind, marker_id, artifact }))
}

/** Returns ids of compactions of an endpoint that were planned and not published, oldest first. */
export async function listUnpublished(
  db: Db,
  endpoint_id: string,
  { failedToo }: { readonly failedToo: boolean },
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('compactions')
    .select('id')
    .where('endpoint_id', '=', endpoint_id)
    .where('published_at', 'is', null)
    .$if(!failedToo, (query) => query.where('failed_at', 'is', null))
    .orderBy('planned_at')
    .orderBy('id')
    .execute()
  return rows.map(({ id }) => id)
}

export async function findCompaction(db: Db, id: string): Promise<StoredCompaction | undefined> {
  const row = await db.selectFrom('compactions').selectAll().where('id', '=', id).executeTakeFirst()
  return row && toCompaction(row)
}

export async function listSources(db: Db, compaction_id: string): Promise<readonly PlannedSource[]> {
  return db
    .selectFrom('compacted_artifacts')
    .select(['commit_id', 'marker_id', 'first_row', 'rows', 'bytes', 'sha256'])
    .where('compaction_id', '=', compaction_id)
    .orderBy('first_row')
    .execute()
}

/** Records the new file. A published compaction is left unchanged. `removing_since` is set if its sources may be missing already. */
export async function publishCompaction(
  db: Tx,
  id: string,
  {
    file,
    now,
    removing_since = null,
  }: { readonly file: ArtifactFile; readonly now: number; readonly removing_since?: number | null },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('compactions')
    .set({ file: JSON.stringify(file), published_at: now, failed_at: null, removing_since })
    .where('id', '=', id)
    .where('published_at', 'is', null)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Records that the merge, or the removal, failed for good. */
export async function markCompactionFailed(db: Tx, id: string, now: number): Promise<void> {
  await db.updateTable('compactions').set({ failed_at: now }).where('id', '=', id).where('removed_at', 'is', null).execute()
}

/** Returns compactions of an endpoint whose sources are due for removal, oldest first. */
export async function listRemovable(
  db: Db,
  endpoint_id: string,
  {
    publishedUntil,
    failedUntil,
    except_views,
  }: { readonly publishedUntil: number; readonly failedUntil: number; readonly except_views: readonly string[] },
  limit: number,
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('compactions')
    .select('id')
    .where('endpoint_id', '=', endpoint_id)
    .where('published_at', '<=', publishedUntil)
    .where('removed_at', 'is', null)
    .where(({ eb, or }) => or([eb('failed_at', 'is', null), eb('failed_at', '<=', failedUntil)]))
    .where(({ and }) => and(except_views.map((name) => isNotOfView(name))))
    .orderBy('published_at')
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

/** Upper and lower case, and every character of a name, count: LIKE would not do. */
function isNotOfView(name: string): RawBuilder<SqlBool> {
  const folder = `views/${name}/`
  return sql<SqlBool>`substr(kind, 1, ${sql.lit(folder.length)}) <> ${folder}`
}

/** From now on the sources are not read any more, because they may be missing. */
export async function beginRemovals(db: Tx, ids: readonly string[], now: number): Promise<void> {
  for (const some of inChunks(ids))
    await db
      .updateTable('compactions')
      .set({ removing_since: now })
      .where('id', 'in', some)
      .where('removing_since', 'is', null)
      .execute()
}

export async function recordRemoval(db: Tx, id: string, now: number): Promise<void> {
  await db
    .updateTable('compactions')
    .set({ removed_at: now, failed_at: null })
    .where('id', '=', id)
    .where('removing_since', 'is not', null)
    .where('removed_at', 'is', null)
    .execute()
}

/** Whether a node may be reading a source for a backfill that it began before. */
export async function areSourcesRead(db: Tx, compaction_id: string, now: number): Promise<boolean> {
  const unit = await db
    .selectFrom('job_units')
    .innerJoin('compacted_artifacts', 'compacted_artifacts.commit_id', 'job_units.commit_id')
    .select('job_units.job_id')
    .where('compacted_artifacts.compaction_id', '=', compaction_id)
    .where('job_units.status', '=', sql.lit('leased'))
    .where('job_units.available_at', '>', now)
    .limit(1)
    .executeTakeFirst()
  return unit !== undefined
}

/**
 * Removes compactions from before `before` (epoch ms), at most `limit`, with the list of their files. Returns their number. All commits that
 * they merged were recorded earlier still.
 */
export async function removeCompactionsBefore(db: Db, before: number, limit: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('compactions')
    .where('id', 'in', ({ selectFrom }) =>
      selectFrom('compactions')
        .select('id')
        .where('planned_at', '<', before)
        .where(({ eb, or }) => or([eb('published_at', 'is', null), eb('published_at', '<', before)]))
        .orderBy('planned_at')
        .limit(limit),
    )
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

function toCompaction(row: Database['compactions']): StoredCompaction {
  const { id, account_id, endpoint_id, kind, view_id, view_version, date, destination_id, bucket, region, prefix } = row
  const view = view_id === null || view_version === null ? null : { id: view_id, version: view_version }
  const place = { endpoint_id, kind, view, date, destination_id, bucket, region, prefix }
  const { removing_since, removed_at } = row
  return { id, account_id, ...place, file: fromJsonOrNull<ArtifactFile>(row.file), removing_since, removed_at }
}
