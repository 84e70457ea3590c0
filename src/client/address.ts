import { InletError } from './errors.ts'

/** Returns the address that paths are added to. It may have a path itself, such as that of a proxy. Throws an InletError. */
export function baseOf(address: string | URL): URL {
  const url = URL.parse(String(address))
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new InletError(`url must be an address such as https://inlet.example.com, not ${JSON.stringify(String(address))}`)
  url.search = ''
  url.hash = ''
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return url
}
