/**
 * Calls of the management API.
 *
 * Owns: how a call names the account that it is for, and what a failed call becomes. Does not own: what is asked for (a file per resource).
 */
import createClient from 'openapi-fetch'
import type { components, paths } from '../../../src/client/generated/schema.ts'
import { forgetAskedAhead, takeAskedAhead } from './asked-ahead.ts'

export type Schemas = components['schemas']
export type Problem = Schemas['Problem']

/** A refused or failed call. The message is the problem's `detail`, written for people. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail)
    this.problem = problem
  }

  get status(): number {
    return this.problem.status
  }

  /** Returns the problem with a field of the request, by its path. */
  fieldError(path: string): string | undefined {
    return this.problem.errors?.find((error) => error.path === path)?.message
  }
}

/** Names the account of a call. It also shows control that the call comes from a page of its own, because no other page can send it. */
const accountHeader = 'inlet-account'
let account = 'none'

/** The headers of a call for this account, wherever the person is when it begins. */
export function forAccount(account_id: string): { readonly [accountHeader]: string } {
  return { [accountHeader]: account_id }
}

/** All later calls are for this account; without one, for none. */
export function callFor(account_id: string | undefined): void {
  account = account_id ?? 'none'
}

export const client = createClient<paths>({
  baseUrl: '/',
  credentials: 'same-origin',
  fetch: (request) => {
    const { pathname, search } = new URL(request.url)
    const asker = request.headers.get(accountHeader) ?? account
    return takeAskedAhead(request.method, asker, pathname + search) ?? fetch(request)
  },
})

client.use({
  onRequest({ request }) {
    if (!request.headers.has(accountHeader)) request.headers.set(accountHeader, account)
  },
  onError({ error }) {
    return unreachable(error)
  },
})

type Answer<T> = { readonly data?: T; readonly error?: unknown; readonly response: Response }

/** Returns what a call answered. Throws ApiError for any answer but a success. */
export async function ok<T>(call: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await call
  if (response.ok) return data as T
  throw new ApiError(isProblem(error) ? error : unexplained(response))
}

/** A call of the sign-in, which is no part of the described API. Throws ApiError. */
export async function callSignIn<T>(method: 'GET' | 'POST', path: string, body?: object): Promise<T> {
  const headers = {
    [accountHeader]: account,
    accept: 'application/json',
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  }
  const init = {
    method,
    headers,
    credentials: 'same-origin' as const,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }
  if (method === 'POST') forgetAskedAhead()
  const call = takeAskedAhead(method, account, `/auth${path}`) ?? fetch(`/auth${path}`, init)
  const response = await call.catch((error: unknown) => Promise.reject(unreachable(error)))
  const answer: unknown = await response.json().catch(() => undefined)
  if (response.ok) return answer as T
  throw new ApiError(isProblem(answer) ? answer : unexplained(response))
}

function isProblem(value: unknown): value is Problem {
  return typeof value === 'object' && value !== null && 'detail' in value && 'status' in value
}

/** A proxy in between may answer in its own words. */
function unexplained({ status, statusText }: Response): Problem {
  const detail = `The server answered ${status} ${statusText} without saying why. Try again; if it stays, look into the log of control.`
  return { type: 'about:blank', title: statusText, status, error: 'internal_error', detail }
}

function unreachable(cause: unknown): ApiError {
  const detail = 'Control does not respond. Check that it runs, and your connection to it.'
  const error = new ApiError({ type: 'about:blank', title: 'No response', status: 0, error: 'unavailable', detail })
  error.cause = cause
  return error
}
