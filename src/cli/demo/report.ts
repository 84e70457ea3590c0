import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { queryParquet } from '#duckdb/query-parquet.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { countNoun } from '#lib/count-noun.ts'
import { parseJson } from '#lib/json.ts'
import { SegmentCommit } from '#model/commit.ts'
import { formatTable } from './table.ts'

export type ReportOptions = {
  /** Directory of the bucket. */
  readonly bucket: string
  readonly prefix: string
  readonly endpointId: string
  readonly viewName: string
  /** Columns of the terminal. */
  readonly width: number
}

type DeadLetter = {
  readonly error_code: string
  readonly column: string | null
  readonly message: string
  readonly record: string | null
  readonly segment_seq: number
  readonly record_index: number
}

/** Formats a report of the delivered data. Reads only files that a marker lists, as every reader of the bucket should. */
export async function formatReport({ bucket, prefix, endpointId, viewName, width }: ReportOptions): Promise<string> {
  const commits = await readMarkers(join(bucket, prefix, endpointId, 'commits'))
  const files = (kind: string) =>
    commits.flatMap(({ artifacts }) =>
      Object.entries(artifacts).flatMap(([name, { key }]) => (name.startsWith(kind) ? [join(bucket, key)] : [])),
    )
  return [
    ...(await describeTypedRows(bucket, files(`views/${viewName}/`), width)),
    ...(await describeRawRecords(bucket, files('parquet'))),
    ...(await describeDeadLetters(files(`dlq/${viewName}/`), width)),
    ...describeCounters(viewName, commits, width),
  ].join('\n')
}

async function describeTypedRows(bucket: string, paths: readonly string[], width: number): Promise<readonly string[]> {
  if (paths.length === 0) return []
  const from = readParquet(paths)
  const count = await queryParquet({ directories: [bucket], sql: `SELECT count(*) FROM ${from}` })
  const sample = await queryParquet({ directories: [bucket], sql: `SELECT * FROM ${from} USING SAMPLE 8 ROWS (reservoir, 7)` })
  return [
    `Typed Parquet: ${formatNumber(count.rows[0]?.[0])} rows in ${countFiles(paths)}, 8 of them`,
    '',
    formatTable(sample.columns, sample.rows, { width }),
    '',
  ]
}

async function describeRawRecords(bucket: string, paths: readonly string[]): Promise<readonly string[]> {
  const raw = await queryParquet({ directories: [bucket], sql: `SELECT count(*) FROM ${readParquet(paths)}` })
  return [`Raw Parquet: ${formatNumber(raw.rows[0]?.[0])} records as they were sent, in ${countFiles(paths)}`, '']
}

async function describeDeadLetters(paths: readonly string[], width: number): Promise<readonly string[]> {
  const contents = await Promise.all(paths.map((path) => readFile(path)))
  const rows = contents.flatMap((bytes) =>
    gunzipSync(bytes).toString('utf8').trimEnd().split('\n').map(parseJson),
  ) as DeadLetter[]
  const kinds = Map.groupBy(rows, ({ error_code, column }) => `${error_code} ${column ?? ''}`)
  return [
    `Dead letters: ${formatNumber(rows.length)} rows, the first of each kind (its position is segment/record)`,
    '',
    formatTable(
      ['error_code', 'column', 'rows', 'position', 'message', 'record'],
      [...kinds.values()].map((sameKind) => {
        const [first] = sameKind
        const position = `${first?.segment_seq}/${first?.record_index}`
        return [first?.error_code, first?.column, sameKind.length, position, first?.message, first?.record]
      }),
      { width, narrowest: 12 },
    ),
    '',
  ]
}

function describeCounters(viewName: string, commits: readonly SegmentCommit[], width: number): readonly string[] {
  const outcomes = commits.flatMap(({ views }) => views)
  const names = ['processed', 'accepted', 'dropped', 'dlq', 'failed', 'cast_nulls'] as const
  const sums = names.map((name) => outcomes.reduce((sum, outcome) => sum + outcome[name], 0))
  return [
    'Counters (processed = accepted + dropped + dlq + failed)',
    '',
    formatTable(['view', ...names], [[viewName, ...sums]], { width }),
    '',
  ]
}

async function readMarkers(directory: string): Promise<readonly SegmentCommit[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const markers = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.json'))
  return Promise.all(
    markers.map(async ({ parentPath, name }) => SegmentCommit.parse(parseJson(await readFile(join(parentPath, name), 'utf8')))),
  )
}

function readParquet(paths: readonly string[]): string {
  return `read_parquet([${paths.map(quoteLiteral).join(', ')}], hive_partitioning = false)`
}

function formatNumber(value: unknown): string {
  return Number(value).toLocaleString('en-US')
}

function countFiles(paths: readonly string[]): string {
  return countNoun(paths.length, 'file')
}
