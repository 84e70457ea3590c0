/** Reads the keys of a view from files that were delivered, to rebuild an index. */
import { dirname, join } from 'node:path'
import { Database } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import type { Definition } from '#model/definition.ts'
import { compileView } from '#views/compile.ts'
import { copyHashesSql, fileKeySql, keyBytes, separateKeys } from './key-hashes.ts'
import { buildLimits } from './limits.ts'

/** The files with the rows of a commit. A merged file has others as well: `firstRow` is the first of this commit. */
export type KeysOfCommit = {
  readonly id: string
  readonly files: readonly { readonly path: string; readonly rows?: { readonly firstRow: number; readonly count: number } }[]
}

/** A file of keys, by what they are of. */
export type KeysFile = { readonly of: string; readonly path: string }

export type ReadKeysOptions = {
  readonly definition: Definition
  readonly commits: readonly KeysOfCommit[]
  /** Where the files of keys are written. */
  readonly directory: string
  readonly memoryBytes: number
  readonly signal: AbortSignal
}

export async function readKeys({
  definition,
  commits,
  directory,
  memoryBytes,
  signal,
}: ReadKeysOptions): Promise<readonly KeysFile[]> {
  const hash = fileKeySql(await compileView(definition))
  const sources = commits.flatMap(({ files }) => files.map(({ path }) => dirname(path)))
  const database = await Database.open({
    directories: [...new Set([directory, ...sources])],
    spill: { directory: join(directory, 'spill'), bytesMax: buildLimits.spillBytesMin },
    memoryBytes,
  })
  try {
    const connection = await database.connect()
    const statement = { signal, timeoutMs: buildLimits.statementTimeoutMs }
    const written: KeysFile[] = []
    for (const [index, { id, files }] of commits.entries()) {
      const rows = files.map(rowsSql).join(' UNION ALL BY NAME ')
      const [path, hashes] = ['keys', 'hashes'].map((name) => join(directory, `${index}.${name}`)) as [string, string]
      await connection.run(copyHashesSql(hash, rows, hashes), statement)
      await separateKeys(hashes, { path, find: async (keys) => new Uint8Array(keys.length / keyBytes) }, `${hashes}.known`)
      written.push({ of: id, path })
    }
    return written
  } finally {
    database.close()
  }
}

function rowsSql({ path, rows }: KeysOfCommit['files'][number]): string {
  const read = (more: string) => `SELECT * FROM read_parquet(${quoteLiteral(path)}, hive_partitioning = false${more})`
  if (rows === undefined) return read('')
  const { firstRow, count } = rows
  return `${read(', file_row_number = true')} WHERE file_row_number BETWEEN ${firstRow} AND ${firstRow + count - 1}`
}
