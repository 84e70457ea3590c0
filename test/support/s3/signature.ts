/** Checks AWS Signature Version 4 of a request, in its header or in its address ("Authenticating Requests" of the S3 API Reference). */
import { createHash, createHmac } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

export type Signed = {
  readonly accessKeyId: string
  readonly token: string | undefined
  readonly region: string
  readonly service: string
  /** As in the request: `20261120T080000Z`. */
  readonly date: string
  /** Lifetime of a presigned URL in seconds. */
  readonly expires: number | undefined
  readonly isSignedWith: (secretAccessKey: string, bodySha256: string) => boolean
}

/** Returns undefined if the request is not signed. */
export function readSignature(request: IncomingMessage): Signed | undefined {
  const url = new URL(request.url ?? '/', 'http://double')
  const header = request.headers.authorization
  const inQuery = url.searchParams.get('X-Amz-Signature')
  const fields =
    header === undefined
      ? undefined
      : Object.fromEntries(
          header
            .replace(/^AWS4-HMAC-SHA256 /, '')
            .split(/,\s*/)
            .map(pair),
        )
  const credential = fields?.['Credential'] ?? url.searchParams.get('X-Amz-Credential')
  const signature = fields?.['Signature'] ?? inQuery
  const names = (fields?.['SignedHeaders'] ?? url.searchParams.get('X-Amz-SignedHeaders') ?? '').split(';')
  const date = one(request.headers['x-amz-date']) ?? url.searchParams.get('X-Amz-Date')
  if (!credential || !signature || !date) return undefined
  const [accessKeyId = '', day = '', region = '', service = ''] = credential.split('/')
  const expires = url.searchParams.get('X-Amz-Expires')
  return {
    ...{ accessKeyId, region, service, date },
    token: one(request.headers['x-amz-security-token']) ?? url.searchParams.get('X-Amz-Security-Token') ?? undefined,
    expires: expires === null ? undefined : Number(expires),
    isSignedWith(secret, bodySha256) {
      // The host must be signed, and every x-amz header of the request.
      const amazons = Object.keys(request.headers).filter((name) => name.startsWith('x-amz-') && fields !== undefined)
      if (!names.includes('host') || amazons.some((name) => !names.includes(name))) return false
      const payload = fields === undefined ? 'UNSIGNED-PAYLOAD' : (one(request.headers['x-amz-content-sha256']) ?? bodySha256)
      const query = (request.url?.split('?')[1] ?? '')
        .split('&')
        .filter((part) => part !== '' && !part.startsWith('X-Amz-Signature='))
        .map((part) => (part.includes('=') ? part : `${part}=`))
        .sort()
        .join('&')
      const canonical = [
        request.method,
        url.pathname,
        query,
        ...names.map((name) => `${name}:${one(request.headers[name])?.trim().replace(/\s+/g, ' ') ?? ''}`),
        '',
        names.join(';'),
        payload,
      ].join('\n')
      const scope = `${day}/${region}/${service}/aws4_request`
      const toSign = ['AWS4-HMAC-SHA256', date, scope, createHash('sha256').update(canonical).digest('hex')].join('\n')
      const key = [day, region, service, 'aws4_request'].reduce<Buffer | string>((key, part) => hmac(key, part), `AWS4${secret}`)
      return hmac(key, toSign).toString('hex') === signature
    },
  }
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

function pair(text: string): [string, string] {
  const at = text.indexOf('=')
  return [text.slice(0, at), text.slice(at + 1)]
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value
}
