/** Where a list has its items, and how to ask for the next page. */
export type Paging = {
  readonly items: string
  /** Field of a page that is passed on, and query parameter that it is passed as. Without them there is one page. */
  readonly cursor?: { readonly field: string; readonly parameter: string }
  readonly limitMax?: number
}

export type ListQuery = Readonly<Record<string, unknown>>

/**
 * A list of the API. Await it for one page, or iterate over it for the items of all pages: `for await (const item of list) …`. Nothing is
 * requested before. With `limit` in the query, pages have that many items; iterating without it asks for as many as the API gives at once.
 */
export interface Listing<Item, Page> extends PromiseLike<Page>, AsyncIterable<Item> {
  /** Iterates over pages. */
  pages(): AsyncIterable<Page>
}

export function listingOf<Item, Page>(
  { items, cursor, limitMax }: Paging,
  query: ListQuery,
  request: (query: ListQuery) => Promise<Page>,
): Listing<Item, Page> {
  async function* pages(first: ListQuery): AsyncGenerator<Page> {
    for (let next = first; ; ) {
      const page = await request(next)
      yield page
      const position = cursor === undefined ? undefined : (page as Record<string, unknown>)[cursor.field]
      if (cursor === undefined || position === null || position === undefined) return
      next = { ...next, [cursor.parameter]: position }
    }
  }
  let first: Promise<Page> | undefined
  const whole = { ...(limitMax === undefined ? {} : { limit: limitMax }), ...query }
  return {
    pages: () => pages(query),
    // biome-ignore lint/suspicious/noThenProperty: awaiting a list requests one page of it
    then: (onPage, onError) => {
      first ??= request(query)
      return first.then(onPage, onError)
    },
    async *[Symbol.asyncIterator]() {
      for await (const page of pages(whole)) yield* (page as Record<string, readonly Item[]>)[items] ?? []
    },
  }
}
