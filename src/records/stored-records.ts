/**
 * Reads raw Parquet back into records.
 *
 * Law: every record is returned once, in the order of the segment, with the bytes that were sent. One row group is read at a time, as
 * much as its writer held in memory, and is returned in batches.
 */
import { Buffer } from 'node:buffer'
import { dirname } from 'node:path'
import { Database, type Value } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { buildLimits } from './limits.ts'
import type { RecordSource } from './sources.ts'

export type StoredRecord = RecordSource & { readonly receivedAtMicros: number; readonly payload: Buffer }

export type StoredRecordsOptions = {
  /** The file. Nothing outside its directory is read. */
  readonly path: string
  readonly memoryBytes: number
  /** Approximate size of a batch. */
  readonly batchBytes: number
  readonly signal: AbortSignal
}

/** Indexes of records; both ends are included. */
type Range = { readonly first: number; readonly last: number; readonly bytes: number }

export async function* readStoredRecords(options: StoredRecordsOptions): AsyncGenerator<readonly StoredRecord[]> {
  const { path, memoryBytes, batchBytes, signal } = options
  const database = await Database.open({ directories: [dirname(path)], memoryBytes })
  try {
    const statement = { signal, timeoutMs: buildLimits.statementTimeoutMs }
    const connection = await database.connect()
    const groups = await connection.query(
      `SELECT min(CASE WHEN path_in_schema = 'record_index' THEN CAST(stats_min_value AS BIGINT) END),
         max(CASE WHEN path_in_schema = 'record_index' THEN CAST(stats_max_value AS BIGINT) END), sum(total_uncompressed_size)
       FROM parquet_metadata(${quoteLiteral(path)}) GROUP BY row_group_id ORDER BY 1`,
      statement,
    )
    const ranges = groups.rows.map(([first, last, bytes]) => ({ first: Number(first), last: Number(last), bytes: Number(bytes) }))
    for (const range of mergeOverlapping(ranges)) {
      for (const { first, last } of split(range, batchBytes)) {
        const { rows } = await connection.query(
          `SELECT record_index, epoch_us(ingested_at), protocol, topic, client_id, payload, to_base64(payload_bytes), attributes
           FROM read_parquet(${quoteLiteral(path)}, hive_partitioning = false) WHERE record_index BETWEEN ${first} AND ${last}`,
          statement,
        )
        yield rows.toSorted(([a], [b]) => Number(a) - Number(b)).map(toRecord)
      }
    }
  } finally {
    database.close()
  }
}

/** Merges row groups whose record indexes overlap: the records of a file are only nearly in order. */
function mergeOverlapping(ranges: readonly Range[]): readonly Range[] {
  const merged: Range[] = []
  for (const range of ranges) {
    const before = merged.at(-1)
    if (before === undefined || before.last < range.first) merged.push(range)
    else {
      const last = Math.max(before.last, range.last)
      merged[merged.length - 1] = { first: before.first, last, bytes: before.bytes + range.bytes }
    }
  }
  return merged
}

function* split({ first, last, bytes }: Range, batchBytes: number): Generator<{ readonly first: number; readonly last: number }> {
  const step = Math.ceil((last - first + 1) / Math.max(1, Math.ceil(bytes / batchBytes)))
  for (let at = first; at <= last; at += step) yield { first: at, last: Math.min(last, at + step - 1) }
}

function toRecord([, receivedAt, protocol, topic, clientId, payload, base64, attributes]: readonly Value[]): StoredRecord {
  return {
    receivedAtMicros: Number(receivedAt),
    protocol: String(protocol ?? ''),
    topic: String(topic ?? ''),
    clientId: String(clientId ?? ''),
    attributes: String(attributes ?? ''),
    payload: payload === null ? Buffer.from(String(base64), 'base64') : Buffer.from(String(payload)),
  }
}
