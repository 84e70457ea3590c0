/**
 * Shows the latest records that were delivered, and those that views rejected.
 *
 * Law: it is for looking at a few. It reads a bounded number of bytes of the newest files, whatever is asked for, in a process that may be
 * killed.
 */
import { AppError } from '#errors.ts'
import type { DlqReasonsQuery, DlqRecordsQuery, RecordsQuery } from '#model/delivered-record.ts'
import { compactionLimits, recordSampleLimits } from '#model/limits.ts'
import type { Principal } from '#model/principal.ts'
import { listCommits, listSegmentCommits } from '#store/commits/commits.ts'
import { listDlqFiles } from '#store/commits/dlq-files.ts'
import type { RowRange } from '#store/commits/moved-files.ts'
import { listRawParquet, type RawParquet } from '#store/commits/raw-parquet.ts'
import { assertEverExisted } from '#store/endpoints/endpoints.ts'
import { getView } from '#store/endpoints/views.ts'
import type { Db, Store } from '#store/store.ts'
import { type BucketFile, type BucketFiles, takeFitting } from './bucket-files.ts'

/** Provided by the composition: `preview/preview-workers.ts`. Each returns the body of the response, as JSON. */
export type RowReader = {
  readonly readRawRows: (
    files: readonly { readonly path: string; readonly commit_id: string; readonly part?: RowRange }[],
    query: Pick<RecordsQuery, 'limit' | 'contains'>,
    account: string,
    signal: AbortSignal,
  ) => Promise<Uint8Array>
  readonly readDlqRows: (
    files: readonly { readonly path: string; readonly endpoint_id: string }[],
    query: Pick<DlqRecordsQuery, 'limit' | 'error_code' | 'column'>,
    account: string,
    signal: AbortSignal,
  ) => Promise<Uint8Array>
  readonly countDlqReasons: (paths: readonly string[], account: string, signal: AbortSignal) => Promise<Uint8Array>
}

export type DeliveredRecordsOptions = { readonly store: Store; readonly bucketFiles: BucketFiles; readonly reader: RowReader }

const noRows = Buffer.from('{"items":[]}')
const noReasons = Buffer.from('{"items":[],"files_read":0,"rows_read":0}')
const { commitsMax, filesMax, searchedFilesMax, bytesMax } = recordSampleLimits

export type DeliveredRecords = ReturnType<typeof deliveredRecordService>

export function deliveredRecordService({ store, bucketFiles, reader }: DeliveredRecordsOptions) {
  const { db } = store

  return {
    async list({ account_id }: Principal, endpoint_id: string, query: RecordsQuery, signal: AbortSignal): Promise<Uint8Array> {
      await assertEverExisted(db, account_id, endpoint_id)
      const files = await findRawFiles(db, endpoint_id, query)
      return read(account_id, files, signal, (copies) =>
        reader.readRawRows(
          copies.map(({ path, commit_id, part }) => ({ path, commit_id, ...(part && { part }) })),
          query,
          account_id,
          signal,
        ),
      )
    },

    async listRejected(
      { account_id }: Principal,
      view_id: string,
      query: DlqRecordsQuery,
      signal: AbortSignal,
    ): Promise<Uint8Array> {
      await getView(db, account_id, view_id)
      const isSearch = query.error_code !== undefined || query.column !== undefined
      const files = await findDlqFiles(db, view_id, query, isSearch ? searchedFilesMax : filesMax)
      return read(account_id, files, signal, (copies) =>
        reader.readDlqRows(
          copies.map((file) => ({ path: file.path, endpoint_id: file.endpoint_id })),
          query,
          account_id,
          signal,
        ),
      )
    },

    async listReasons(
      { account_id }: Principal,
      view_id: string,
      query: DlqReasonsQuery,
      signal: AbortSignal,
    ): Promise<Uint8Array> {
      await getView(db, account_id, view_id)
      const files = await findDlqFiles(db, view_id, query, searchedFilesMax)
      if (files.length === 0) return noReasons
      return read(account_id, files, signal, (copies) =>
        reader.countDlqReasons(
          copies.map(({ path }) => path),
          account_id,
          signal,
        ),
      )
    },
  }

  async function read<File extends BucketFile>(
    account_id: string,
    files: readonly File[],
    signal: AbortSignal,
    use: (copies: readonly (File & { readonly path: string })[]) => Promise<Uint8Array>,
  ): Promise<Uint8Array> {
    if (files.length === 0) return noRows
    return bucketFiles.withCopies(account_id, files, signal, (paths) =>
      use(files.map((file, index) => ({ ...file, path: paths[index] ?? '' }))),
    )
  }
}

/** Returns the newest files that together may be read. */
async function findDlqFiles(
  db: Db,
  view_id: string,
  { endpoint_id, created_after, created_before }: DlqReasonsQuery,
  count: number,
) {
  const { files } = await listDlqFiles(db, view_id, { limit: count, endpoint_id, created_after, created_before })
  const found = files.map(({ s3_key, s3_bucket, ...file }) => ({ ...file, key: s3_key, bucket: s3_bucket }))
  return takeFitting(found, { filesMax: count, bytesMax })
}

/** Throws conflict if the endpoint delivers something else, or only files that are too large. */
async function findRawFiles(
  db: Db,
  endpoint_id: string,
  { limit, node_id, segment_seq: seq }: RecordsQuery,
): Promise<readonly RawParquet[]> {
  const segment = node_id === undefined || seq === undefined ? undefined : { node_id, seq }
  const files = await listRawParquet(db, endpoint_id, commitsMax, segment)
  // A segment that was merged is read from the merged file, however large that is.
  const isMerged = segment !== undefined && files.some(({ part }) => part !== undefined)
  const bounds = { filesMax: Math.min(filesMax, limit), bytesMax: isMerged ? compactionLimits.readBytesMax : bytesMax }
  const fitting = takeFitting(files, bounds)
  if (fitting.length > 0) return fitting
  if (files.length > 0)
    throw new AppError(
      'conflict',
      `the raw Parquet is larger than ${bytesMax} bytes: lower segment_bytes of the endpoint, or query the bucket`,
    )
  const commits =
    segment === undefined
      ? (await listCommits(db, endpoint_id, { limit: 1 })).items
      : await listSegmentCommits(db, endpoint_id, segment)
  if (commits.length === 0) return []
  throw new AppError('conflict', 'the latest segments have no raw Parquet: add parquet to output_formats of the endpoint')
}
