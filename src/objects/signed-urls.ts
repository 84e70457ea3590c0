/**
 * Signed URLs: anyone can download the object for a limited time, without credentials. For stores without signed URLs of their own.
 *
 * Owns: signing and verifying. Does not own: the objects, or the server behind the URLs.
 * Law: a URL is valid for one object until its expiry, and only a holder of the secret can create one.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '#lib/clock.ts'

export type SignedUrlsOptions = {
  /** URL of the server that serves the objects under `/objects/`. */
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

  /** Returns the object that a request with this path and query may download, or why it may not. */
  verify(url: string): ObjectName | 'invalid' | 'expired' {
    const { pathname, searchParams } = new URL(url, 'http://objects')
    const name = parse(pathname)
    const expires = searchParams.get('expires') ?? ''
    const given = Buffer.from(searchParams.get('signature') ?? '', 'hex')
    if (name === undefined) return 'invalid'
    const expected = this.#signature(name, expires)
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return 'invalid'
    // The signature is valid, so `expires` was written by `sign`.
    return Number(expires) * 1000 > this.#options.clock.now() ? name : 'expired'
  }

  #signature({ bucket, key }: ObjectName, expires: string): Buffer {
    // Neither a bucket name nor a time contains a line break, so the fields cannot be confused.
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
