import { z } from 'zod'
import { patienceMs } from './patience.ts'

/** The API returned an error. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
}

const AccessToken = z.object({ access_token: z.string(), expires_in: z.number() })

/** A minimal client of the management API, as any user might write it. Exchanges the key again before the token expires. */
export class ManagementApi {
  readonly #url: string
  readonly #apiKey: string
  #token = ''
  #tokenUntilMs = 0

  constructor({ url, apiKey }: { readonly url: string; readonly apiKey: string }) {
    this.#url = url
    this.#apiKey = apiKey
  }

  async get<T extends z.ZodType>(path: string, schema: T): Promise<z.output<T>> {
    return schema.parse(await this.#call('GET', path, await this.#authorization()))
  }

  async post<T extends z.ZodType>(path: string, body: unknown, schema: T): Promise<z.output<T>> {
    return schema.parse(await this.#call('POST', path, await this.#authorization(), body))
  }

  async #authorization(): Promise<Record<string, string>> {
    if (performance.now() > this.#tokenUntilMs) {
      const token = await this.#call('POST', '/v1/token/exchange', {}, { api_key: this.#apiKey, scope: 'admin' })
      const { access_token, expires_in } = AccessToken.parse(token)
      this.#token = access_token
      this.#tokenUntilMs = performance.now() + (expires_in - 60) * 1000
    }
    return { authorization: `Bearer ${this.#token}` }
  }

  async #call(method: string, path: string, headers: Record<string, string>, body?: unknown): Promise<unknown> {
    const response = await fetch(`${this.#url}${path}`, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(patienceMs),
    })
    const text = await response.text()
    if (!response.ok) throw new ApiError(`${method} ${path} failed with ${response.status}: ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
}
