import { MiB } from '#lib/bytes.ts'
import { Database, type Rows } from './database.ts'

/** Runs one query that may read the files under the directories and nothing else. For small results. */
export async function queryParquet({
  directories,
  sql,
  signal,
}: {
  readonly directories: readonly string[]
  readonly sql: string
  readonly signal?: AbortSignal
}): Promise<Rows> {
  const database = await Database.open({ directories, memoryBytes: 256 * MiB })
  try {
    const connection = await database.connect()
    return await connection.query(sql, signal === undefined ? {} : { signal })
  } finally {
    database.close()
  }
}
