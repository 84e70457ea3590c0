/** Control publishes the addresses of its nodes in a real BIND. */
import { expect, test } from 'vitest'
import { type BindDescription, resolverOf, updateZone } from '../../tools/services/bind.ts'
import { clientOf, newControl, operatorToken } from '../support/control.ts'
import { newDatabase } from '../support/databases.ts'
import { describeNameServer, freshDomain } from '../support/name-server.ts'
import { TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const environmentFor = ({ server, tsig }: BindDescription, domain: string): Record<string, string> => ({
  INLET_BASE_DOMAIN: domain,
  INLET_DNS_PROVIDER: 'rfc2136',
  INLET_DNS_SERVER: server,
  INLET_DNS_TSIG_NAME: tsig.name,
  INLET_DNS_TSIG_SECRET: tsig.secret,
})

describeNameServer('the names of endpoints', (nameServer) => {
  const resolver = resolverOf(nameServer)
  /** Returns all addresses of a name, in order; none if it does not exist. */
  const lookUp = async (name: string): Promise<string> => {
    const results = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    return results
      .flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
      .toSorted()
      .join(' ')
  }
  const published = (name: string, addresses: string) =>
    until(`${name} to have the addresses ${addresses || 'none'}`, async () => (await lookUp(name)) === addresses, 20_000)

  test('follow the healthy nodes, also after a restart of control, and go with the endpoint', async () => {
    await using database = await newDatabase()
    const environment = environmentFor(nameServer, freshDomain(nameServer))
    let name: string
    let first: TestNode
    let endpoint: string
    let api_key: string
    {
      await using control = await newControl({ database, environment })
      const account = await control.newAccount()
      const { body } = await account.post('/v1/endpoints', { region: 'fra' })
      ;({ id: endpoint, ingest_host: name } = body)
      api_key = account.api_key
      first = await TestNode.register(control, 'fra', { ipv4: ['192.0.2.1'], ipv6: ['2001:db8::1'] })
      await first.heartbeat()
      await published(name, '192.0.2.1 2001:db8::1')
      const second = await TestNode.register(control, 'fra', { ipv4: ['192.0.2.2'], ipv6: [] })
      await second.heartbeat()
      await published(name, '192.0.2.1 192.0.2.2 2001:db8::1')
      await first.heartbeat({ healthy: false })
      await published(name, '192.0.2.2')
      // Without any healthy node, the last addresses stay.
      await second.heartbeat({ healthy: false })
      await first.heartbeat()
      await published(name, '192.0.2.1 2001:db8::1')
    }
    await using control = await newControl({ database, environment })
    first.at(control)
    await first.registerAgain({ ipv4: ['192.0.2.3'], ipv6: [] })
    await first.heartbeat()
    await published(name, '192.0.2.3')
    const { body } = await control.call('POST', '/v1/token/exchange', { api_key, scope: 'admin', ttl: '1h' })
    await clientOf(control.call, body.access_token).delete(`/v1/endpoints/${endpoint}?force=true`)
    await published(name, '')
  })

  test('have the TTL of the operator, and the right addresses after somebody else changed them', async () => {
    const domain = freshDomain(nameServer)
    await using control = await newControl({ environment: { ...environmentFor(nameServer, domain), INLET_DNS_TTL_SECONDS: '7' } })
    const account = await control.newAccount()
    const { body } = await account.post('/v1/endpoints', { region: 'fra' })
    const node = await TestNode.register(control, 'fra', { ipv4: ['192.0.2.1'], ipv6: [] })
    await node.heartbeat()
    await published(body.ingest_host, '192.0.2.1')
    expect(await resolver.resolve4(body.ingest_host, { ttl: true })).toEqual([{ address: '192.0.2.1', ttl: 7 }])
    await updateZone(nameServer, [`delete ${body.ingest_host} A`])
    const many = Array.from({ length: 40 }, (_, index) => `192.0.2.${index}`)
    await node.registerAgain({ ipv4: many, ipv6: [] })
    await node.heartbeat()
    await until('32 of 40 addresses to be published', async () => (await lookUp(body.ingest_host)).split(' ').length === 32)
    const { dns_ipv4 } = (await account.get(`/v1/endpoints/${body.id}`)).body
    expect(dns_ipv4.toSorted().join(' ')).toBe(await lookUp(body.ingest_host))
    await node.registerAgain({ ipv4: ['192.0.2.2'], ipv6: [] })
    await node.heartbeat()
    await published(body.ingest_host, '192.0.2.2')
  })

  test('lose the addresses of nodes that the operator shuts out, also those of the last one', async () => {
    await using control = await newControl({ environment: environmentFor(nameServer, freshDomain(nameServer)) })
    const account = await control.newAccount()
    const operator = clientOf(control.call, operatorToken)
    const { body } = await account.post('/v1/endpoints', { region: 'fra' })
    const [first, last] = [
      await TestNode.register(control, 'fra', { ipv4: ['192.0.2.1'], ipv6: ['2001:db8::1'] }),
      await TestNode.register(control, 'fra', { ipv4: ['192.0.2.2'], ipv6: [] }),
    ]
    await first.heartbeat()
    await last.heartbeat()
    await published(body.ingest_host, '192.0.2.1 192.0.2.2 2001:db8::1')
    expect(await operator.delete(`/v1/nodes/${first.id}/credential`)).toMatchObject({ status: 204 })
    await published(body.ingest_host, '192.0.2.2')
    expect(await operator.delete(`/v1/nodes/${last.id}?force=true`)).toMatchObject({ status: 200 })
    await published(body.ingest_host, '')
    const reasons = [`the credential of node ${first.id} is revoked`]
    expect((await account.get(`/v1/endpoints/${body.id}`)).body.status_reasons).toEqual(reasons)
  })

  test('do not lead to a node without an address that clients reach', async () => {
    await using control = await newControl({ environment: environmentFor(nameServer, freshDomain(nameServer)) })
    const account = await control.newAccount()
    const { body } = await account.post('/v1/endpoints', { region: 'fra' })
    const elsewhere = { ipv4: ['127.0.0.1'], ipv6: [], ingest_address: '192.0.2.9:443' }
    const [none, local, good] = [
      await TestNode.register(control, 'fra', { ipv4: [], ipv6: [] }),
      await TestNode.register(control, 'fra', elsewhere),
      await TestNode.register(control, 'fra', { ipv4: ['192.0.2.1'], ipv6: [] }),
    ]
    for (const node of [none, local, good]) await node.heartbeat()
    await published(body.ingest_host, '192.0.2.1')
    const { status_reasons } = (await account.get(`/v1/endpoints/${body.id}`)).body
    expect(status_reasons).toContain(`node ${none.id} reports no address for DNS: set INLET_NODE_ADDRESSES on it`)
    expect(status_reasons).toContain(
      `node ${local.id} reports only loopback addresses for DNS (127.0.0.1): set INLET_NODE_ADDRESSES on it`,
    )
  })

  test('lose a node that leaves, which learns when clients no longer find it', async () => {
    const environment = { ...environmentFor(nameServer, freshDomain(nameServer)), INLET_DNS_TTL_SECONDS: '60' }
    await using control = await newControl({ environment })
    const account = await control.newAccount()
    const { body } = await account.post('/v1/endpoints', { region: 'fra' })
    const [leaving, staying] = [
      await TestNode.register(control, 'fra', { ipv4: ['192.0.2.1'], ipv6: [] }),
      await TestNode.register(control, 'fra', { ipv4: ['192.0.2.2'], ipv6: [] }),
    ]
    const { epoch } = await leaving.snapshot()
    const ask = async (): Promise<number | null> => {
      const state = { node_id: leaving.id, applied_epoch: epoch, healthy: true, reasons: [], disk_full: false, blocked: [] }
      return (await leaving.call('POST', 'heartbeat', { process: 'ingest', ...state, leaving: true })).body.may_stop_in_seconds
    }
    await leaving.heartbeat()
    await staying.heartbeat()
    await published(body.ingest_host, '192.0.2.1 192.0.2.2')
    expect(await ask()).toBe(null)
    await published(body.ingest_host, '192.0.2.2')
    await until('control to confirm it', async () => (await ask()) !== null)
    expect(await ask()).toBeGreaterThan(50)
    control.clock.advance(66_000)
    expect(await ask()).toBe(0)
  })
})
