/** Whether an address that somebody put into a link leads to a screen of this console, and to no other site. */
export function isPlaceHere(address: unknown): address is string {
  if (typeof address !== 'string' || !address.startsWith('/')) return false
  // As the browser reads it: it takes `/\` for `//`, and drops tabs.
  const { origin } = window.location
  return URL.parse(address, origin)?.origin === origin && !address.startsWith('/sign-in')
}
