/**
 * Takes back what was counted of rows that a layout then leaves out.
 *
 * Failed casts are counted while the accepted rows are written. A row that turns out to be a duplicate, or to have no partition, is dropped or
 * refused by another rule, and its values are nowhere.
 */
import type { Rows } from '#duckdb/database.ts'
import { quoteIdentifier } from '#duckdb/quote.ts'
import { MASK_COLUMNS } from '#views/extraction.ts'
import { parquetRowsSql } from './parquet-writer.ts'
import type { Tally } from './tally.ts'

/** Columns of unfinished files with the failed casts of their rows. No column of a view can have such a name. */
const masks = ['\u001fcast_nulls', '\u001fmore_cast_nulls'].map(quoteIdentifier)

/** SQL for the columns with the failed casts. `position` is that of the view in its extraction. */
export function maskColumns(position: number): readonly string[] {
  return [`cast_nulls_${position} AS ${masks[0]}`, `more_cast_nulls_${position} AS ${masks[1]}`]
}

/** Returns the counts without the rows that only the first file has. */
export async function withoutLeftOut(
  tally: Tally,
  { all, kept }: { readonly all: string; readonly kept: string },
  query: (sql: string) => Promise<Rows>,
): Promise<Tally> {
  const columns = [...tally.ofColumns].flatMap(([column, { castNulls }]) => (castNulls > 0 ? [column] : []))
  if (columns.length === 0 || all === kept) return tally
  const counts = columns.map((column) => {
    const bit = 2n ** BigInt(column % MASK_COLUMNS)
    return `count(*) FILTER (WHERE (${masks[Math.floor(column / MASK_COLUMNS)]} & CAST(${bit} AS BIGINT)) <> 0)`
  })
  const countIn = async (file: string) => (await query(`SELECT ${counts.join(', ')} FROM (${parquetRowsSql([file])})`)).rows[0]
  const [inAll, inKept] = [await countIn(all), await countIn(kept)]
  const ofColumns = new Map(tally.ofColumns)
  let castNulls = tally.castNulls
  for (const [index, column] of columns.entries()) {
    const leftOut = Number(inAll?.[index]) - Number(inKept?.[index])
    const of = ofColumns.get(column)
    if (of !== undefined) ofColumns.set(column, { ...of, castNulls: of.castNulls - leftOut })
    castNulls -= leftOut
  }
  return { ...tally, castNulls, ofColumns }
}
