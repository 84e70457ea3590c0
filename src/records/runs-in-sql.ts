/** Records as rows: DuckDB reads runs (record-runs.ts) through a function, and the statement splits them. */
import type { Connection } from '#duckdb/database.ts'
import type { Piece } from './pieces.ts'
import type { RecordRuns } from './record-runs.ts'

/** Lets statements on any connection of the database read the records. */
export function registerRuns(connection: Connection, runs: Pick<RecordRuns, 'open'>): void {
  connection.registerTable({
    name: 'record_runs',
    columns: {
      first: 'BIGINT',
      is_encoded: 'BOOLEAN',
      separator: 'VARCHAR',
      run: 'VARCHAR',
      received_at: 'BIGINT[]',
      source: 'INTEGER[]',
    },
    open: (from, to) => {
      const next = runs.open(from, to)
      return () => {
        const run = next()
        if (run === undefined) return undefined
        return [run.first, run.form === 'encoded', run.separator, run.text, run.receivedAt, run.source]
      }
    },
  })
}

/**
 * SQL for the records of the pieces: record_index (in the segment), received_at, source (a row id of the table `sources`), payload,
 * payload_bytes. A payload that is not UTF-8 is in the column for bytes, and `payload` is NULL.
 */
export function recordsSql(pieces: readonly Piece[]): string {
  const of = ({ from, to }: Piece): string =>
    `SELECT first + generate_subscripts(source, 1) - 1 AS record_index, unnest(received_at) AS received_at, unnest(source) AS source,
       unnest(string_split(run, separator)) AS part, is_encoded FROM record_runs(${from}, ${to})`
  return `SELECT record_index, received_at, source,
      CASE WHEN NOT is_encoded THEN part WHEN part[1] = 't' THEN decode(from_base64(part[2:])) END AS payload,
      CASE WHEN is_encoded AND part[1] = 'b' THEN from_base64(part[2:]) END AS payload_bytes
    FROM (${pieces.map(of).join(' UNION ALL ')})`
}
