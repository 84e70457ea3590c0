/** The words of definitions. The compiler's types tie the keys to the API description: a key that is added there is missing here. */
import type { Schemas } from '../../api/client.ts'

type Words<T> = { readonly [Key in keyof Required<T>]: string }

export const definitionKeys = {
  columns: 'the columns, in the order of the Parquet file',
  filters: 'conditions that a record must pass',
  dedupe_by: 'of rows with the same values in these columns, the first is written',
  dedupe_within: 'with dedupe_by: how long before a segment others were sealed that it is compared with, on one node: 24h',
  partition_by: 'columns whose values name folders: country=DE',
  sort_by: 'the order of the rows in each file',
  bloom_filters: 'whether files have Bloom filters, which is the default',
  expand: 'an array whose elements are rows: $.items[*]',
  lists: 'for elements of [*] without a value: aligned (NULL), or packed (nothing)',
} as const satisfies Words<Schemas['Definition']>

export const columnKeys = {
  name: 'name of the column',
  type: 'type of the values: each is read as text and cast',
  path: 'where the value is: $.a.b in the record, $item.a with expand, or $$.topic of the envelope',
  format: 'how times are written: epoch_ms, or a format such as %d/%m/%Y',
  value: 'instead of a path: SQL over other columns and $$.… of the envelope',
  hidden: 'whether only other columns and filters use it: it is not written',
  required: 'whether a record without a value is a dead letter',
  cast_failures: 'what a value that cannot be cast becomes: null or dlq',
  parquet: 'a form in Parquet that not every engine reads: native or naive',
} as const satisfies Words<Schemas['Column']>

export const filterKeys = {
  condition: 'SQL over the columns of this view',
  description: 'for people: what the filter is for',
} as const satisfies Words<Schemas['Filter']>

/** Formats of times, with an example of each. */
export const timeFormats = {
  epoch_ms: '1795162530500',
  epoch_s: '1795162530.5',
  epoch_us: 'microseconds since 1970',
  epoch_ns: 'nanoseconds since 1970',
  '%d/%m/%Y %H:%M:%S': '20/11/2026 08:15:30',
  '%m/%d/%Y %H:%M:%S': '11/20/2026 08:15:30',
  '%d/%b/%Y:%H:%M:%S %z': '20/Nov/2026:08:15:30 +0100',
} as const

/** docs/views.md, “Types and values”. */
export const types = [
  'VARCHAR',
  'BIGINT',
  'INTEGER',
  'DOUBLE',
  'BOOLEAN',
  'TIMESTAMP',
  'TIMESTAMPTZ',
  'DATE',
  'TIME',
  'DECIMAL(18,2)',
  'UUID',
  'JSON',
  'BLOB',
  'TINYINT',
  'SMALLINT',
  'HUGEINT',
  'UTINYINT',
  'USMALLINT',
  'UINTEGER',
  'UBIGINT',
  'UHUGEINT',
  'FLOAT',
  'VARCHAR[]',
  'BIGINT[]',
  'DOUBLE[]',
] as const

/** Fields of the envelope, which every record has or which are NULL. */
export const envelopePaths = {
  '$$.ingested_at': 'when the node received the record',
  '$$.received_at': 'another name of $$.ingested_at',
  '$$.protocol': 'http or mqtt',
  '$$.topic': 'MQTT topic',
  '$$.client_id': 'MQTT client',
  '$$.content_type': 'of an MQTT 5 message',
  '$$.headers.': 'HTTP header that the endpoint keeps',
  '$$.address': 'address of the client, if the endpoint keeps it',
  '$$.key_name': 'name of the API key, if the endpoint keeps it',
  '$$.item_index': 'position of the row’s element in the record, with expand',
} as const

/** Words of conditions that are used most. docs/views.md lists all. */
export const conditionWords = [
  'AND',
  'OR',
  'NOT',
  'IS NULL',
  'IS NOT NULL',
  'IN',
  'BETWEEN',
  'LIKE',
  'ILIKE',
  'CASE WHEN',
  'CAST',
  'TRY_CAST',
  'lower',
  'upper',
  'concat',
  'replace',
  'trim',
  'length',
  'starts_with',
  'ends_with',
  'contains',
  'regexp_matches',
  'regexp_extract',
  'split_part',
  'sha256',
  'hmac_sha256',
  'mask_ip',
  'url_host',
  'url_path',
  'url_param',
  'json_keys',
  'coalesce',
  'nullif',
  'if',
  'greatest',
  'least',
  'substr',
  'date_trunc',
  'date_part',
  'epoch_s',
  'epoch_ms',
  'epoch_us',
  'epoch_ns',
  'strptime',
  'at_zone',
  'abs',
  'round',
  'floor',
  'ceil',
  'list_contains',
  'array_length',
] as const
