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
  const read = query.limit(rowsMax).offset(page.offset).execute() as Promise<Row[]>
  const [total, rows] = await translateErrors(Promise.all([countRows(query), read]))
  return toPage(rows.map(toItem), total, page)
}

/** Returns the number of rows that a query finds. */
export async function countRows<DB, Tables extends keyof DB, Row>(query: SelectQueryBuilder<DB, Tables, Row>): Promise<number> {
  const count = query
    .clearSelect()
    .clearOrderBy()
    .select(({ fn }) => fn.countAll<number>().as('total'))
  const { total } = (await count.executeTakeFirstOrThrow()) as { total: number }
  return Number(total)
}
