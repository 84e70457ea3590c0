/** An HTTP client of an Inlet: needs only its URLs and an API key. */
import { until } from './until.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into responses of every shape
export type ApiResponse = { readonly status: number; readonly body: any; readonly headers: Headers }

export type Address = { readonly apiUrl: string; readonly ingestUrl: string; readonly apiKey: string }

export class ApiClient {
  readonly apiUrl: string
  readonly ingestUrl: string
  readonly apiKey: string
  #token: string | undefined

  constructor({ apiUrl, ingestUrl, apiKey }: Address) {
    this.apiUrl = apiUrl
    this.ingestUrl = ingestUrl
    this.apiKey = apiKey
  }

  /** Sends a request. If the response is 429, waits as long as it asks for and repeats the request. */
  async api(method: string, path: string, body?: unknown): Promise<ApiResponse> {
    for (;;) {
      const response = await this.request(method, path, body)
      if (response.status !== 429) return response
      const seconds = Number(response.headers.get('retry-after') ?? 1)
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
    }
  }

  /** Returns the body of a response that must be a success. */
  // biome-ignore lint/suspicious/noExplicitAny: see ApiResponse
  async ok(method: string, path: string, body?: unknown): Promise<any> {
    const response = await this.api(method, path, body)
    if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`)
    return response.body
  }

  async ingest(
    endpointId: string,
    body: string | Uint8Array<ArrayBuffer>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<ApiResponse> {
    const response = await fetch(`${this.ingestUrl}/v1/ingest?endpoint=${endpointId}`, {
      method: 'POST',
      headers: { 'x-api-key': this.apiKey, 'content-type': 'application/x-ndjson', ...headers },
      body,
    })
    return { status: response.status, headers: response.headers, body: await response.json() }
  }

  /** Every commit of the endpoint, newest first, over all pages. */
  async commits(endpointId: string): Promise<readonly Commit[]> {
    const all = []
    for (let before = ''; ; ) {
      const page = await this.ok('GET', `/v1/endpoints/${endpointId}/commits?limit=200${before && `&before=${before}`}`)
      all.push(...page.items)
      if (page.next_cursor === null) return all
      before = page.next_cursor
    }
  }

  /** Waits until control has the commits of these segments. */
  async committed(endpointId: string, seqs: Iterable<number>, timeoutMs = 60_000): Promise<void> {
    const wanted = new Set(seqs)
    await until(
      `the commits of ${[...wanted].join(', ')}`,
      async () => {
        const seen = new Set((await this.commits(endpointId)).map(({ seq }) => seq))
        return [...wanted].every((seq) => seen.has(seq))
      },
      timeoutMs,
    )
  }

  /** Sends a request once. */
  async request(method: string, path: string, body?: unknown): Promise<ApiResponse> {
    const token = await this.accessToken()
    const response = await fetch(`${this.apiUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
  }

  /** Returns a token for an hour. */
  async accessToken(): Promise<string> {
    this.#token ??= await this.#exchangeKey()
    return this.#token
  }

  async #exchangeKey(): Promise<string> {
    const response = await fetch(`${this.apiUrl}/v1/token/exchange`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ api_key: this.apiKey, scope: 'admin', ttl: '1h' }),
    })
    if (!response.ok) throw new Error(`the API key was not accepted: ${response.status} ${await response.text()}`)
    const { access_token } = (await response.json()) as { access_token: string }
    return access_token
  }
}

export type Commit = {
  readonly id: string
  readonly records: number
  readonly node_id: string
  readonly seq: number
  readonly sealed_at: string
  readonly uploaded_at: string
  readonly artifacts: Readonly<Record<string, { readonly key: string; readonly bytes: number }>>
}
