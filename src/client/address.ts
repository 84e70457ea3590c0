import { InletError } from './errors.ts'

/** Returns the address that paths are added to. It may have a path itself, such as that of a proxy. Throws an InletError. */
export function baseOf(address: string | URL): URL {
  const url = URL.canParse(String(address)) ? new URL(address) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw new InletError(`url must be an address such as https://inlet.example.com, not ${JSON.stringify(String(address))}`)
  // fetch takes none, and says so with all of the address.
  if (url.username !== '' || url.password !== '') throw new InletError('url must not have a user or a password')
  url.search = ''
  url.hash = ''
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return url
}
