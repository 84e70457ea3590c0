/** The list of endpoints: the text that is searched for. */
export function endpointsSearch({ find }: Readonly<Record<string, unknown>>): { readonly find?: string } {
  return typeof find === 'string' && find !== '' ? { find } : {}
}
