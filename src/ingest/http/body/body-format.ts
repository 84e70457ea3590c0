import type { IncomingHttpHeaders } from 'node:http'
import type { Transform } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from 'node:zlib'
import { AppError } from '#errors.ts'
import { KiB } from '#lib/bytes.ts'
import { otlpTypes } from '../otlp/encoding.ts'
import type { BodyRecords } from './body-records.ts'
import { JsonBatch } from './json-batch.ts'
import { JsonBody } from './json-body.ts'
import { bodyLimits } from './limits.ts'
import { LineCounter } from './line-counter.ts'
import { WholeBody } from './whole-body.ts'

export type Encoding = 'identity' | 'gzip' | 'deflate' | 'br' | 'zstd'

/** The format of a body, according to the head of its request. `whole`: its records are not found in it, but made of it. */
export type BodyFormat = { readonly type: 'lines' | 'json' | 'batch' | 'whole'; readonly encoding: Encoding }

type Types = {
  /** '' stands for no type at all. */
  readonly names: ReadonlyMap<string, BodyFormat['type']>
  /** JSON for a purpose, such as application/cloudevents+json (RFC 6839 §3.1). */
  readonly withJsonSuffix?: BodyFormat['type']
  /** Accepted types, for the error of a request with another type. */
  readonly hint: string
}

/** Senders that name no format mostly send JSON: HTTP clients name compressed bytes so. A body that could be read in two ways is refused as any JSON is. */
const jsonNames = ['application/json', 'text/json', 'application/octet-stream', ''] as const

const recordTypes: Types = {
  names: new Map<string, BodyFormat['type']>([
    ['application/x-ndjson', 'lines'],
    ['application/ndjson', 'lines'],
    ['application/jsonl', 'lines'],
    ['application/csp-report', 'json'],
    ...jsonNames.map((name) => [name, 'json'] as const),
  ]),
  withJsonSuffix: 'json',
  hint: 'application/x-ndjson (or application/ndjson, application/jsonl), or application/json for one record or an array of them',
}

const exportTypes: Types = {
  names: new Map(Object.keys(otlpTypes).map((name) => [name, 'whole'])),
  hint: 'an ExportLogsServiceRequest of OpenTelemetry as application/x-protobuf or application/json; records of your own go to /v1/ingest',
}

/** Some libraries send text/plain, which browsers send to other origins without a preflight. */
const eventTypes: Types = {
  names: new Map([...jsonNames, 'text/plain'].map((name) => [name, 'json'])),
  withJsonSuffix: 'json',
  hint: 'application/json with one event',
}

/** The library of RudderStack for Node compresses JSON, and then names it as its HTTP client names bytes. */
const batchTypes: Types = {
  names: new Map([...eventTypes.names.keys(), 'application/x-www-form-urlencoded'].map((name) => [name, 'batch'])),
  withJsonSuffix: 'batch',
  hint: 'application/json with {"batch":[…]}',
}

const encodings: ReadonlyMap<string, Encoding> = new Map([
  ['identity', 'identity'],
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['deflate', 'deflate'],
  ['br', 'br'],
  ['zstd', 'zstd'],
])

/** Formats of common heads, looked up without allocating. */
const plain: ReadonlyMap<string | undefined, BodyFormat> = new Map(
  [...recordTypes.names].map(([name, type]) => [name === '' ? undefined : name, { type, encoding: 'identity' }]),
)

export function bodyFormat(headers: IncomingHttpHeaders): BodyFormat {
  if (headers['content-encoding'] === undefined) {
    const format = plain.get(headers['content-type'])
    if (format !== undefined) return format
  }
  return { type: typeOf(headers['content-type'], recordTypes), encoding: encodingOf(headers['content-encoding']) }
}

const otherTypes = { logs: exportTypes, event: eventTypes, batch: batchTypes }

/** The format of a body that is sent to a path for content other than plain records. */
export function formatOf(content: keyof typeof otherTypes, headers: IncomingHttpHeaders): BodyFormat {
  return { type: typeOf(headers['content-type'], otherTypes[content]), encoding: encodingOf(headers['content-encoding']) }
}

/** Finds the records of a body in this format. */
export function recordsOf({ type }: BodyFormat): BodyRecords {
  switch (type) {
    case 'lines':
      return new LineCounter()
    case 'json':
      return new JsonBody()
    case 'batch':
      return new JsonBatch()
    case 'whole':
      return new WholeBody()
  }
}

function typeOf(contentType: string | undefined, { names, withJsonSuffix, hint }: Types): BodyFormat['type'] {
  const known = names.get(contentType ?? '')
  if (known !== undefined) return known
  if (contentType === undefined) throw new AppError('unsupported_media_type', `the request has no Content-Type; send ${hint}`)
  const [type = '', ...parameters] = contentType.toLowerCase().split(';')
  const named = names.get(type.trim()) ?? (/^[^/\s]+\/[^/\s]+\+json$/.test(type.trim()) ? withJsonSuffix : undefined)
  if (named === undefined) {
    throw new AppError('unsupported_media_type', `Content-Type "${type.trim()}" is not supported; send ${hint}`)
  }
  const charset = parameters
    .map((part) => /^\s*charset\s*=\s*"?([^"\s]*)"?\s*$/.exec(part)?.[1])
    .find((name) => name !== undefined)
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8' && charset !== 'us-ascii') {
    throw new AppError('unsupported_media_type', `charset "${charset}" is not supported; send UTF-8`)
  }
  return named
}

function encodingOf(contentEncoding: string | undefined): Encoding {
  if (contentEncoding === undefined) return 'identity'
  const encoding = encodings.get(contentEncoding.trim().toLowerCase())
  if (encoding !== undefined) return encoding
  throw new AppError(
    'unsupported_media_type',
    contentEncoding.includes(',')
      ? `Content-Encoding "${contentEncoding}" names several encodings; send the body with one of gzip, zstd, deflate, br, or none`
      : `Content-Encoding "${contentEncoding}" is not supported; send gzip, zstd, deflate, br, or none`,
  )
}

/** Bytes after the end of the compressed stream are an error, never dropped silently. */
const strict = { chunkSize: 64 * KiB, rejectGarbageAfterEnd: true }

/** Creates a stream that decodes the body. `first` is the first byte of the body. */
export function createDecoder(encoding: Exclude<Encoding, 'identity'>, first: number): Transform {
  switch (encoding) {
    case 'gzip':
      // Several members are one gzip body (RFC 1952 §2.2). zlib always rejects anything else after a member.
      return createGunzip({ chunkSize: strict.chunkSize })
    case 'deflate':
      // "deflate" is the zlib format (RFC 9110 §8.4.1.2), but some clients send raw deflate. The first byte distinguishes them.
      return (first & 0x0f) === 8 && first >> 4 <= 7 ? createInflate(strict) : createInflateRaw(strict)
    case 'br':
      return createBrotliDecompress(strict)
    case 'zstd':
      return createZstdDecompress({ ...strict, params: { [constants.ZSTD_d_windowLogMax]: bodyLimits.zstdWindowLogMax } })
  }
}
