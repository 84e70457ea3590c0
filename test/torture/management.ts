/** The management API for a harness that kills control: repeats each call until it gets a response, with a new token if need be. */
import { type Address, ApiClient, type ApiResponse } from '../support/api-client.ts'

const pauseMs = 150

export class Management {
  readonly #address: Address
  #client: ApiClient

  constructor(address: Address) {
    this.#address = address
    this.#client = new ApiClient(address)
  }

  /** Returns the response, which may be an error of the caller. Throws after `timeoutMs` without one. */
  async call(method: string, path: string, body?: unknown, timeoutMs = 60_000): Promise<ApiResponse> {
    const deadline = performance.now() + timeoutMs
    for (;;) {
      const response = await this.#try(method, path, body)
      if (response !== undefined && response.status < 500 && response.status !== 401) return response
      // The clock of the node jumps, so tokens expire early, or are not valid yet.
      this.#client = new ApiClient(this.#address)
      if (performance.now() > deadline) {
        throw new Error(`${method} ${path}: ${response?.status ?? 'no response'} for ${timeoutMs / 1000} s`)
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  // biome-ignore lint/suspicious/noExplicitAny: as in ApiClient
  async ok(method: string, path: string, body?: unknown): Promise<any> {
    const { status, body: result } = await this.call(method, path, body)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(result)}`)
    return result
  }

  commits(endpointId: string): ReturnType<ApiClient['commits']> {
    return this.#client.commits(endpointId)
  }

  /** Returns undefined without a response in time: a stopped process accepts connections. */
  async #try(method: string, path: string, body?: unknown): Promise<ApiResponse | undefined> {
    const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 5_000).unref())
    return await Promise.race([this.#client.request(method, path, body).catch(() => undefined), late])
  }
}
