import type { ApiError, Problem } from '../api/client.ts'

/** Titles of failures for people. The title of a problem is the name of its HTTP status, which helps only programs. */
const titles: Readonly<Record<Problem['error'], string>> = {
  bad_request: 'The request is not valid',
  unauthorized: 'You are not signed in',
  forbidden: 'You may not do this',
  account_suspended: 'The account is suspended',
  not_found: 'Not found',
  method_not_allowed: 'The request is not valid',
  not_acceptable: 'The request is not valid',
  request_timeout: 'It took too long',
  conflict: 'This is not possible now',
  view_already_attached: 'The view is already attached',
  payload_too_large: 'This is too large',
  unsupported_media_type: 'The request is not valid',
  expectation_failed: 'The request is not valid',
  idempotency_key_reused: 'The key is in use for another request',
  validation_error: 'This needs a correction',
  too_many_requests: 'Too many requests',
  quota_exceeded: 'A quota is used up',
  headers_too_large: 'The request is not valid',
  internal_error: 'Inlet failed',
  unavailable: 'Not available now',
}

export function titleOf({ status, problem }: Pick<ApiError, 'status' | 'problem'>): string {
  if (status === 0) return 'No response'
  // A newer control may have more errors than this page knows, and a proxy has its own.
  return titles[problem.error] ?? problem.title
}
