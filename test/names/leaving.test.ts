/** A node that is stopped on purpose is out of DNS before it stops listening: a client that follows DNS is never refused. */
import { expect, test } from 'vitest'
import { resolverOf } from '../../tools/services/bind.ts'
import { Fleet } from '../support/fleet.ts'
import { describeNameServer, freshDomain } from '../support/name-server.ts'
import { until } from '../support/until.ts'

const ttlSeconds = 2

describeNameServer('a node that is stopped', (nameServer) => {
  test('serves until its addresses have left DNS and the TTL has passed', { timeout: 120_000 }, async () => {
    const { server, tsig } = nameServer
    await using fleet = await Fleet.start({
      INLET_BASE_DOMAIN: freshDomain(nameServer),
      INLET_DNS_PROVIDER: 'rfc2136',
      INLET_DNS_SERVER: server,
      INLET_DNS_TSIG_NAME: tsig.name,
      INLET_DNS_TSIG_SECRET: tsig.secret,
      INLET_DNS_TTL_SECONDS: String(ttlSeconds),
    })
    const { id, ingest_host } = await fleet.newEndpoint()
    const nodes = [await fleet.startNode('127.0.0.2'), await fleet.startNode('127.0.0.3')]
    const [leaving] = nodes
    const resolver = resolverOf(nameServer)
    const lookUp = async () => (await resolver.resolve4(ingest_host).catch(() => [])).toSorted().join(' ')
    await until('both nodes to be published', async () => (await lookUp()) === '127.0.0.2 127.0.0.3', 20_000)
    await fleet.told(id, 'active')

    /** Connects to every address that it found at most a TTL ago. */
    const failures: string[] = []
    let connections = 0
    let isDone = false
    const client = (async () => {
      while (!isDone) {
        const addresses = await resolver.resolve4(ingest_host)
        const expiresAt = performance.now() + ttlSeconds * 1000
        while (!isDone && performance.now() < expiresAt) {
          for (const { address, port } of nodes.filter((node) => addresses.includes(node.address))) {
            const response = await fetch(`http://${address}:${port}/healthz`).catch((error: Error) => error)
            if (response instanceof Error) failures.push(`${address}: ${response.message}`)
            else await response.body?.cancel()
            connections += 1
          }
        }
      }
    })()

    const ended = leaving?.processes.end('ingest', 'SIGTERM')
    await until('the node to be out of DNS', async () => (await lookUp()) === '127.0.0.3', 20_000)
    const removedAt = performance.now()
    await fleet.told(id, 'degraded', [`node ${leaving?.id} is shutting down`])
    await ended
    expect(performance.now() - removedAt).toBeGreaterThan(ttlSeconds * 1000)
    isDone = true
    await client
    expect(failures).toEqual([])
    expect(connections).toBeGreaterThan(10)
    expect(await lookUp()).toBe('127.0.0.3')
  })
})
