/**
 * What the columns of a view got in one segment.
 *
 * Owns: how nulls, minimum and maximum are found, and their canonical text. Does not own: what became of rows (observer.ts), how segments
 * are added up (model/view-quality.ts).
 * The Parquet that was just written has most of it in its footer, so that no value is looked at again. Some it has not: of floating point
 * numbers nothing where one is NaN or infinite, of long texts at times nothing of use, of lists only what is in them. Only those columns are
 * read.
 */
import type { Rows, Value } from '#duckdb/database.ts'
import { quoteIdentifier, quoteLiteral } from '#duckdb/quote.ts'
import { qualityLimits } from '#model/limits.ts'
import { type ColumnType, orderOf, printType } from '#model/types/column-type.ts'
import { type ColumnQuality, extreme } from '#model/view-quality.ts'
import type { CompiledColumn } from '#views/compiled-view.ts'
import type { Tally } from './tally.ts'

export type ColumnQualitiesOptions = {
  readonly columns: readonly CompiledColumn[]
  /** The Parquet of the accepted rows, and their number. */
  readonly path: string
  readonly rows: number
  readonly tallies: Tally['ofColumns']
  readonly query: (sql: string) => Promise<Rows>
}

type Range = Pick<ColumnQuality, 'min' | 'max'>
type Found = Range & { readonly nulls: number; readonly isWhole: boolean }

/** In definition order. */
export async function columnQualities({ columns, path, rows, tallies, query }: ColumnQualitiesOptions): Promise<ColumnQuality[]> {
  const found = rows === 0 ? [] : await readFooter(columns, path, query)
  const unsure = columns.flatMap((column, index) => (found[index]?.isWhole === false ? [{ column, index }] : []))
  if (unsure.length > 0) {
    const values = await readValues(
      unsure.map(({ column }) => column),
      path,
      query,
    )
    for (const [at, { index }] of unsure.entries()) found[index] = { ...nothing, ...values[at], isWhole: true }
  }
  return columns.map(({ name, type }, index) => {
    const { nulls, min, max } = found[index] ?? nothing
    const { castNulls = 0, castDlq = 0, missing = 0 } = tallies.get(index) ?? {}
    const counts = { values: rows - nulls, nulls, cast_nulls: castNulls, cast_dlq: castDlq, missing }
    return { name, type: printType(type), ...counts, min, max }
  })
}

const nothing: Found = { nulls: 0, min: null, max: null, isWhole: true }

async function readFooter(columns: readonly CompiledColumn[], path: string, query: ColumnQualitiesOptions['query']) {
  // Every column has one leaf, a list too.
  const { rows } = await query(
    `SELECT column_id, num_values, stats_null_count, ${whole('min')}, ${whole('max')} FROM parquet_metadata(${quoteLiteral(path)})`,
  )
  const found: Found[] = columns.map(() => nothing)
  for (const [id, values, nulls, min, max] of rows) {
    const { type } = columns[Number(id)] ?? {}
    const before = found[Number(id)]
    if (type === undefined || before === undefined) continue
    found[Number(id)] = addGroup(before, type, { values: Number(values), nulls, min, max })
  }
  return found
}

/**
 * NULL where it tells too little of the value. DuckDB cuts long texts, and of a maximum raises the last character that it can raise, which is
 * what comes before it that is of the value.
 */
function whole(end: 'min' | 'max'): string {
  const text = `stats_${end}_value`
  return `CASE WHEN ${end}_is_exact OR length(${text}) > ${qualityLimits.textCharsMax} THEN ${text} END`
}

type RowGroup = Readonly<Record<'nulls' | 'min' | 'max', Value | undefined>> & { readonly values: number }

function addGroup(before: Found, type: ColumnType, { values, nulls, min, max }: RowGroup): Found {
  const order = orderOf(type)
  const hasValues = Number(nulls) < values
  const lacks = nulls === null || type.depth > 0 || (hasValues && order !== undefined && (min === null || max === null))
  if (lacks) return { ...before, isWhole: false }
  return {
    nulls: before.nulls + Number(nulls),
    min: order && hasValues ? extreme(order, before.min, canonicalText(min, type), -1) : before.min,
    max: order && hasValues ? extreme(order, before.max, canonicalText(max, type), 1) : before.max,
    isWhole: before.isWhole,
  }
}

async function readValues(
  columns: readonly CompiledColumn[],
  path: string,
  query: ColumnQualitiesOptions['query'],
): Promise<readonly Partial<Found>[]> {
  const asked = columns.flatMap(({ name, type }) => {
    const column = quoteIdentifier(name)
    const nulls = `count(*) - count(${column})`
    const order = orderOf(type)
    if (order === undefined) return [nulls, 'NULL', 'NULL']
    const excluded = order.excludes?.(column)
    const filter = excluded === undefined ? '' : ` FILTER (WHERE NOT ${excluded})`
    return [nulls, ...['min', 'max'].map((end) => `CAST(${end}(${column})${filter} AS VARCHAR)`)]
  })
  const { rows } = await query(`SELECT ${asked.join(', ')} FROM read_parquet(${quoteLiteral(path)}, hive_partitioning = false)`)
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
