import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { queryParquet } from '#duckdb/query-parquet.ts'
import { parseJson } from '#lib/json.ts'
import { type ArtifactKind, parseArtifactKind } from '#model/artifact.ts'
import { SegmentCommit } from '#model/commit.ts'
import { table } from './table.ts'

export type ReportOptions = {
  /** Folder of the bucket. */
  readonly bucket: string
  readonly prefix: string
  readonly endpointId: string
  readonly viewName: string
}

/** What arrived, read as any reader of the bucket would: only the files that a marker lists. */
export async function report({ bucket, prefix, endpointId, viewName }: ReportOptions): Promise<string> {
  const folder = join(bucket, prefix, endpointId)
  const commits = await readMarkers(join(folder, 'commits'))
  const files = (isWanted: (kind: ArtifactKind) => boolean) =>
    commits.flatMap(({ artifacts }) =>
      Object.entries(artifacts).flatMap(([name, { key }]) => {
        const kind = parseArtifactKind(name)
        return kind !== undefined && isWanted(kind) ? [join(bucket, key)] : []
      }),
    )
  const viewFiles = files((kind) => kind.type === 'view' && kind.name === viewName)
  const rawFiles = files(({ type }) => type === 'parquet')
  const dlqFiles = files((kind) => kind.type === 'dlq' && kind.name === viewName)
  const dlq = (await Promise.all(dlqFiles.map((path) => readFile(path)))).flatMap((bytes) =>
    gunzipSync(bytes).toString('utf8').trimEnd().split('\n').map(parseJson),
  ) as {
    error_code: string
    column: string | null
    message: string
    record: string | null
    segment_seq: number
    record_index: number
  }[]

  const sections: string[] = []
  if (viewFiles.length > 0) {
    const from = `read_parquet(${sqlList(viewFiles)}, hive_partitioning = false)`
    const count = await queryParquet({ directories: [bucket], sql: `SELECT count(*) FROM ${from}` })
    const rows = await queryParquet({ directories: [bucket], sql: `SELECT * FROM ${from} USING SAMPLE 8 ROWS (reservoir, 7)` })
    sections.push(
      `Typed Parquet: ${number(count.rows[0]?.[0])} rows in ${viewFiles.length} files, 8 of them`,
      '',
      table(rows.columns, rows.rows),
      '',
    )
  }
  const raw = await queryParquet({
    directories: [bucket],
    sql: `SELECT count(*), sum(strlen(payload)) FROM read_parquet(${sqlList(rawFiles)})`,
  })
  sections.push(`Raw Parquet: ${number(raw.rows[0]?.[0])} records as they were sent, in ${rawFiles.length} files`, '')
  sections.push(`Dead letters: ${number(dlq.length)} rows, the first of each kind`, '')
  const kinds = Map.groupBy(dlq, ({ error_code, column }) => `${error_code} ${column ?? ''}`)
  sections.push(
    table(
      ['error_code', 'column', 'rows', 'segment/record', 'message', 'record'],
      [...kinds.values()].map((rows) => {
        const [first] = rows
        return [
          first?.error_code,
          first?.column,
          rows.length,
          `${first?.segment_seq}/${first?.record_index}`,
          first?.message,
          first?.record,
        ]
      }),
    ),
    '',
  )
  const outcomes = commits.flatMap(({ views }) => views)
  const sum = (of: 'processed' | 'accepted' | 'dropped' | 'dlq' | 'cast_nulls') =>
    outcomes.reduce((total, outcome) => total + outcome[of], 0)
  sections.push(
    'Counters (processed = accepted + dropped + dlq)',
    '',
    table(
      ['view', 'processed', 'accepted', 'dropped', 'dlq', 'cast_nulls'],
      [[viewName, sum('processed'), sum('accepted'), sum('dropped'), sum('dlq'), sum('cast_nulls')]],
    ),
    '',
  )
  return sections.join('\n')
}

async function readMarkers(folder: string): Promise<readonly SegmentCommit[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const markers = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.json'))
  return Promise.all(
    markers.map(async ({ parentPath, name }) => SegmentCommit.parse(parseJson(await readFile(join(parentPath, name), 'utf8')))),
  )
}

function sqlList(paths: readonly string[]): string {
  return `[${paths.map((path) => `'${path.replaceAll("'", "''")}'`).join(', ')}]`
}

function number(value: unknown): string {
  return Number(value).toLocaleString('en-US')
}
