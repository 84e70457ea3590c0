/**
 * A TCP load balancer as operators have one: it asks each backend for /readyz and forwards connections to those that are ready, or to all
 * if none is. A connection ends when its backend stops responding.
 *
 * `node balancer-child.ts <settings as JSON>`
 */
import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { connect, createServer, type Socket } from 'node:net'

export type BalancerSettings = {
  readonly address: string
  readonly backends: readonly string[]
  /** Ports that are forwarded, each to the same port of a backend. */
  readonly ports: readonly number[]
  readonly healthPort: number
  /** Ports that lead to one backend. */
  readonly direct: readonly { readonly port: number; readonly backend: string }[]
  readonly scheme: 'http' | 'https'
}

const checkMs = 500
const checkTimeoutMs = 1_500
/** Failed checks in a row, after which a backend counts as gone. */
const failuresMax = 2

type Backend = { readonly address: string; failures: number; isReady: boolean; readonly sockets: Set<Socket> }

const settings: BalancerSettings = JSON.parse(process.argv[2] ?? '')
const backends = settings.backends.map((address): Backend => ({ address, failures: 0, isReady: false, sockets: new Set() }))
let turn = 0

for (const port of settings.ports) createServer((client) => balance(client, port)).listen(port, settings.address)
for (const { port, backend } of settings.direct) {
  createServer((client) => forward(client, settings.healthPort, find(backend))).listen(port, settings.address)
}
for (const backend of backends) void watch(backend)

function balance(client: Socket, port: number): void {
  const ready = backends.filter(({ isReady }) => isReady)
  const candidates = ready.length > 0 ? ready : backends
  turn += 1
  forward(client, port, candidates[turn % candidates.length])
}

function find(address: string): Backend | undefined {
  return backends.find((backend) => backend.address === address)
}

function forward(client: Socket, port: number, backend: Backend | undefined): void {
  if (backend === undefined) return
  const upstream = connect(port, backend.address)
  backend.sockets.add(client)
  const end = () => {
    backend.sockets.delete(client)
    client.destroy()
    upstream.destroy()
  }
  for (const socket of [client, upstream]) {
    socket.setNoDelay(true)
    socket.on('error', end)
    socket.on('close', end)
  }
  client.pipe(upstream)
  upstream.pipe(client)
}

async function watch(backend: Backend): Promise<never> {
  for (;;) {
    const status = await check(backend.address)
    backend.isReady = status === 200
    // A backend that says why it is not ready still answers requests.
    backend.failures = status === undefined ? backend.failures + 1 : 0
    if (backend.failures >= failuresMax) for (const socket of backend.sockets) socket.destroy()
    await new Promise((resolve) => setTimeout(resolve, checkMs))
  }
}

/** The certificate is not for the address of a backend. */
async function check(address: string): Promise<number | undefined> {
  const { get } = settings.scheme === 'https' ? https : http
  const options = { host: address, port: settings.healthPort, path: '/readyz', agent: false, rejectUnauthorized: false }
  try {
    const asked = get({ ...options, signal: AbortSignal.timeout(checkTimeoutMs) })
    // Once the response is there, an error of the connection changes nothing.
    asked.on('error', () => undefined)
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    response.on('error', () => undefined)
    response.resume()
    return response.statusCode
  } catch {
    return undefined
  }
}
