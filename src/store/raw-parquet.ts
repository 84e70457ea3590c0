import type { ArtifactFiles } from '#model/commit.ts'
import { fromJson } from './columns.ts'
import type { Db } from './store.ts'

export type RawParquet = {
  readonly key: string
  readonly bytes: number
  readonly destination_id: string
  readonly bucket: string
  readonly region: string
}

/** Returns the raw Parquet files of the endpoint's latest commits, newest first. */
export async function listRawParquet(db: Db, endpoint_id: string, limit: number): Promise<readonly RawParquet[]> {
  const rows = await db
    .selectFrom('commits')
    .select(['destination_id', 'bucket', 'region', 'artifacts'])
    .where('endpoint_id', '=', endpoint_id)
    .orderBy('uploaded_at', 'desc')
    .limit(limit)
    .execute()
  return rows.flatMap(({ artifacts, ...bucketFields }) => {
    const { parquet } = fromJson<ArtifactFiles>(artifacts)
    return parquet === undefined ? [] : [{ ...bucketFields, key: parquet.key, bytes: parquet.bytes }]
  })
}
