import { quoteLiteral } from '#duckdb/quote.ts'
import { isDlq, type Slice, verdicts } from './extraction.ts'
import type { NamedView } from './record-table.ts'
import { printType } from './types.ts'

/** The rows of a view that are neither accepted nor filtered out, as the DLQ shows them, in the order of the records. */
export function dlqSql(
  { name, version, compiled }: NamedView,
  view: number,
  slices: readonly Slice[],
  segmentSeq: number,
): string {
  const verdict = `verdict_${view}`
  const names = compiled.columns.map((column) => column.name)
  const types = compiled.columns.map(({ type }) => printType(type))
  const unreadable = `${verdict} = ${verdicts.unreadable}`
  const isMissing = `${verdict} % 2 = 1`
  const column = (texts: readonly string[]): string => `[${texts.map(quoteLiteral).join(', ')}][(${verdict} + 1) // 2]`
  const rows = ({ records, extracted, first }: Slice): string =>
    `SELECT ${verdict}, failed_${view}, received_at, source, payload, payload_bytes, ${first} + records.rowid AS record_index
     FROM ${extracted} POSITIONAL JOIN ${records} AS records WHERE ${isDlq(verdict)}`
  return `SELECT
      CASE WHEN ${unreadable} THEN CASE WHEN payload IS NULL THEN 'invalid_utf8' ELSE 'invalid_json' END
           WHEN ${isMissing} THEN 'missing_required' ELSE 'cast_failed' END AS error_code,
      CASE WHEN ${verdict} > 0 THEN ${column(names)} END AS "column",
      CASE WHEN ${unreadable} THEN CASE WHEN payload IS NULL THEN 'the record is not UTF-8' ELSE 'the record is not JSON' END
           WHEN ${isMissing} THEN concat('the required column ', to_json(${column(names)}), ' has no value in the record')
           ELSE concat('the value ', to_json(failed_${view}), ' of the column ', to_json(${column(names)}), ' is not of type ', ${column(types)})
      END AS message,
      payload AS record, to_base64(payload_bytes) AS record_base64, ${segmentSeq} AS segment_seq, record_index,
      strftime(make_timestamp(received_at), '%Y-%m-%dT%H:%M:%S.%fZ') AS ingested_at, topic, client_id,
      ${quoteLiteral(name)} AS view, ${version} AS view_version
    FROM (${slices.map(rows).join(' UNION ALL ')}) AS judged JOIN sources ON sources.rowid = judged.source`
}
