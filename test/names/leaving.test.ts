/** A real node that is stopped leaves the real BIND before it stops listening, and clients that ask BIND notice nothing. */
import { expect, test } from 'vitest'
import { resolverOf } from '../../tools/services/bind.ts'
import { Fleet } from '../support/fleet.ts'
import { HttpFollower } from '../support/follower.ts'
import { freePort } from '../support/installation.ts'
import { describeNameServer, freshDomain } from '../support/name-server.ts'
import { until } from '../support/until.ts'

const ttlSeconds = 2

describeNameServer('a node that is stopped', (nameServer) => {
  test('leaves DNS, serves until its clients have gone, and comes back', { timeout: 120_000 }, async () => {
    const { server, tsig } = nameServer
    await using fleet = await Fleet.start({
      INLET_BASE_DOMAIN: freshDomain(nameServer),
      INLET_DNS_PROVIDER: 'rfc2136',
      INLET_DNS_SERVER: server,
      INLET_DNS_TSIG_NAME: tsig.name,
      INLET_DNS_TSIG_SECRET: tsig.secret,
      INLET_DNS_TTL_SECONDS: String(ttlSeconds),
    })
    const [leaving, staying] = ['127.0.0.2', '127.0.0.3'] as const
    const port = await freePort()
    const node = await fleet.startNode(leaving, { INLET_INGEST_LISTEN: `${leaving}:${port}` })
    await fleet.startNode(staying, { INLET_INGEST_LISTEN: `${staying}:${port}` })
    const { id, ingest_host: name } = await fleet.newEndpoint()
    const resolver = resolverOf(nameServer)
    const lookUp = async () => (await resolver.resolve4(name).catch(() => [])).toSorted()
    const haveBoth = async () => (await lookUp()).join() === `${leaving},${staying}`
    await until('both nodes to be in DNS', haveBoth, 30_000)

    let addresses = await lookUp()
    let turn = 0
    const refresh = setInterval(() => void lookUp().then((found) => (addresses = found)), (ttlSeconds * 1000) / 2)
    const { apiKey } = fleet.control
    const resolve = () => addresses[turn++ % addresses.length] ?? ''
    const clients = ['a', 'b', 'c', 'd'].map(
      (who) => new HttpFollower(who, { resolve, port, endpointId: id, apiKey, pauseMs: 10 }),
    )
    await until('every client to send', () => clients.every(({ acknowledged }) => acknowledged.length > 10), 30_000)
    let hasEnded = false
    const ended = node.processes.end('ingest', 'SIGTERM').then((code) => {
      hasEnded = true
      return code
    })
    await until('the node to be gone from DNS', async () => (await lookUp()).join() === staying)
    expect(hasEnded).toBe(false)
    expect((await fetch(`http://${leaving}:${port}/healthz`)).status).toBe(200)
    expect(await ended).toBe(0)
    node.start('ingest')
    await until('both nodes to be in DNS', haveBoth, 30_000)
    await Promise.all(clients.map((client) => client.stop()))
    clearInterval(refresh)
    expect(clients.flatMap(({ failures }) => failures)).toEqual([])
  })
})
