/**
 * Measures the columns of a view in one segment: nulls, minimum and maximum.
 *
 * Owns: reading them. Does not own: their order and canonical text (model/types/), the outcome of rows (observer.ts), sums over segments
 * (model/view-quality.ts).
 * The footer of the Parquet file that was just written has most of these, so that no value is read again. It has none for lists, for
 * floating point columns with NaN or infinity, and for some long texts. Only those columns are read.
 * The file does not have hidden columns. Of those, failures alone are known.
 */
import type { Rows, Value } from '#duckdb/database.ts'
import { quoteIdentifier, quoteLiteral } from '#duckdb/quote.ts'
import { type ColumnType, orderOf, printType } from '#model/types/column-type.ts'
import { boundCharsMax } from '#model/types/orders.ts'
import { type ColumnQuality, extreme } from '#model/view-quality.ts'
import type { CompiledColumn } from '#views/compiled-view.ts'
import type { Tally } from './tally.ts'

export type ColumnQualitiesOptions = {
  readonly columns: readonly CompiledColumn[]
  /** The Parquet file of the accepted rows, and their number. */
  readonly path: string
  readonly rows: number
  readonly tallies: Tally['ofColumns']
  readonly query: (sql: string) => Promise<Rows>
}

type Range = Pick<ColumnQuality, 'min' | 'max'>
type Found = Range & { readonly nulls: number; readonly isComplete: boolean }

/** Returns the quality of each column in the file, and of each hidden one that failed, in definition order. */
export async function columnQualities({ path, rows, tallies, query, ...view }: ColumnQualitiesOptions): Promise<ColumnQuality[]> {
  const written = [...view.columns.entries()].filter(([, { hidden }]) => !hidden)
  const columns = written.map(([, column]) => column)
  const found = rows === 0 ? [] : await readFooter(columns, path, query)
  const incomplete = columns.flatMap((column, index) => (found[index]?.isComplete === false ? [{ column, index }] : []))
  if (incomplete.length > 0) {
    const values = await readValues(
      incomplete.map(({ column }) => column),
      path,
      query,
    )
    for (const [at, { index }] of incomplete.entries()) found[index] = { ...noValues, ...values[at], isComplete: true }
  }
  const inFile = new Map(written.map(([inView], index) => [inView, found[index] ?? noValues]))
  return [...view.columns.entries()].flatMap(([inView, { name, type, hidden }]) => {
    const { castNulls = 0, castDlq = 0, missing = 0 } = tallies.get(inView) ?? {}
    if (hidden && castNulls + castDlq + missing === 0) return []
    const { nulls, min, max } = inFile.get(inView) ?? noValues
    const counts = { values: hidden ? 0 : rows - nulls, nulls, cast_nulls: castNulls, cast_dlq: castDlq, missing }
    return [{ name, type: printType(type), ...counts, min, max }]
  })
}

const noValues: Found = { nulls: 0, min: null, max: null, isComplete: true }

async function readFooter(columns: readonly CompiledColumn[], path: string, query: ColumnQualitiesOptions['query']) {
  // Every column has one leaf, even a list.
  const { rows } = await query(
    `SELECT column_id, num_values, stats_null_count, ${usable('min')}, ${usable('max')} FROM parquet_metadata(${quoteLiteral(path)})`,
  )
  const found: Found[] = columns.map(() => noValues)
  for (const [id, values, nulls, min, max] of rows) {
    const { type } = columns[Number(id)] ?? {}
    const before = found[Number(id)]
    if (type === undefined || before === undefined) continue
    found[Number(id)] = addGroup(before, type, { values: Number(values), nulls, min, max })
  }
  return found
}

/**
 * SQL for a minimum or maximum in the footer; NULL if too little of the value is stored. DuckDB cuts long texts and increments the last
 * character of a cut maximum, so only the text before it belongs to the value.
 */
function usable(end: 'min' | 'max'): string {
  const text = `stats_${end}_value`
  return `CASE WHEN ${end}_is_exact OR length(${text}) > ${boundCharsMax} THEN ${text} END`
}

type RowGroup = Readonly<Record<'nulls' | 'min' | 'max', Value | undefined>> & { readonly values: number }

function addGroup(before: Found, type: ColumnType, { values, nulls, min, max }: RowGroup): Found {
  const order = orderOf(type)
  const hasValues = Number(nulls) < values
  const lacks = nulls === null || type.depth > 0 || (hasValues && order !== undefined && (min === null || max === null))
  if (lacks) return { ...before, isComplete: false }
  return {
    nulls: before.nulls + Number(nulls),
    min: order && hasValues ? extreme(order, before.min, canonicalText(min, type), -1) : before.min,
    max: order && hasValues ? extreme(order, before.max, canonicalText(max, type), 1) : before.max,
    isComplete: before.isComplete,
  }
}

async function readValues(
  columns: readonly CompiledColumn[],
  path: string,
  query: ColumnQualitiesOptions['query'],
): Promise<readonly Partial<Found>[]> {
  const selected = columns.flatMap(({ name, type }) => {
    const column = quoteIdentifier(name)
    const nulls = `count(*) - count(${column})`
    const order = orderOf(type)
    if (order === undefined) return [nulls, 'NULL', 'NULL']
    const excluded = order.excludes?.(column)
    const filter = excluded === undefined ? '' : ` FILTER (WHERE NOT ${excluded})`
    return [nulls, ...['min', 'max'].map((end) => `CAST(${end}(${column})${filter} AS VARCHAR)`)]
  })
  const { rows } = await query(
    `SELECT ${selected.join(', ')} FROM read_parquet(${quoteLiteral(path)}, hive_partitioning = false)`,
  )
  const [row = []] = rows
  return columns.map(({ type }, at) => {
    const [nulls, min, max] = row.slice(3 * at, 3 * at + 3)
    return { nulls: Number(nulls), min: canonicalText(min, type), max: canonicalText(max, type) }
  })
}

/** Returns the canonical text of a value as DuckDB prints it; null if there is no value, or its type has no order. */
export function canonicalText(value: Value | undefined, type: ColumnType): string | null {
  return value === null || value === undefined ? null : (orderOf(type)?.canonical(String(value)) ?? null)
}
