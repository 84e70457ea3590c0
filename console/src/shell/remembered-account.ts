const storageKey = 'inlet-account'

/** The account that was looked at last, for an address that names none. */
export function rememberedAccount(): string | null {
  return localStorage.getItem(storageKey)
}

export function rememberAccount(id: string): void {
  localStorage.setItem(storageKey, id)
}
