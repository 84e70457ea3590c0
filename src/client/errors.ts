/** Errors that a call throws, beside the reason of the caller's own signal. */
import type { components } from './generated/schema.ts'

type Problem = components['schemas']['Problem']

/** A field of the request that is not valid. `path` is dotted, and empty for the whole body. */
export type FieldError = components['schemas']['FieldError']

/** The `error` of a problem; `unexpected_response` if the response is none, such as that of a proxy. */
export type ErrorCode = Problem['error'] | 'unexpected_response'

/** Every error of this library. */
export class InletError extends Error {
  override readonly name: string = 'InletError'
}

export type ApiErrorFields = {
  readonly status: number
  readonly code: ErrorCode
  readonly detail: string
  readonly errors?: readonly FieldError[] | undefined
  readonly quota?: string | undefined
  readonly requestId?: string | undefined
  readonly retryAfterSeconds?: number | undefined
}

/** The server responded with an error. The message is its `detail`, written for people. */
export class ApiError extends InletError {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: ErrorCode
  /** Every invalid field, for `validation_error`. */
  readonly errors: readonly FieldError[]
  /** Name of the quota, for `quota_exceeded`. */
  readonly quota: string | undefined
  /** Names the request in the log of the server. */
  readonly requestId: string | undefined
  /** How long the server asked to wait before the next attempt. */
  readonly retryAfterSeconds: number | undefined

  constructor(fields: ApiErrorFields) {
    super(fields.detail)
    this.status = fields.status
    this.code = fields.code
    this.errors = fields.errors ?? []
    this.quota = fields.quota
    this.requestId = fields.requestId
    this.retryAfterSeconds = fields.retryAfterSeconds
  }

  /** Returns what is wrong with a field of the request, by its path. */
  fieldError(path: string): string | undefined {
    return this.errors.find((error) => error.path === path)?.message
  }
}

/** The server could not be reached, or the connection broke before its response was complete. `cause` says why. */
export class ConnectionError extends InletError {
  override readonly name = 'ConnectionError'
}

/** The call took longer than its timeout. `cause` is the failure of its last attempt, if there was one. */
export class TimeoutError extends InletError {
  override readonly name = 'TimeoutError'
}

/** Codes of Node for a certificate that no authority signed which it trusts. */
const untrusted: readonly unknown[] = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]

/** Describes a request without a response. `fetch` of Node hides the reason in the cause of its error. */
export function noResponse({ origin, protocol }: URL, error: unknown): ConnectionError {
  const reason: unknown = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const code = reason instanceof Error && 'code' in reason ? reason.code : undefined
  return new ConnectionError(`no response from ${origin}: ${describe(code, protocol) ?? messageOf(reason, error)}`, {
    cause: error,
  })
}

function describe(code: unknown, protocol: string): string | undefined {
  if (untrusted.includes(code))
    return 'its certificate is signed by an authority that this program does not trust; name the file of that authority in NODE_EXTRA_CA_CERTS'
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER') return 'it does not speak TLS; if that is meant, use http://'
  if (code === 'UND_ERR_SOCKET' && protocol === 'http:') return 'it closed the connection; if it has a certificate, use https://'
  return undefined
}

function messageOf(reason: unknown, error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return reason instanceof Error && reason.message !== '' ? reason.message : error.message
}

/** Reads a response that is no success. Never throws: a body that cannot be read is described by its status. */
export async function errorOf(response: Response): Promise<ApiError> {
  const { status, headers } = response
  const requestId = headers.get('x-request-id') ?? undefined
  const problem: unknown = await response.json().catch(() => undefined)
  if (isProblem(problem)) {
    const { error: code, detail, errors, quota } = problem
    return new ApiError({ status, code, detail, errors, quota, requestId, retryAfterSeconds: retryAfterOf(headers) })
  }
  const location = headers.get('location')
  const detail =
    location === null
      ? `the server responded with status ${status} and without an explanation: check that the address is that of Inlet`
      : `the server redirects to ${location}: use its address instead`
  return new ApiError({ status, code: 'unexpected_response', detail, requestId, retryAfterSeconds: retryAfterOf(headers) })
}

/** Reads `Retry-After`: seconds, or a date. */
function retryAfterOf(headers: Headers): number | undefined {
  const value = headers.get('retry-after')
  if (value === null) return undefined
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined
}

function isProblem(value: unknown): value is Problem {
  return typeof value === 'object' && value !== null && 'detail' in value && 'error' in value && typeof value.error === 'string'
}

/** Whether the same request may succeed later. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ConnectionError || error instanceof TimeoutError) return true
  return error instanceof ApiError && (error.status === 408 || error.status === 429 || error.status >= 500)
}
