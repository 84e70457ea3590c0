/** Requests to one node, whatever DNS says of it: as of a client that kept its address. */
import { once } from 'node:events'
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type Agent, get, request } from 'node:https'
import { text } from 'node:stream/consumers'
import { until } from '../../support/until.ts'
import { type Outcome, recordText } from '../../torture/ledger.ts'
import type { Cluster, ClusterEndpoint } from '../cluster.ts'
import { type NodeName, ports, regionOf } from '../layout.ts'
import type { Host } from '../network/host.ts'
import { isRefusedForNow, mayBeStored } from './http-sender.ts'

const timeoutMs = 3_000
const acknowledgeMsMax = 20_000

export type Response = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: string }

export type Post = {
  /** Name of the endpoint. */
  readonly host: string
  readonly apiKey: string
  readonly body: string
  readonly agent?: Agent
  readonly timeoutMs?: number
}

/** Sends NDJSON once. Throws an error without a response. */
export function postTo({ address }: Host, { host, apiKey, body, agent, timeoutMs: ms = timeoutMs }: Post): Promise<Response> {
  const outgoing = request({
    ...{ host: address, port: ports.ingest, servername: host, agent: agent ?? false, rejectUnauthorized: false },
    ...{ method: 'POST', path: '/v1/ingest', signal: AbortSignal.timeout(ms) },
    headers: { host, 'x-api-key': apiKey, 'content-type': 'application/x-ndjson', 'content-length': Buffer.byteLength(body) },
  })
  outgoing.end(body)
  return responseOf(outgoing)
}

/** Sends one record to a node. The ledger counts it like the requests of any client. Returns undefined without a response. */
export async function sendRecord(
  cluster: Cluster,
  name: NodeName,
  { id, ingestHost }: ClusterEndpoint,
): Promise<Response | undefined> {
  const { ledger, installation } = cluster
  const { apiKey } = installation
  const sent = ledger.create(id, 1)
  let response: Response | undefined
  await ledger.attempt(sent, async () => {
    response = await postTo(cluster.host(name), { host: ingestHost, apiKey, body: `${recordText(sent.id, 0, '')}\n` })
    return outcomeOf(response)
  })
  return response
}

export type Stored = { readonly endpointId: string; readonly receipt: string }

/** Stores a record of each endpoint on a node. Its clients may all be at the other node of the region. */
export async function storeRecords(cluster: Cluster, name: NodeName): Promise<readonly Stored[]> {
  const stored: Stored[] = []
  for (const endpoint of cluster.endpointsIn(regionOf(name))) stored.push(await storeRecord(cluster, name, endpoint))
  return stored
}

async function storeRecord(cluster: Cluster, name: NodeName, endpoint: ClusterEndpoint): Promise<Stored> {
  let receipt = ''
  const isStored = async () => {
    const response = await sendRecord(cluster, name, endpoint)
    if (response?.status !== 202) return false
    const { node_id, segment_seq } = JSON.parse(response.body)
    receipt = `${node_id}-${segment_seq}`
    return true
  }
  await until(`${name} to acknowledge a record`, isStored, acknowledgeMsMax)
  return { endpointId: endpoint.id, receipt }
}

/** Asks a node whether it is ready. Throws an error without a response. */
export function readinessOf({ address }: Host): Promise<Response> {
  const signal = AbortSignal.timeout(timeoutMs)
  const options = { host: address, port: ports.ingest, path: '/readyz', agent: false, rejectUnauthorized: false, signal }
  return responseOf(get(options))
}

function outcomeOf({ status, headers, body }: Response): Exclude<Outcome, 'pending'> {
  if (status === 202) return 'acknowledged'
  if (mayBeStored(body)) return 'unknown'
  return isRefusedForNow(status, headers) || status < 500 ? 'refused' : 'unknown'
}

async function responseOf(outgoing: ClientRequest): Promise<Response> {
  // Once the response is there, an error of the connection changes nothing.
  outgoing.on('error', () => undefined)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) }
}
