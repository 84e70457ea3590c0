/**
 * A TCP load balancer as operators have one: it asks each backend for /readyz and forwards connections to those that are ready, or to all
 * if none is. A connection ends when its backend stops responding.
 *
 * `node balancer-child.ts <settings as JSON>`
 */
import { connect, createServer, type Socket } from 'node:net'

export type BalancerSettings = {
  readonly address: string
  readonly backends: readonly string[]
  /** Ports that are forwarded, each to the same port of a backend. */
  readonly ports: readonly number[]
  readonly healthPort: number
}

const checkMs = 500
const checkTimeoutMs = 1_500
/** Failed checks in a row, after which a backend counts as gone. */
const failuresMax = 2

type Backend = { readonly address: string; failures: number; isReady: boolean; readonly sockets: Set<Socket> }

const settings: BalancerSettings = JSON.parse(process.argv[2] ?? '')
const backends = settings.backends.map((address): Backend => ({ address, failures: 0, isReady: false, sockets: new Set() }))
let turn = 0

for (const port of settings.ports) createServer((client) => forward(client, port)).listen(port, settings.address)
for (const backend of backends) void watch(backend)

function forward(client: Socket, port: number): void {
  const ready = backends.filter(({ isReady }) => isReady)
  const candidates = ready.length > 0 ? ready : backends
  turn += 1
  const backend = candidates[turn % candidates.length]
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

async function check(address: string): Promise<number | undefined> {
  try {
    const response = await fetch(`http://${address}:${settings.healthPort}/readyz`, {
      signal: AbortSignal.timeout(checkTimeoutMs),
    })
    await response.body?.cancel()
    return response.status
  } catch {
    return undefined
  }
}
