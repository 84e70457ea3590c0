type NewKeySearch = {
  /** The endpoint that the key is for, if another screen led here. */
  readonly endpoint?: string
  /** The example that is shown. */
  readonly example?: string
}

export function newKeySearch(search: Record<string, unknown>): NewKeySearch {
  const { endpoint, example } = search
  return {
    ...(typeof endpoint === 'string' ? { endpoint } : {}),
    ...(typeof example === 'string' ? { example } : {}),
  }
}

export function keysSearch(search: Record<string, unknown>): { readonly revoked?: true } {
  return search['revoked'] === true ? { revoked: true } : {}
}
