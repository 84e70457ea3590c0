/**
 * Reads the latest rows of files that were delivered: raw Parquet and dead letters.
 *
 * Law: no file is trusted. The caller runs this in a process that may be killed; each payload is cut, so that the result is bounded.
 */
import { dirname } from 'node:path'
import { Database, type Value } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { MiB } from '#lib/bytes.ts'
import { parseJson } from '#lib/json.ts'
import type { DeliveredRecord, DlqReasons, DlqRecord } from '#model/delivered-record.ts'
import { recordSampleLimits } from '#model/limits.ts'
import type { DlqRowsTask, RawRowsTask } from './preview-protocol.ts'

const memoryBytes = 256 * MiB
const { charsMax, reasonsMax } = recordSampleLimits

/** Returns rows of raw Parquet: the files in their order, the last record of each first. */
export function readRawRows({ files, limit, contains }: RawRowsTask): Promise<DeliveredRecord[]> {
  // Base64 of whole groups of three bytes, so that it can be cut and decoded.
  const query = (path: string, count: number, { part }: RawRowsTask['files'][number]) => `SELECT segment_seq, record_index,
      strftime(make_timestamp(epoch_us(ingested_at)), '%Y-%m-%dT%H:%M:%S.%fZ'), protocol, topic, client_id, attributes,
      left(payload, ${charsMax}), left(to_base64(payload_bytes), ${charsMax}),
      coalesce(length(payload), length(to_base64(payload_bytes))) > ${charsMax}
    FROM read_parquet(${quoteLiteral(path)}, hive_partitioning = false, file_row_number = true)
    WHERE ${part === undefined ? 'true' : `file_row_number BETWEEN ${part.first_row} AND ${part.first_row + part.rows - 1}`}
      ${contains === undefined ? '' : `AND contains(payload, ${quoteLiteral(contains)})`}
    ORDER BY record_index DESC LIMIT ${count}`
  return readFiles(files, limit, query, (row, { commit_id }) => ({ commit_id, ...recordIn(row) }))
}

function recordIn([seq, index, at, protocol, topic, clientId, attributes, text, base64, isCut]: readonly Value[]) {
  return {
    segment_seq: Number(seq),
    record_index: Number(index),
    ingested_at: String(at),
    protocol: String(protocol ?? ''),
    topic: textOf(topic),
    client_id: textOf(clientId),
    attributes: objectIn(parseJson(String(attributes ?? ''))),
    record: textOf(text),
    record_base64: textOf(base64),
    is_cut: isCut === true,
  }
}

/** Returns rows of DLQ files: the files in their order, the last record of each first. */
export function readDlqRows({ files, limit, error_code, column }: DlqRowsTask): Promise<DlqRecord[]> {
  // The parentheses are needed: the arrow binds weaker than AND.
  const wanted = Object.entries({ error_code, column }).flatMap(([name, value]) =>
    value === undefined ? [] : [`(json->>${quoteLiteral(`$.${name}`)}) = ${quoteLiteral(value)}`],
  )
  const query = (path: string, count: number) => `SELECT json
    FROM read_ndjson_objects(${quoteLiteral(path)}, compression = 'gzip', ignore_errors = true)
    ${wanted.length === 0 ? '' : `WHERE ${wanted.join(' AND ')}`}
    ORDER BY TRY_CAST((json->>'$.record_index') AS BIGINT) DESC NULLS LAST LIMIT ${count}`
  return readFiles(files, limit, query, ([json], { endpoint_id }) => {
    const row = objectIn(parseJson(String(json))) ?? {}
    const [record, record_base64] = [textOf(row['record']), textOf(row['record_base64'])]
    return {
      endpoint_id,
      error_code: String(row['error_code']),
      column: textOf(row['column']),
      item: textOf(row['item']),
      message: String(row['message']),
      segment_seq: Number(row['segment_seq']),
      record_index: Number(row['record_index']),
      ingested_at: String(row['ingested_at']),
      protocol: String(row['protocol'] ?? ''),
      topic: textOf(row['topic']),
      client_id: textOf(row['client_id']),
      attributes: objectIn(row['attributes']),
      record: cut(record),
      record_base64: cut(record_base64),
      is_cut: (record ?? record_base64 ?? '').length > charsMax,
    }
  })
}

/** Counts the rows of DLQ files by why they were rejected. */
export async function countDlqReasons(paths: readonly string[]): Promise<DlqReasons> {
  const [first] = paths
  if (first === undefined) return { items: [], files_read: 0, rows_read: 0 }
  const database = await Database.open({ directories: [dirname(first)], memoryBytes })
  try {
    const connection = await database.connect()
    // The window counts before LIMIT cuts: it has the rows of reasons that are left out, too.
    const { rows } = await connection.query(`
      SELECT code, col, count(*) AS n, arg_max(message, received), max(received), sum(count(*)) OVER () FROM (
        SELECT json->>'$.error_code' AS code, json->>'$.column' AS col, json->>'$.message' AS message, json->>'$.ingested_at' AS received
        FROM read_ndjson_objects([${paths.map(quoteLiteral).join(', ')}], compression = 'gzip', ignore_errors = true)
      ) GROUP BY code, col ORDER BY n DESC, code, col LIMIT ${reasonsMax}`)
    const items = rows.map(([code, column, count, message, at]) => ({
      error_code: String(code),
      column: textOf(column),
      rows: Number(count),
      message: String(message ?? ''),
      last_ingested_at: String(at ?? ''),
    }))
    return { items, files_read: paths.length, rows_read: Number(rows[0]?.[5] ?? 0) }
  } finally {
    database.close()
  }
}

/** Runs the query on one file after another until there are enough rows. */
async function readFiles<File extends { readonly path: string }, Row>(
  files: readonly File[],
  limit: number,
  query: (path: string, count: number, file: File) => string,
  toRow: (row: readonly Value[], file: File) => Row,
): Promise<Row[]> {
  const [first] = files
  if (first === undefined) return []
  const database = await Database.open({ directories: [dirname(first.path)], memoryBytes })
  try {
    const connection = await database.connect()
    const found: Row[] = []
    for (const file of files) {
      if (found.length >= limit) break
      const { rows } = await connection.query(query(file.path, limit - found.length, file))
      found.push(...rows.map((row) => toRow(row, file)))
    }
    return found
  } finally {
    database.close()
  }
}

function cut(text: string | null): string | null {
  return text === null || text.length <= charsMax ? text : text.slice(0, charsMax).toWellFormed()
}

function textOf(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value)
}

function objectIn(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null
}
