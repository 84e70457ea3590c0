/** Reasons of nodes in the status of an endpoint, each brought about with real processes. Other reasons are in `status.test.ts`. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { updateZone } from '../../tools/services/bind.ts'
import { ApiClient } from '../support/api-client.ts'
import { writeCertificate } from '../support/certificates.ts'
import { newDatabase, postgresUrl } from '../support/databases.ts'
import { FaultProxy } from '../support/fault-proxy.ts'
import { Fleet } from '../support/fleet.ts'
import { secretKey } from '../support/keyring.ts'
import { describeNameServer, freshDomain } from '../support/name-server.ts'
import { until } from '../support/until.ts'

const minuteMs = 60_000

describeNameServer('the reasons of a status', (nameServer) => {
  test('of a node that has not heard of the endpoint, of its disk, and of its end', { timeout: 2 * minuteMs }, async () => {
    await using fleet = await Fleet.start({})
    await using proxy = await FaultProxy.start(fleet.control.nodeApiUrl)
    const { id } = await fleet.newEndpoint()
    const node = await fleet.startNode('127.0.0.2', { INLET_CONTROL_URL: proxy.url })
    await fleet.told(id, 'active')

    const { id: deleted } = await fleet.newEndpoint()
    await fleet.told(deleted, 'active')
    const polls = '/internal/v1/snapshot'
    proxy.break(polls, { kind: 'answer', status: 503, code: 'busy' })
    await node.kill('ingest')
    node.start('ingest')
    await until('a poll to fail', () => proxy.hits(polls) > 2, 30_000)
    const { id: unknown } = await fleet.newEndpoint()
    await fleet.told(unknown, 'deploying', [`node ${node.id} does not know the endpoint yet`])
    await fleet.control.ok('DELETE', `/v1/endpoints/${deleted}`)
    await fleet.told(deleted, 'draining', [`node ${node.id} has not applied the deletion yet`])
    proxy.heal(polls)
    await fleet.told(unknown, 'active')

    const full = await fleet.startNode('127.0.0.3', { INLET_DISK_RESERVE_BYTES: '1024GiB' })
    await until('the full node to have an id', () => full.hasId)
    await fleet.told(id, 'degraded', [`node ${full.id} is not healthy: `])
    await full.kill('ingest')

    const ended = node.processes.end('ingest', 'SIGTERM')
    await fleet.told(id, 'failed', [`node ${node.id} was shut down at `])
    expect(await ended).toBe(0)
    await fleet.operate('DELETE', `/v1/nodes/${node.id}/credential?release=true&force=true`)
    await fleet.told(id, 'failed', [`the id of node ${node.id} was released, and no node has joined with it since`])
  })

  test('of a certificate that nobody issues', { timeout: minuteMs }, async () => {
    const { server, tsig } = nameServer
    await using fleet = await Fleet.start({
      INLET_BASE_DOMAIN: freshDomain(nameServer),
      INLET_DNS_PROVIDER: 'rfc2136',
      INLET_DNS_SERVER: server,
      INLET_DNS_TSIG_NAME: tsig.name,
      INLET_DNS_TSIG_SECRET: tsig.secret,
      INLET_CERTIFICATES: 'acme',
      INLET_ACME_DIRECTORY: 'https://127.0.0.1:1/directory',
    })
    const { id } = await fleet.newEndpoint()
    const node = await fleet.startNode('127.0.0.2', { INLET_CERTIFICATES: 'control' })
    await until('the node to have an id', () => node.hasId)
    const reason = `node ${node.id} is not healthy: no TLS certificate yet`
    await fleet.told(id, 'deploying', [reason, 'the last order of a certificate failed: '])
  })

  test('of a certificate that cannot be read at one of the addresses', { timeout: minuteMs }, async () => {
    await using fleet = await Fleet.start({})
    const { directory } = fleet.control
    const files = { certificateFile: join(directory, 'tls.crt'), keyFile: join(directory, 'tls.key') }
    await writeCertificate(files, { name: 'node.inlet.test', fromMs: Date.now() - minuteMs, toMs: Date.now() + 1_000 * minuteMs })
    const { id } = await fleet.newEndpoint()
    const node = await fleet.startNode('127.0.0.2', {
      INLET_NODE_ADDRESSES: '127.0.0.2,127.0.0.9',
      INLET_TLS_CERTIFICATE_FILE: files.certificateFile,
      INLET_TLS_KEY_FILE: files.keyFile,
    })
    await until('the node to have an id', () => node.hasId, minuteMs)
    await fleet.told(id, 'degraded', [`the certificate of node ${node.id} cannot be read at 127.0.0.9 port ${node.port}: `])
  })

  test('of delivery: segments that cannot be delivered or listed', { timeout: 2 * minuteMs }, async () => {
    await using fleet = await Fleet.start({})
    const { id } = await fleet.newEndpoint()
    const node = await fleet.startNode('127.0.0.2')
    await fleet.told(id, 'active')
    const wal = join(node.processes.directory, 'node', 'wal')
    const log = join(wal, id)
    mkdirSync(log, { recursive: true })
    writeFileSync(join(log, '000000000099-aaaaaaaaaa.wal'), 'not a segment')
    await fleet.told(id, 'degraded', ['1 segment is quarantined: see inlet segments'])
    rmSync(log, { recursive: true })
    await fleet.told(id, 'active')

    renameSync(wal, `${wal}-away`)
    writeFileSync(wal, '')
    await fleet.told(id, 'degraded', [`delivery of node ${node.id} is not healthy: the segments on this node cannot be listed`])
    rmSync(wal)
    renameSync(`${wal}-away`, wal)
    await fleet.told(id, 'active')
  })

  test.skipIf(postgresUrl === undefined)(
    'are seen by the next leader when the one before dies',
    { timeout: 2 * minuteMs },
    async () => {
      await using database = await newDatabase('postgres')
      await using fleet = await Fleet.start({
        INLET_DATABASE_URL: database.url,
        INLET_SECRET_KEY: secretKey,
        INLET_BASE_DOMAIN: freshDomain(nameServer),
        INLET_DNS_PROVIDER: 'static',
        INLET_DNS_SERVER: nameServer.server,
      })
      const other = await fleet.startOtherControl()
      // The node calls the process that goes on.
      await fleet.startNode('127.0.0.2', { INLET_CONTROL_URL: other.nodeApiUrl })
      const { id, ingest_host: name } = await fleet.newEndpoint()
      await updateZone(nameServer, [`add ${name} 30 A 127.0.0.2`])
      await fleet.told(id, 'active')
      await fleet.control.kill('control')
      await updateZone(nameServer, [`delete ${name} A`])
      const api = new ApiClient({ apiUrl: other.apiUrl, ingestUrl: other.ingestUrl, apiKey: fleet.control.apiKey })
      await fleet.told(id, 'degraded', [`the A record of ${name} is missing`], api)
    },
  )
})
