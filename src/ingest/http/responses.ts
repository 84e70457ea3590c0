/** Responses of the HTTP server, written with prepared heads. */
import type { ServerResponse } from 'node:http'
import { AppError, type ErrorCode, errorTable, toProblem } from '#errors.ts'
import type { WebPage } from '#pages/html.ts'
import type { Outcome, Rejection } from '../gate/rejection.ts'

const recordTypes = 'application/x-ndjson, application/ndjson, application/jsonl, application/json'

const codes: Readonly<Record<Outcome, ErrorCode>> = {
  unauthorized: 'unauthorized',
  forbidden: 'forbidden',
  account_suspended: 'account_suspended',
  unknown_endpoint: 'not_found',
  quota_exceeded: 'quota_exceeded',
  invalid_route: 'validation_error',
  invalid_idempotency_key: 'bad_request',
  invalid_ack_level: 'validation_error',
  idempotency_key_reused: 'idempotency_key_reused',
  endpoint_paused: 'unavailable',
  unverifiable: 'unavailable',
  fenced: 'unavailable',
  not_configured: 'unavailable',
  record_too_large: 'payload_too_large',
  no_room: 'unavailable',
  not_stored: 'unavailable',
  not_copied: 'unavailable',
  failed: 'internal_error',
}

/** Converts the gate's outcome to the error that HTTP clients get. */
export function toAppError({ outcome, message, retryAfterSeconds, field, quota, cause }: Rejection): AppError {
  return new AppError(codes[outcome], message, {
    cause,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(quota === undefined ? {} : { quota }),
    ...(field === undefined ? {} : { errors: [{ path: field, message }] }),
  })
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: string,
  { close, more = [] }: { readonly close: boolean; readonly more?: readonly string[] },
): void {
  const headers = ['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(body)), ...more]
  if (close) headers.push('Connection', 'close')
  response.writeHead(status, headers)
  response.end(body)
}

export function sendText(response: ServerResponse, contentType: string, body: string): void {
  response.writeHead(200, ['Content-Type', contentType, 'Content-Length', String(Buffer.byteLength(body))])
  response.end(body)
}

export function sendPage(response: ServerResponse, { headers, body }: WebPage, close: boolean): void {
  const length = { 'content-length': Buffer.byteLength(body) }
  response.writeHead(200, { ...headers, ...length, ...(close ? { connection: 'close' } : {}) })
  response.end(body)
}

export function sendProblem(
  response: ServerResponse,
  error: AppError,
  { baseUrl, close, allow }: { readonly baseUrl: string; readonly close: boolean; readonly allow?: string | undefined },
): void {
  const { status, headers, body } = problem(error, baseUrl)
  if (allow !== undefined) headers.push('Allow', allow)
  if (close) headers.push('Connection', 'close')
  response.writeHead(status, headers)
  response.end(body)
}

/** Returns a complete response as text, for a connection on which no request could be read. */
export function rawProblem(
  error: AppError,
  baseUrl: string,
  { now, headers: more = [] }: { readonly now: number; readonly headers?: readonly string[] },
): string {
  const { status, headers, body } = problem(error, baseUrl)
  headers.push(...more, 'Date', new Date(now).toUTCString(), 'Connection', 'close')
  let head = `HTTP/1.1 ${status} ${errorTable[error.code].title}\r\n`
  for (let at = 0; at < headers.length; at += 2) head += `${headers[at]}: ${headers[at + 1]}\r\n`
  return `${head}\r\n${body}`
}

/** Returns the error for a request that could not be read. `code` comes from node:http or its parser. */
export function requestError(code: string | undefined): AppError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new AppError('request_timeout', 'the request did not arrive in time; send it again, smaller or faster')
    case 'HPE_HEADER_OVERFLOW':
      return new AppError('headers_too_large', 'the head of the request is too large; send fewer or shorter headers')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new AppError('payload_too_large', 'the chunk extensions are too long; send chunks without extensions')
    case 'HPE_INVALID_EOF_STATE':
      return new AppError('bad_request', 'the connection ended before the request was complete; none of it was stored')
    default:
      return new AppError('bad_request', `the bytes are not a valid HTTP/1.1 request${code === undefined ? '' : ` (${code})`}`)
  }
}

function problem(error: AppError, baseUrl: string): { status: number; headers: string[]; body: string } {
  const body = JSON.stringify(toProblem(error, baseUrl))
  const headers = ['Content-Type', 'application/problem+json', 'Content-Length', String(Buffer.byteLength(body))]
  headers.push(...problemHeaders(error, recordTypes))
  return { status: errorTable[error.code].status, headers, body }
}

/** Returns headers that RFC 9110 requires beside the body. `accepted`: types of bodies that the path takes. */
export function problemHeaders({ code, retryAfterSeconds }: AppError, accepted: string): string[] {
  const headers = retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)]
  if (code === 'unauthorized') headers.push('WWW-Authenticate', 'Bearer')
  if (code === 'unsupported_media_type') headers.push('Accept-Post', accepted, 'Accept-Encoding', 'gzip, zstd, deflate, br')
  return headers
}
