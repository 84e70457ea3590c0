import { quoteLiteral } from '#duckdb/quote.ts'
import { printType } from '#model/types/column-type.ts'
import type { NamedView } from '#views/compiled-view.ts'
import { verdicts } from '#views/extraction.ts'
import type { Piece } from './pieces.ts'
import { recordsSql } from './runs-in-sql.ts'

/**
 * Returns SQL for the DLQ rows of a view, in the order of the records.
 * `refused` is a table or a subquery in parentheses with record_index, verdict and failed (the text whose cast failed, or why an array is not
 * expanded or patterns are too slow), and for a view that expands an array item (the path of the element).
 */
export function dlqSql(
  { name, version, compiled }: NamedView,
  refused: string,
  pieces: readonly Piece[],
  segmentSeq: number,
): string {
  const names = compiled.columns.map((column) => column.name)
  const types = compiled.columns.map(({ type }) => printType(type))
  const isComputed = compiled.columns.map(({ source }) => source.from === 'columns')
  const tooComplex = `verdict = ${verdicts.tooComplex}`
  const unreadable = `verdict = ${verdicts.unreadable}`
  const unplaced = `verdict = ${verdicts.unplaced}`
  const expandFailed = `verdict = ${verdicts.expandFailed}`
  const isMissing = 'verdict % 2 = 1'
  const item = compiled.expand === undefined ? 'CAST(NULL AS VARCHAR)' : 'item'
  const ofItem = compiled.expand === undefined ? '' : `, coalesce(concat(' in the element ', item), '')`
  const column = (texts: readonly string[]): string => `[${texts.map(quoteLiteral).join(', ')}][(verdict + 1) // 2]`
  // With the records on the left, the few refused rows are hashed. `is_binary` keeps payloads out of statements that only count rows.
  const judged = `SELECT records.*, verdict, failed${compiled.expand === undefined ? '' : ', item'} FROM (SELECT *, payload IS NULL AS is_binary FROM (${recordsSql(pieces)})) AS records
     JOIN ${refused} AS refused ON refused.record_index = records.record_index`
  return `SELECT
      CASE WHEN ${tooComplex} THEN 'too_complex'
           WHEN ${expandFailed} THEN 'expand_failed'
           WHEN ${unreadable} THEN CASE WHEN is_binary THEN 'invalid_utf8' ELSE 'invalid_json' END
           WHEN ${unplaced} THEN 'no_partition'
           WHEN ${isMissing} THEN 'missing_required' ELSE 'cast_failed' END AS error_code,
      CASE WHEN verdict > 0 THEN ${column(names)} END AS "column", ${item} AS item,
      CASE WHEN ${tooComplex} THEN coalesce(failed, 'the columns of the record need more memory than one record may use')
           WHEN ${expandFailed} THEN failed
           WHEN ${unreadable} THEN CASE WHEN is_binary THEN 'the record is not valid UTF-8' ELSE 'the record is not valid JSON' END
           WHEN ${unplaced} THEN failed
           WHEN ${isMissing} THEN concat('required column ', to_json(${column(names)}), ' has no value in the record'${ofItem})
           WHEN [${isComputed.join(', ')}][(verdict + 1) // 2] THEN
             concat('column ', to_json(${column(names)}), ' cannot be computed as ', ${column(types)}, ' from ', failed${ofItem})
           ELSE concat('the value ', to_json(failed), ' of column ', to_json(${column(names)}), ' is not of type ', ${column(types)}${ofItem})
      END AS message,
      payload AS record, to_base64(payload_bytes) AS record_base64, ${segmentSeq} AS segment_seq, record_index,
      strftime(make_timestamp(received_at), '%Y-%m-%dT%H:%M:%S.%fZ') AS ingested_at, protocol, topic, client_id,
      CAST(attributes AS JSON) AS attributes,
      ${quoteLiteral(name)} AS view, ${version} AS view_version
    FROM (${judged}) AS judged JOIN sources ON sources.rowid = judged.source`
}
