/**
 * All errors that a client can receive. `type` is `{base_url}/errors/<code>`.
 *
 * Law: the message of an AppError is written for the client. Its `cause` never leaves the process.
 */
export const errorTable = {
  bad_request: { status: 400, title: 'Bad Request', retry: false },
  unauthorized: { status: 401, title: 'Unauthorized', retry: false },
  forbidden: { status: 403, title: 'Forbidden', retry: false },
  account_suspended: { status: 403, title: 'Forbidden', retry: false },
  not_found: { status: 404, title: 'Not Found', retry: false },
  method_not_allowed: { status: 405, title: 'Method Not Allowed', retry: false },
  not_acceptable: { status: 406, title: 'Not Acceptable', retry: false },
  request_timeout: { status: 408, title: 'Request Timeout', retry: true },
  conflict: { status: 409, title: 'Conflict', retry: false },
  view_already_attached: { status: 409, title: 'Conflict', retry: false },
  payload_too_large: { status: 413, title: 'Content Too Large', retry: false },
  unsupported_media_type: { status: 415, title: 'Unsupported Media Type', retry: false },
  expectation_failed: { status: 417, title: 'Expectation Failed', retry: false },
  idempotency_key_reused: { status: 422, title: 'Unprocessable Content', retry: false },
  validation_error: { status: 422, title: 'Unprocessable Content', retry: false },
  too_many_requests: { status: 429, title: 'Too Many Requests', retry: true },
  quota_exceeded: { status: 429, title: 'Too Many Requests', retry: true },
  headers_too_large: { status: 431, title: 'Request Header Fields Too Large', retry: false },
  internal_error: { status: 500, title: 'Internal Server Error', retry: true },
  unavailable: { status: 503, title: 'Service Unavailable', retry: true },
} as const satisfies Record<string, { status: number; title: string; retry: boolean }>

export type ErrorCode = keyof typeof errorTable

/**
 * Why a node has lost its place: control refuses whatever it sends, and tells it so. An operator removed it, revoked its credential, or
 * released its id, or another machine adopted its log.
 */
const fences = ['node_removed', 'node_revoked', 'node_adopted', 'node_released'] as const
export type Fence = (typeof fences)[number]

export function isFence(value: unknown): value is Fence {
  return fences.some((fence) => fence === value)
}

/** The kinds of problems with an expression of a view. */
export const expressionProblems = ['syntax', 'unknown_name', 'not_allowed', 'wrong_type', 'too_expensive'] as const
export type ExpressionProblem = (typeof expressionProblems)[number]

/** An invalid field. `path` is dotted (`columns.0.type`), and empty for the whole body. */
export type FieldError = {
  readonly path: string
  readonly message: string
  /** Position in a definition that was sent as text, both counted from 1. */
  readonly line?: number
  readonly column?: number
  /** For an expression of a view. */
  readonly code?: ExpressionProblem
  /** The line of the expression with the problem, and a caret below the place. */
  readonly excerpt?: string
}

export type AppErrorOptions = {
  readonly cause?: unknown
  readonly errors?: readonly FieldError[]
  /** How many more problems there are. The message says so. */
  readonly errorsOmitted?: number
  readonly retryAfterSeconds?: number
  /** Why a process is not ready, one sentence each. */
  readonly reasons?: readonly string[]
  /** The quota that is exceeded. */
  readonly quota?: string
  /** For a node whose place is taken: it must not try again. */
  readonly fence?: Fence
}

export class AppError extends Error {
  override readonly name = 'AppError'
  readonly code: ErrorCode
  readonly errors: readonly FieldError[] | undefined
  readonly errorsOmitted: number
  readonly retryAfterSeconds: number | undefined
  readonly reasons: readonly string[] | undefined
  readonly quota: string | undefined
  readonly fence: Fence | undefined

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, { cause: options.cause })
    this.code = code
    this.errors = options.errors
    this.errorsOmitted = options.errorsOmitted ?? 0
    this.retryAfterSeconds = options.retryAfterSeconds
    this.reasons = options.reasons
    this.quota = options.quota
    this.fence = options.fence
  }
}

export type Problem = {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly error: ErrorCode
  readonly detail: string
  readonly retry?: true
  readonly errors?: readonly FieldError[]
  readonly reasons?: readonly string[]
  readonly quota?: string
  /** Only of the API for nodes. */
  readonly fence?: Fence
}

/** Bounds of an error response. Its texts may have parts of the request. */
export const problemLimits = { errorsMax: 100, pathCharsMax: 256, messageCharsMax: 1_024, detailCharsMax: 2_048 } as const

/** Returns the body of an error response, RFC 7807 §3.1, sent as `application/problem+json`. */
export function toProblem(error: AppError, baseUrl: string): Problem {
  const { status, title, retry } = errorTable[error.code]
  return {
    type: `${baseUrl}/errors/${error.code}`,
    title,
    status,
    error: error.code,
    detail: shorten(error.message, problemLimits.detailCharsMax),
    ...(retry ? { retry: true as const } : {}),
    ...(error.errors === undefined ? {} : { errors: error.errors.slice(0, problemLimits.errorsMax).map(shortenError) }),
    ...(error.reasons === undefined ? {} : { reasons: error.reasons }),
    ...(error.quota === undefined ? {} : { quota: error.quota }),
    ...(error.fence === undefined ? {} : { fence: error.fence }),
  }
}

function shortenError({ path, message, ...position }: FieldError): FieldError {
  const { pathCharsMax, messageCharsMax } = problemLimits
  return { path: shorten(path, pathCharsMax), message: shorten(message, messageCharsMax), ...position }
}

function shorten(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).toWellFormed()}…`
}
