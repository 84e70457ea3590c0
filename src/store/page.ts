import type { SelectQueryBuilder } from 'kysely'
import { type Page, type PageQuery, toPage } from '#model/page.ts'
import { translateErrors } from './engines/database-error.ts'

/** Returns one page of the rows that a query selects in its order: at most `rowsMax`. */
export async function readPage<DB, Tables extends keyof DB, Row, Item>(
  query: SelectQueryBuilder<DB, Tables, Row>,
  page: PageQuery,
  toItem: (row: Row) => Item,
  rowsMax = page.limit,
): Promise<Page<Item>> {
  const count = query
    .clearSelect()
    .clearOrderBy()
    .select(({ fn }) => fn.countAll<number>().as('total'))
  const read = query.limit(rowsMax).offset(page.offset).execute() as Promise<Row[]>
  const [{ total }, rows] = await translateErrors(
    Promise.all([count.executeTakeFirstOrThrow() as Promise<{ total: number }>, read]),
  )
  return toPage(rows.map(toItem), total, page)
}
