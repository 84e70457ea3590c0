/** Lists that a screen needs whole, because people choose from them, or because it adds them up. */

type Page<Item> = { readonly items: readonly Item[]; readonly total: number; readonly next_offset: number | null }

export type WholeList<Item> = { readonly items: readonly Item[]; readonly total: number }

/** Items of a page, as many as the API gives. */
export const wholePageSize = 200

/** More than this is more than a screen can show. */
const pagesMax = 10

/** Returns the items of all pages, at most 2 000. `read` gets no offset for the first page: that may be asked for already. */
export async function readWhole<Item>(
  read: (page: { readonly limit: number; readonly offset?: number }) => Promise<Page<Item>>,
): Promise<WholeList<Item>> {
  const items: Item[] = []
  let total = 0
  let offset: number | null = 0
  for (let pages = 0; offset !== null && pages < pagesMax; pages += 1) {
    const page: Page<Item> = await read({ limit: wholePageSize, ...(offset === 0 ? {} : { offset }) })
    items.push(...page.items)
    total = page.total
    offset = page.next_offset
  }
  return { items, total }
}

/** Asks again for a long list less often: each page is a call. */
export function wholeInterval(intervalMs: number) {
  return ({ state: { data } }: { readonly state: { readonly data?: WholeList<unknown> | undefined } }): number =>
    intervalMs * Math.max(1, Math.ceil((data?.items.length ?? 0) / wholePageSize))
}
