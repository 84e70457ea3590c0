/** The commit whose files are shown, as it stands in the address. */
export type CommitSearch = { readonly commit?: string }

export function commitSearch({ commit }: Record<string, unknown>): CommitSearch {
  return typeof commit === 'string' && commit !== '' ? { commit } : {}
}
