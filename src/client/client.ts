/** A client of the management API: a method for each operation of its description. */
import { Access, type AccessToken } from './access.ts'
import { baseOf } from './address.ts'
import { Bound, type CallOptions } from './bound.ts'
import { ApiError, InletError } from './errors.ts'
import { type Operations, operations } from './generated/operations.ts'
import { type ListQuery, listingOf } from './listing.ts'
import type { Operation } from './operation.ts'
import { type Fetch, type OutgoingRequest, Sender } from './sender.ts'

export type ClientOptions = {
  /** Address of control, such as `https://inlet.example.com`. */
  readonly url: string | URL
  /** API key. It is exchanged for access tokens when the first operation needs one. */
  readonly apiKey?: string | undefined
  /** Token of the operator of the installation, for operations on accounts and nodes. */
  readonly operatorToken?: string | undefined
  /** Bound of each call, with all its attempts, in milliseconds: 60 000 if not set. */
  readonly timeoutMs?: number | undefined
  /** How often a failed call is repeated, where that can help and does no harm: 4 times if not set. */
  readonly retriesMax?: number | undefined
  /** Replaces the `fetch` of the platform, for proxies or tests. */
  readonly fetch?: Fetch | undefined
}

/** Each operation of the management API by its `operationId`: ids of the path first, then the body or the query, then options. */
export type Client = Operations

/**
 * Creates a client of the management API. It connects at the first call.
 *
 * ```ts
 * const inlet = createClient({ url: 'http://127.0.0.1:8080', apiKey: 'ing_live_…' })
 * for await (const endpoint of inlet.listEndpoints()) console.log(endpoint.name, endpoint.status)
 * ```
 */
export function createClient(options: ClientOptions): Client {
  const caller = new Caller(options)
  const methods = Object.entries(operations).map(([name, operation]) => [
    name,
    (...args: readonly unknown[]) => caller.call(name, operation, args),
  ])
  return Object.fromEntries(methods)
}

class Caller {
  readonly #base: URL
  readonly #sender: Sender
  readonly #timeoutMs: number
  readonly #access: Access | undefined
  readonly #operatorToken: string | undefined

  constructor({ url, apiKey, operatorToken, timeoutMs = 60_000, retriesMax = 4, fetch: send = fetch }: ClientOptions) {
    this.#base = baseOf(url)
    this.#timeoutMs = timeoutMs
    this.#sender = new Sender({ retriesMax, fetch: (...request) => send(...request) })
    this.#access = apiKey === undefined ? undefined : new Access((scope) => this.#exchange({ api_key: apiKey, scope }))
    this.#operatorToken = operatorToken
  }

  call(name: string, operation: Operation, args: readonly unknown[]): unknown {
    const { path, input, paging } = operation
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter = '']) => parameter)
    const target = names.reduce(
      (text, parameter, index) => text.replace(`{${parameter}}`, idOf(args[index], name, parameter)),
      path,
    )
    const rest = args.slice(names.length)
    const given = input === 'none' ? undefined : rest.shift()
    const options = (rest[0] ?? {}) as CallOptions
    if (input === 'body') return this.#send(operation, target, {}, given, options)
    const query = (given ?? {}) as ListQuery
    if (paging === undefined) return this.#send(operation, target, query, undefined, options)
    return listingOf(paging, query, (page) => this.#send(operation, target, page, undefined, options))
  }

  async #send(operation: Operation, path: string, query: ListQuery, body: unknown, options: CallOptions): Promise<unknown> {
    const { method, isRepeatable } = operation
    const request = { method, url: this.#urlOf(path, query), isRepeatable, ...bodyOf(body) }
    const { timeoutMs = this.#timeoutMs, signal } = options
    const bound = new Bound(`${method} ${request.url.pathname}`, timeoutMs, signal)
    try {
      return await this.#sendWithin(bound, request, operation.scope)
    } finally {
      bound.release()
    }
  }

  async #sendWithin(bound: Bound, request: OutgoingRequest, scope: Operation['scope']): Promise<unknown> {
    if (scope === 'public') return this.#sender.send(request, bound)
    if (scope === 'operator') return this.#sender.send(withToken(request, this.#requireOperatorToken()), bound)
    const access = this.#requireAccess()
    const token = await bound.wait(access.tokenFor(scope))
    try {
      return await this.#sender.send(withToken(request, token), bound)
    } catch (error) {
      // A token can end early: with a new secret of control, or while the machine slept.
      if (!(error instanceof ApiError) || error.code !== 'unauthorized') throw error
      await access.forget(token)
      return this.#sender.send(withToken(request, await bound.wait(access.tokenFor(scope))), bound)
    }
  }

  /** Many calls wait for the same token, so none of them ends the exchange. */
  async #exchange(body: object): Promise<AccessToken> {
    return (await this.#send(operations.exchangeToken, operations.exchangeToken.path, {}, body, {})) as AccessToken
  }

  #urlOf(path: string, query: ListQuery): URL {
    const url = new URL(path.slice(1), this.#base)
    for (const [name, value] of Object.entries(query)) {
      for (const each of [value].flat()) if (each !== undefined) url.searchParams.append(name, String(each))
    }
    return url
  }

  #requireAccess(): Access {
    if (this.#access === undefined) throw new InletError('this operation needs an API key: pass `apiKey` to createClient')
    return this.#access
  }

  #requireOperatorToken(): string {
    if (this.#operatorToken !== undefined) return this.#operatorToken
    throw new InletError('this operation needs the token of the operator: pass `operatorToken` to createClient')
  }
}

/** Returns an id as a part of a path. An empty one, or dots, would name another operation. */
function idOf(value: unknown, operation: string, parameter: string): string {
  if (typeof value === 'string' && !/^\.{0,2}$/.test(value)) return encodeURIComponent(value)
  throw new InletError(`${operation}: ${parameter} must be an id, not ${JSON.stringify(value)}`)
}

function bodyOf(body: unknown): Pick<OutgoingRequest, 'body' | 'headers'> {
  return body === undefined ? { headers: {} } : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
}

function withToken(request: OutgoingRequest, token: string): OutgoingRequest {
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } }
}
