import type { ExpressionBuilder, Selectable } from 'kysely'
import { parseArtifactKind } from '#model/artifact.ts'
import type { SegmentCommit } from '#model/commit.ts'
import type { DlqFilePosition, DlqFilesQuery } from '#model/dlq-file.ts'
import { fromTime, toTime, toTimeOrNull } from '../columns.ts'
import { countRows } from '../page.ts'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'

/** A file of rejected rows as the API returns it, with the destination needed to sign its URL. */
export type StoredDlqFile = {
  readonly endpoint_id: string
  readonly endpoint_name: string
  readonly segment_seq: number
  readonly destination_id: string
  readonly s3_bucket: string
  readonly s3_key: string
  /** Region of the bucket. */
  readonly region: string
  readonly bytes: number
  readonly rows: number
  readonly created_at: string
  readonly redriven_at: string | null
}

type CommitFiles = Pick<SegmentCommit, 'id' | 'endpoint_id' | 'seq' | 'destination' | 'artifacts'>

/** Records the DLQ files among the artifacts of a commit. */
export async function insertDlqFiles(db: Tx, commit: CommitFiles, now: number): Promise<void> {
  const { id: commit_id, endpoint_id, seq, destination, artifacts } = commit
  const rows = Object.entries(artifacts).flatMap(([kind, { key, bytes, rows, view_id }]) =>
    parseArtifactKind(kind)?.type === 'dlq' && view_id !== undefined
      ? [
          {
            ...{
              commit_id,
              view_id,
              endpoint_id,
              segment_seq: seq,
              bytes,
              rows,
              created_at: now,
              counted_at: now,
              redriven_at: null,
            },
            destination_id: destination.id,
            s3_bucket: destination.bucket,
            s3_key: key,
            region: destination.region,
          },
        ]
      : [],
  )
  if (rows.length > 0) await db.insertInto('dlq_files').values(rows).execute()
}

export type StoredDlqFilesQuery = Omit<DlqFilesQuery, 'limit' | 'cursor'> & {
  readonly limit: number
  readonly after?: DlqFilePosition | undefined
}

export type DlqFilesPage = {
  readonly files: readonly StoredDlqFile[]
  /** Number of files on all pages. */
  readonly total: number
  /** Position of the last file on this page; undefined on the last page. */
  readonly last: DlqFilePosition | undefined
}

/**
 * Returns the files of one view version, newest first. Files of the same time are ordered by commit, so that pages neither repeat
 * nor skip a file. The caller checks the account: files do not store it.
 */
export async function listDlqFiles(db: Db, view_id: string, query: StoredDlqFilesQuery): Promise<DlqFilesPage> {
  const { limit, after } = query
  const total = await countRows(db.selectFrom('dlq_files').where(matchesQuery(view_id, query)))
  let page = db
    .selectFrom('dlq_files')
    .innerJoin('endpoints', 'endpoints.id', 'dlq_files.endpoint_id')
    .selectAll('dlq_files')
    .select('endpoints.name as endpoint_name')
    .where(matchesQuery(view_id, query))
  if (after !== undefined) {
    const { created_at, commit_id } = after
    page = page
      // Two conditions, because no index serves an OR.
      .where('dlq_files.created_at', '<=', created_at)
      .where(({ or, eb }) => or([eb('dlq_files.created_at', '<', created_at), eb('dlq_files.commit_id', '>', commit_id)]))
  }
  const rows = await page
    .orderBy('dlq_files.created_at', 'desc')
    .orderBy('dlq_files.commit_id')
    .limit(limit + 1)
    .execute()
  const files = rows.slice(0, limit)
  return { total, files: files.map(toDlqFile), last: rows.length > limit ? files.at(-1) : undefined }
}

function matchesQuery(view_id: string, { endpoint_id, created_after, created_before }: StoredDlqFilesQuery) {
  return ({ and, eb }: ExpressionBuilder<Database, 'dlq_files'>) =>
    and([
      eb('dlq_files.view_id', '=', view_id),
      ...(endpoint_id === undefined ? [] : [eb('dlq_files.endpoint_id', '=', endpoint_id)]),
      ...(created_after === undefined ? [] : [eb('dlq_files.created_at', '>=', fromTime(created_after))]),
      ...(created_before === undefined ? [] : [eb('dlq_files.created_at', '<', fromTime(created_before))]),
    ])
}

function toDlqFile(row: Selectable<Database['dlq_files']> & { readonly endpoint_name: string }): StoredDlqFile {
  return {
    endpoint_id: row.endpoint_id,
    endpoint_name: row.endpoint_name,
    segment_seq: row.segment_seq,
    destination_id: row.destination_id,
    s3_bucket: row.s3_bucket,
    s3_key: row.s3_key,
    region: row.region,
    bytes: row.bytes,
    rows: row.rows,
    created_at: toTime(row.created_at),
    redriven_at: toTimeOrNull(row.redriven_at),
  }
}

/**
 * Marks the files of a commit whose rows a re-drive read, and returns them: each file once. Whatever the order in which they and the
 * additions were recorded, the last of them finds the other.
 */
export async function claimRedrivenFiles(
  db: Tx,
  commit_id: string,
  now: number,
): Promise<readonly Pick<Database['dlq_files'], 'view_id' | 'rows' | 'counted_at'>[]> {
  return db
    .updateTable('dlq_files')
    .set({ redriven_at: now })
    .where('commit_id', '=', commit_id)
    .where('redriven_at', 'is', null)
    .where('view_id', 'in', ({ selectFrom }) =>
      selectFrom('commit_additions')
        .select(({ ref }) => ref('from_view_id').$notNull().as('view_id'))
        .where('commit_id', '=', commit_id)
        .where('from_view_id', 'is not', null),
    )
    .returning(['view_id', 'rows', 'counted_at'])
    .execute()
}

/** Finds the latest other version of a view that rejected rows of an endpoint in segments sealed within a time range. */
export async function findLatestRejectingVersion(
  db: Db,
  account_id: string,
  { name, except }: { readonly name: string; readonly except: string },
  { endpoint_id, from, to }: { readonly endpoint_id: string; readonly from: string | null; readonly to: string | null },
): Promise<{ readonly id: string; readonly version: number } | undefined> {
  return db
    .selectFrom('views')
    .select(['id', 'version'])
    .where(({ and }) => and({ account_id, name }))
    .where('id', '<>', except)
    .where(({ exists, selectFrom }) => {
      let rejected = selectFrom('dlq_files')
        .innerJoin('commits', 'commits.id', 'dlq_files.commit_id')
        .select('dlq_files.commit_id')
        .whereRef('dlq_files.view_id', '=', 'views.id')
        .where('dlq_files.endpoint_id', '=', endpoint_id)
      if (from !== null) rejected = rejected.where('commits.sealed_at', '>=', fromTime(from))
      if (to !== null) rejected = rejected.where('commits.sealed_at', '<', fromTime(to))
      return exists(rejected)
    })
    .orderBy('version', 'desc')
    .limit(1)
    .executeTakeFirst()
}
