/** Search parameters of the screens of views. */

type Search = Readonly<Record<string, unknown>>

function textOf(search: Search, name: string): string | undefined {
  const value = search[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** The list: the text that is searched for. */
export function viewsSearch(search: Search): { readonly find?: string } {
  const find = textOf(search, 'find')
  return find === undefined ? {} : { find }
}

/** A new view: the endpoint whose records it begins with. */
export function newViewSearch(search: Search): { readonly endpoint?: string } {
  const endpoint = textOf(search, 'endpoint')
  return endpoint === undefined ? {} : { endpoint }
}

/** Differences: the id of the other version. */
export function compareSearch(search: Search): { readonly with?: string } {
  const other = textOf(search, 'with')
  return other === undefined ? {} : { with: other }
}
