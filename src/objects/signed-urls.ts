/**
 * Addresses of objects that anyone can download for a while, without credentials: for stores that have no such thing themselves.
 *
 * Owns: how an address is signed and checked. Does not own: the objects, and who serves the address.
 * Law: an address is good for one object and until its time, and for whoever knows the secret alone to make.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '#lib/clock.ts'

export type SignedUrlsOptions = {
  /** Of the server that hands the objects out; they lie under `/objects/`. */
  readonly baseUrl: string
  readonly secret: string
  readonly clock: Clock
}

export type ObjectName = { readonly bucket: string; readonly key: string }

export class SignedUrls {
  readonly #options: SignedUrlsOptions

  constructor(options: SignedUrlsOptions) {
    this.#options = options
  }

  sign({ bucket, key }: ObjectName, seconds: number): string {
    const { baseUrl, clock } = this.#options
    const expires = String(Math.floor(clock.now() / 1000) + seconds)
    const path = [bucket, ...key.split('/')].map(encodeURIComponent).join('/')
    const signature = this.#signature({ bucket, key }, expires).toString('hex')
    return `${baseUrl}/objects/${path}?${new URLSearchParams({ expires, signature })}`
  }

  /** What the path and query of a request may download; otherwise why not. */
  verify(url: string): ObjectName | 'invalid' | 'expired' {
    const { pathname, searchParams } = new URL(url, 'http://objects')
    const name = parse(pathname)
    const expires = searchParams.get('expires') ?? ''
    const given = Buffer.from(searchParams.get('signature') ?? '', 'hex')
    if (name === undefined) return 'invalid'
    const expected = this.#signature(name, expires)
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return 'invalid'
    // The signature is good, so the time is one that was written here.
    return Number(expires) * 1000 > this.#options.clock.now() ? name : 'expired'
  }

  #signature({ bucket, key }: ObjectName, expires: string): Buffer {
    // No bucket has a line break in its name, and no time.
    return createHmac('sha256', this.#options.secret).update(`GET\n${bucket}\n${expires}\n${key}`).digest()
  }
}

function parse(pathname: string): ObjectName | undefined {
  const [root, folder, bucket, ...parts] = pathname.split('/')
  if (root !== '' || folder !== 'objects' || bucket === undefined || parts.length === 0) return undefined
  try {
    return { bucket: decodeURIComponent(bucket), key: parts.map(decodeURIComponent).join('/') }
  } catch {
    return undefined
  }
}
