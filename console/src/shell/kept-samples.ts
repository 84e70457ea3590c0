/**
 * The samples that a person tries a view on. They stay in this tab until it is closed.
 *
 * Screens that show records, such as the dead letters of a view, put them here and open the editor.
 */
const keyOf = (account: string, view: string) => `inlet-samples/${account}/${view}`

/** Records as text: a JSON document, a list, or one per line. `view` is the name of a view, empty for one that does not exist yet. */
export function keepSamples(account: string, view: string, text: string): void {
  try {
    sessionStorage.setItem(keyOf(account, view), text)
  } catch {
    // No space: they last until the screen is left.
  }
}

export function keptSamples(account: string, view: string): string {
  return sessionStorage.getItem(keyOf(account, view)) ?? ''
}
