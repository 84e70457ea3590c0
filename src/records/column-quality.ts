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
import { type ColumnQuality, extreme, hasOrder } from '#model/view-quality.ts'
import type { CompiledColumn } from '#views/compiled-view.ts'
import { type ColumnType, printType } from '#views/types.ts'
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
  const printed = printType(type)
  const hasValues = Number(nulls) < values
  const lacks = nulls === null || type.depth > 0 || (hasValues && hasOrder(printed) && (min === null || max === null))
  if (lacks) return { ...before, isWhole: false }
  return {
    nulls: before.nulls + Number(nulls),
    min: extreme(printed, before.min, hasValues ? canonicalText(min, type) : null, -1),
    max: extreme(printed, before.max, hasValues ? canonicalText(max, type) : null, 1),
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
    if (!hasOrder(printType(type))) return [nulls, 'NULL', 'NULL']
    const isFloating = type.scalar === 'FLOAT' || type.scalar === 'DOUBLE'
    const filter = isFloating ? ` FILTER (WHERE NOT isnan(${column}))` : ''
    return [nulls, ...['min', 'max'].map((end) => `CAST(${end}(${column})${filter} AS VARCHAR)`)]
  })
  const { rows } = await query(`SELECT ${asked.join(', ')} FROM read_parquet(${quoteLiteral(path)}, hive_partitioning = false)`)
  const [row = []] = rows
  return columns.map(({ type }, at) => {
    const [nulls, min, max] = row.slice(3 * at, 3 * at + 3)
    return { nulls: Number(nulls), min: canonicalText(min, type), max: canonicalText(max, type) }
  })
}

/** Of a value as DuckDB writes it; null where there is none, or its type has no order. */
export function canonicalText(value: Value | undefined, type: ColumnType): string | null {
  if (value === null || value === undefined || !hasOrder(printType(type))) return null
  const text = String(value)
  switch (type.scalar) {
    case 'FLOAT':
    case 'DOUBLE':
      return String(toNumber(text))
    case 'DATE':
      return isoDay(text)
    case 'TIMESTAMP':
    case 'TIMESTAMPTZ':
      return isoMoment(text)
    case 'VARCHAR':
      return firstChars(text)
    default:
      return text
  }
}

function toNumber(text: string): number {
  if (text === 'inf') return Number.POSITIVE_INFINITY
  // Of zero there is one.
  return text === '-inf' ? Number.NEGATIVE_INFINITY : Number(text) + 0
}

/** Cut, it is at most the minimum that it is made of, and the maximum begins with it. */
function firstChars(text: string): string {
  if (text.length <= qualityLimits.textCharsMax) return text
  return [...text.slice(0, 2 * qualityLimits.textCharsMax)].slice(0, qualityLimits.textCharsMax).join('')
}

const day = /^(\d+)-(\d\d-\d\d)( \(BC\))?/

/** ISO 8601, with a sign and six digits or more where a year is not one of four digits: the year before the year 1 is 0. */
function isoDay(text: string): string {
  const [, digits = '', rest = '', isBefore] = day.exec(text) ?? []
  const year = isBefore === undefined ? Number(digits) : 1 - Number(digits)
  const padded = String(Math.abs(year)).padStart(year >= 0 && year <= 9_999 ? 4 : 6, '0')
  return `${year < 0 ? '-' : year > 9_999 ? '+' : ''}${padded}-${rest}`
}

/** In UTC, with six digits of a second. */
function isoMoment(text: string): string {
  const [, time = '', fraction = ''] = / (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?/.exec(text) ?? []
  return `${isoDay(text)}T${time}.${fraction.padEnd(6, '0')}Z`
}
