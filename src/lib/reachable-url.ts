import { hostname } from 'node:os'

/** Returns the URL that other machines can use, of a listener that may be on every address of this one. `baseUrl` is known to clients. */
export function reachableUrl(url: string, { host }: { readonly host: string }, baseUrl: string | null): string {
  if (host !== '0.0.0.0' && host !== '::') return url
  const reachable = new URL(url)
  reachable.hostname = baseUrl === null ? hostname() : new URL(baseUrl).hostname
  return reachable.origin
}
