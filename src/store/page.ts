import type { Page, PageQuery } from '#model/page.ts'
import { toPage } from '#model/page.ts'
import { translateErrors } from './engines/database-error.ts'

/** Returns one page of a list. `count` and `read` are two queries with the same conditions. */
export async function readPage<Row, Item>(
  page: PageQuery,
  count: Promise<{ total: number }>,
  read: Promise<readonly Row[]>,
  toItem: (row: Row) => Item,
): Promise<Page<Item>> {
  const [{ total }, rows] = await translateErrors(Promise.all([count, read]))
  return toPage(rows.map(toItem), total, page)
}
