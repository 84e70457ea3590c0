/**
 * The status of an endpoint tells the truth within ten seconds: each test brings a state about with real processes, name servers and
 * certificates, and waits for the status and its reason. docs/status.md lists all of them.
 */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { resolverOf, startBind, updateZone } from '../../tools/services/bind.ts'
import { writeCertificate } from '../support/certificates.ts'
import { Fleet, fleetRegion } from '../support/fleet.ts'
import { describeNameServer, freshDomain } from '../support/name-server.ts'
import { until } from '../support/until.ts'

const minuteMs = 60_000
const second = 1_000

describeNameServer('the status of an endpoint', (nameServer) => {
  const { server, tsig } = nameServer
  const managed = (domain: string) => ({
    INLET_BASE_DOMAIN: domain,
    INLET_DNS_PROVIDER: 'rfc2136',
    INLET_DNS_SERVER: server,
    INLET_DNS_TSIG_NAME: tsig.name,
    INLET_DNS_TSIG_SECRET: tsig.secret,
  })
  const kept = (domain: string, at = server) => ({
    INLET_BASE_DOMAIN: domain,
    INLET_DNS_PROVIDER: 'static',
    INLET_DNS_SERVER: at,
  })

  test('follows nodes that start, die and come back, and so does DNS', { timeout: 2 * minuteMs }, async () => {
    await using fleet = await Fleet.start(managed(freshDomain(nameServer)))
    const { id, ingest_host } = await fleet.newEndpoint()
    const resolver = resolverOf(nameServer)
    const isPublished = (...addresses: readonly string[]) =>
      until(`${ingest_host} to be ${addresses.join(' and ')}`, async () => {
        const found = await resolver.resolve4(ingest_host).catch(() => [])
        return found.toSorted().join() === addresses.join()
      })
    await fleet.told(id, 'deploying', [`no node serves region ${fleetRegion}`])
    const first = await fleet.startNode('127.0.0.2')
    await fleet.told(id, 'active')
    await isPublished('127.0.0.2')

    const other = await fleet.startNode('127.0.0.3')
    await isPublished('127.0.0.2', '127.0.0.3')
    await fleet.told(id, 'active')
    await other.kill('ingest')
    await fleet.told(id, 'degraded', [`node ${other.id} has not sent a heartbeat for 7 s`])
    await isPublished('127.0.0.2')
    await first.kill('ingest')
    await fleet.told(id, 'failed', [`node ${first.id} has not sent a heartbeat for 7 s`])
    // A set that leads to a dead node may lead to a living one soon. No set leads nowhere.
    await isPublished('127.0.0.2')

    first.start('ingest')
    await fleet.told(id, 'degraded', [`node ${other.id} has not sent`])
    other.start('ingest')
    await fleet.told(id, 'active')
    await first.kill('delivery')
    await fleet.told(id, 'degraded', [`delivery of node ${first.id} has not sent a heartbeat for 7 s`])
    first.start('delivery')
    await fleet.told(id, 'active')
  })

  test('does not blame nodes for the time for which control was away', { timeout: 2 * minuteMs }, async () => {
    await using fleet = await Fleet.start({})
    const { id } = await fleet.newEndpoint()
    const node = await fleet.startNode('127.0.0.2')
    await fleet.told(id, 'active')
    await fleet.control.kill('control')
    const awayUntil = performance.now() + 11 * second
    await until('control to be away for longer than a node may be silent', () => performance.now() > awayUntil, 15 * second)
    await fleet.control.start('control')
    expect((await fleet.control.ok('GET', `/v1/endpoints/${id}`)).status).toBe('active')
    await node.kill('ingest')
    await fleet.told(id, 'failed', [`node ${node.id} has not sent a heartbeat`])
  })

  test('follows what its owner and the operator do', { timeout: 2 * minuteMs }, async () => {
    await using fleet = await Fleet.start({})
    const { control } = fleet
    const { id } = await fleet.newEndpoint()
    const node = await fleet.startNode('127.0.0.2')
    await fleet.told(id, 'active')
    await control.ok('POST', `/v1/endpoints/${id}/pause`)
    await fleet.told(id, 'paused', ['the endpoint is paused'])
    await control.ok('POST', `/v1/endpoints/${id}/resume`)
    await fleet.told(id, 'active')

    const { id: unbound } = await fleet.newEndpoint({ destination_id: null })
    await fleet.told(unbound, 'degraded', ['no destination is bound'])
    const role = { region: 'local', role_arn: 'arn:aws:iam::000000000000:role/inlet-test' }
    const { id: destination_id } = await control.ok('POST', '/v1/destinations', { name: 'new', bucket: 'new', ...role })
    await control.ok('PATCH', `/v1/endpoints/${unbound}`, { destination_id })
    await fleet.told(unbound, 'degraded', ['the destination is not validated'])

    // Delivery has to report that nothing is left.
    await node.kill('delivery')
    await control.ok('DELETE', `/v1/endpoints/${id}`)
    await fleet.told(id, 'draining', ['the endpoint is being deleted'])
    await fleet.told(id, 'draining', [`delivery of node ${node.id} has not sent a heartbeat since`])
    node.start('delivery')
    await until('the endpoint to be deleted', async () => (await control.api('GET', `/v1/endpoints/${id}`)).status === 404)

    const listed = await fleet.operate('GET', '/v1/accounts')
    const { items } = (await listed.json()) as { readonly items: readonly { readonly id: string }[] }
    await fleet.operate('PATCH', `/v1/accounts/${items[0]?.id}`, { status: 'suspended' })
    await fleet.told(unbound, 'paused', ['the account is suspended'])
  })

  test('says which record is missing or wrong', { timeout: 2 * minuteMs }, async () => {
    await using fleet = await Fleet.start(kept(freshDomain(nameServer)))
    await fleet.startNode('127.0.0.2')
    const { id, ingest_host: name } = await fleet.newEndpoint()
    await fleet.told(id, 'deploying', [`the A record of ${name} is missing: it should be 127.0.0.2`])
    await updateZone(nameServer, [`add ${name} 30 A 127.0.0.2`])
    await fleet.told(id, 'active')
    await updateZone(nameServer, [`delete ${name} A`])
    await fleet.told(id, 'degraded', [`the A record of ${name} is missing: it should be 127.0.0.2`])
    await updateZone(nameServer, [`add ${name} 30 A 127.0.0.9`])
    await fleet.told(id, 'degraded', [`the A record of ${name} is 127.0.0.9: it should be 127.0.0.2`])
    await updateZone(nameServer, [`delete ${name} A`, `add ${name} 30 A 127.0.0.2`, `add ${name} 30 AAAA ::9`])
    await fleet.told(id, 'degraded', [`the AAAA record of ${name} is ::9: there should be none`])
    await updateZone(nameServer, [`delete ${name} AAAA`])
    await fleet.told(id, 'active')
  })

  test('says that a name server gives no answer', { timeout: 2 * minuteMs }, async () => {
    const bind = await startBind()
    try {
      const { described } = bind
      await using fleet = await Fleet.start(kept(freshDomain(described), described.server))
      await fleet.startNode('127.0.0.2')
      const { id, ingest_host: name } = await fleet.newEndpoint()
      await updateZone(described, [`add ${name} 30 A 127.0.0.2`])
      await fleet.told(id, 'active')
      await bind.kill()
      await fleet.told(id, 'degraded', [`name server ${described.server} gave no answer about ${name}`])
      await bind.start()
      await fleet.told(id, 'active')
    } finally {
      await bind.stop()
    }
  })

  test('publishes a record again that somebody else removed', { timeout: 2 * minuteMs }, async () => {
    await using fleet = await Fleet.start(managed(freshDomain(nameServer)))
    await fleet.startNode('127.0.0.2')
    const { id, ingest_host: name } = await fleet.newEndpoint()
    await fleet.told(id, 'active')
    await updateZone(nameServer, [`delete ${name} A`])
    await fleet.told(id, 'degraded', [`the A record of ${name} is missing`])
    await fleet.told(id, 'active')
  })

  test('says what is wrong with a certificate', { timeout: 2 * minuteMs }, async () => {
    const domain = freshDomain(nameServer)
    await using fleet = await Fleet.start({ INLET_BASE_DOMAIN: domain })
    const files = {
      certificateFile: join(fleet.control.directory, 'tls.crt'),
      keyFile: join(fleet.control.directory, 'tls.key'),
    }
    const write = (name: string, fromSeconds: number, toSeconds: number) => {
      const now = Date.now()
      return writeCertificate(files, { name, fromMs: now + fromSeconds * second, toMs: now + toSeconds * second })
    }
    const wildcard = `*.${fleetRegion}.${domain}`
    await write(`*.ber.${domain}`, -60, 86_400)
    const environment = { INLET_TLS_CERTIFICATE_FILE: files.certificateFile, INLET_TLS_KEY_FILE: files.keyFile }
    const { id, ingest_host: name } = await fleet.newEndpoint()
    const node = await fleet.startNode('127.0.0.2', environment)
    await fleet.told(id, 'deploying', [`is for *.ber.${domain}, not for ${name}`])

    const restart = async () => {
      await node.kill('ingest')
      node.start('ingest')
    }
    // A minute and a half of life: the last 15 s of it are a reason.
    await write(wildcard, -65, 25)
    await restart()
    await fleet.told(id, 'active')
    const expiresAt = Date.now() + 25 * second
    await fleet.told(id, 'degraded', [`the certificate of node ${node.id} expires at`])
    await until('the certificate to expire', () => Date.now() > expiresAt, 30 * second)
    await fleet.told(id, 'degraded', [`the certificate of node ${node.id} expired at`])

    await write(wildcard, 600, 86_400)
    await restart()
    await fleet.told(id, 'degraded', ['is valid only from'])
    await write(`*.ber.${domain}`, -60, 86_400)
    await restart()
    await fleet.told(id, 'degraded', ['not for'])
    await write(wildcard, -60, 86_400)
    await restart()
    await fleet.told(id, 'active')
  })
})
