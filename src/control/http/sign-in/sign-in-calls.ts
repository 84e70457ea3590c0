/** How calls below `/auth` reach the library for signing in, and how its answers go back. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { clientAddressHeader } from '#auth/sign-in.ts'
import { AppError, type ErrorCode, errorTable } from '#errors.ts'

type Call = { readonly path: string; readonly body: unknown }

/** Headers that the library reads. */
const passedHeaders = ['cookie', 'origin', 'referer', 'user-agent', 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest'] as const

/** Returns a call as the library reads it. `instead` replaces its path and body. */
export function toWebRequest({ method, url, headers, ip, body: sent }: FastifyRequest, instead?: Call): Request {
  const { path, body } = instead ?? { path: url, body: sent }
  const passed = new Headers({ [clientAddressHeader]: ip })
  for (const name of passedHeaders) {
    const value = headers[name]
    if (typeof value === 'string') passed.set(name, value)
  }
  if (method === 'GET') return new Request(new URL(path, 'http://control'), { headers: passed })
  passed.set('content-type', 'application/json')
  return new Request(new URL(path, 'http://control'), { method, headers: passed, body: JSON.stringify(body ?? {}) })
}

/** Sends what the library answers; its errors in the form of all others. A redirect stays in the console. */
export async function sendAnswer(reply: FastifyReply, response: Response): Promise<unknown> {
  reply.header('cache-control', 'no-store')
  const cookies = response.headers.getSetCookie()
  if (cookies.length > 0) reply.header('set-cookie', cookies)
  const to = response.headers.get('location')
  if (to !== null && response.status >= 300 && response.status < 400) {
    const { pathname, search } = new URL(to, 'http://control')
    reply.code(303).header('location', pathname.replace(/^\/+/, '/') + search)
    return ''
  }
  const body: unknown = await response.json().catch(() => null)
  if (response.ok) {
    reply.code(response.status)
    return body
  }
  throw new AppError(codeOf(response.status), messageOf(body))
}

function codeOf(status: number): ErrorCode {
  const codes = Object.keys(errorTable) as ErrorCode[]
  return codes.find((code) => errorTable[code].status === status) ?? 'internal_error'
}

function messageOf(body: unknown): string {
  if (typeof body !== 'object' || body === null) return 'signing in failed'
  if ('code' in body && body.code === 'SESSION_NOT_FRESH')
    return 'you signed in more than a day ago: sign out, sign in again, and repeat this'
  const message = 'message' in body ? String(body.message) : ''
  return message === '' ? 'signing in failed' : message.charAt(0).toLowerCase() + message.slice(1)
}
