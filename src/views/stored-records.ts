/**
 * Reads raw Parquet back into records.
 *
 * Law: every record once, in the order it had in the segment, with the bytes that were sent; batches are bounded by bytes.
 */
import { Buffer } from 'node:buffer'
import { dirname } from 'node:path'
import { Database } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { buildLimits } from '#model/limits.ts'
import type { RecordSource } from './sources.ts'

export type StoredRecord = RecordSource & { readonly receivedAtMicros: number; readonly payload: Buffer }

export type StoredRecordsOptions = {
  readonly path: string
  /** Beside it DuckDB spills what doesn't fit in memory. */
  readonly spillDirectory: string
  readonly memoryBytes: number
  /** Payload bytes of a batch; a larger record has one of its own. */
  readonly batchBytes: number
  readonly signal: AbortSignal
}

/** What DuckDB and JavaScript need for a row beside its payload. */
const ROW_BYTES = 128

export async function* readStoredRecords(options: StoredRecordsOptions): AsyncGenerator<readonly StoredRecord[]> {
  const { path, spillDirectory, memoryBytes, batchBytes, signal } = options
  const database = await Database.open({ directories: [dirname(path), spillDirectory], spillDirectory, memoryBytes })
  try {
    const statement = { signal, timeoutMs: buildLimits.statementTimeoutMs }
    const connection = await database.connect()
    // The file has the records nearly in order; `record_index` says for certain.
    await connection.run(
      `CREATE TABLE records AS SELECT epoch_us(ingested_at) AS received_at, protocol, topic, client_id, payload, payload_bytes
       FROM read_parquet(${quoteLiteral(path)}, hive_partitioning = false) ORDER BY record_index`,
      statement,
    )
    const bytes = `coalesce(strlen(payload), octet_length(payload_bytes)) + ${ROW_BYTES}`
    const batches = await connection.query(
      `SELECT min(id), max(id) FROM (SELECT rowid AS id, sum(${bytes}) OVER (ORDER BY rowid ROWS UNBOUNDED PRECEDING) // ${batchBytes} AS batch
       FROM records) GROUP BY batch ORDER BY 1`,
      statement,
    )
    for (const [first, last] of batches.rows) {
      const { rows } = await connection.query(
        `SELECT received_at, protocol, topic, client_id, payload, to_base64(payload_bytes) FROM records
         WHERE rowid BETWEEN ${Number(first)} AND ${Number(last)} ORDER BY rowid`,
        statement,
      )
      yield rows.map(([receivedAt, protocol, topic, clientId, payload, base64]) => ({
        receivedAtMicros: Number(receivedAt),
        protocol: String(protocol ?? ''),
        topic: String(topic ?? ''),
        clientId: String(clientId ?? ''),
        payload: payload === null ? Buffer.from(String(base64), 'base64') : Buffer.from(String(payload)),
      }))
    }
  } finally {
    database.close()
  }
}
