/** Tenants of an installation: each with an account, a key and an endpoint of its own, all reached from outside. */
import { Agent, request } from 'node:http'
import { ApiClient } from '../test/support/api-client.ts'
import type { Installation } from '../test/support/installation.ts'

export const operatorToken = 'an-operator-token-of-the-benchmark-0123456789'

const definition = { columns: [{ name: 'n', type: 'BIGINT', path: '$.n' }] }

/** An endpoint, and a client with a key for it. */
export type Target = { readonly client: ApiClient; readonly endpointId: string }

export class Tenant implements Target {
  readonly client: ApiClient
  readonly endpointId: string

  private constructor(client: ApiClient, endpointId: string) {
    this.client = client
    this.endpointId = endpointId
  }

  /** Without a bucket, nothing of the tenant is ever delivered. */
  static async create(installation: Installation, name: string, bucket: string | null): Promise<Tenant> {
    const { apiUrl, ingestUrl } = installation
    const response = await fetch(`${apiUrl}/v1/accounts`, {
      method: 'POST',
      headers: { authorization: `Bearer ${operatorToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name }),
    })
    const { first_key } = (await response.json()) as { first_key: { api_key: string } }
    const client = new ApiClient({ apiUrl, ingestUrl, apiKey: first_key.api_key })
    const endpoint = await client.ok('POST', '/v1/endpoints', {
      region: 'loc',
      segment_max_age_seconds: 1,
      ...(bucket === null ? {} : { destination_id: await aDestination(client, bucket) }),
    })
    const tenant = new Tenant(client, endpoint.id)
    const viewId = bucket === null ? undefined : await attach(tenant, 'events', definition)
    await installation.untilConfigured(endpoint.id, viewId)
    return tenant
  }
}

export async function attach({ client, endpointId }: Target, name: string, given: object): Promise<string> {
  const { id } = await client.ok('POST', '/v1/views', { name, definition: given })
  await client.ok('POST', `/v1/views/${id}/publish`)
  await client.ok('POST', `/v1/endpoints/${endpointId}/views`, { view_id: id })
  return id
}

async function aDestination(client: ApiClient, bucket: string): Promise<string> {
  const role_arn = 'arn:aws:iam::000000000000:role/inlet-bench'
  const { id } = await client.ok('POST', '/v1/destinations', { name: bucket, bucket, region: 'local', role_arn })
  await client.ok('POST', `/v1/destinations/${id}/validate`)
  return id
}

export type Sent = { readonly status: number; readonly seq: number | undefined; readonly ms: number }

/** Sends records over connections of its own. An attacker has another address than its victim. */
export class Sender {
  readonly #tenant: Target
  readonly #agent = new Agent({ keepAlive: true })
  readonly #localAddress: string

  constructor(tenant: Target, localAddress: string) {
    this.#tenant = tenant
    this.#localAddress = localAddress
  }

  /** Status 0: there was no response. */
  send(body: string | Buffer): Promise<Sent> {
    const { client, endpointId } = this.#tenant
    const startedAt = performance.now()
    const { promise, resolve } = Promise.withResolvers<Sent>()
    const end = (status: number, text = '') => {
      const seq = status === 202 ? (JSON.parse(text) as { segment_seq: number }).segment_seq : undefined
      resolve({ status, seq, ms: performance.now() - startedAt })
    }
    const outgoing = request(
      `${client.ingestUrl}/v1/ingest?endpoint=${endpointId}`,
      {
        method: 'POST',
        agent: this.#agent,
        localAddress: this.#localAddress,
        timeout: 30_000,
        headers: {
          'x-api-key': client.apiKey,
          'content-type': 'application/x-ndjson',
          'content-length': Buffer.byteLength(body),
        },
      },
      (response) => {
        let text = ''
        response.on('data', (part) => (text += part))
        response.on('end', () => end(response.statusCode ?? 0, text))
        response.on('error', () => end(0))
      },
    )
    outgoing.on('timeout', () => outgoing.destroy())
    outgoing.on('error', () => end(0))
    outgoing.end(body)
    return promise
  }

  close(): void {
    this.#agent.destroy()
  }
}
