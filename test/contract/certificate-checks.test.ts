/** Control makes TLS handshakes with nodes: what it sees of their certificates is in the status of endpoints. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServer, type Server } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { useControl } from '../support/control.ts'
import { TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const control = useControl({ environment: { INLET_BASE_DOMAIN: 'inlet.test' } })
const fixture = (name: string) => readFileSync(join(import.meta.dirname, '../fixtures/tls', name))
const askedFor = new Set<string | false | null>()
let listener: Server | undefined

/** With a certificate for `*.loc.inlet.test`. */
beforeAll(async () => {
  listener = createServer({ cert: fixture('first.crt'), key: fixture('first.key') }, (socket) => {
    askedFor.add(socket.servername)
    socket.on('error', () => undefined).end()
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
})
afterAll(() => listener?.close())

async function served(region: string) {
  const { port } = must(listener, 'the listener').address() as AddressInfo
  const account = await control().newAccount()
  const role = { region: 'eu-central-1', role_arn: 'arn:aws:iam::123456789012:role/ingest' }
  const { body: destination } = await account.post('/v1/destinations', { name: 'lake', bucket: 'lake', ...role })
  await account.post(`/v1/destinations/${destination.id}/validate`)
  const { body: endpoint } = await account.post('/v1/endpoints', { region, destination_id: destination.id })
  const node = await TestNode.register(control(), region, { ipv6: [], tls_ports: [port] })
  const read = async () => (await account.get(`/v1/endpoints/${endpoint.id}`)).body
  /** The node goes on sending heartbeats. */
  const told = (status: string, reason: string) =>
    until(`${status}: ${reason}`, async () => {
      await node.heartbeat()
      const { status: now, status_reasons } = await read()
      return now === status && status_reasons.join('; ').includes(reason)
    })
  return { account, endpoint, node, port, read, told }
}

test('deploying until the certificate was seen with the name of an endpoint, then active, and degraded without a listener', async () => {
  const { node, port, read, told } = await served('loc')
  await node.heartbeat()
  expect(await read()).toMatchObject({ status: 'deploying', status_reasons: [expect.stringContaining('is not checked yet')] })
  await told('active', '')
  for (const name of askedFor) expect(name).toMatch(/^[a-z0-9]{12}\.loc\.inlet\.test$/)
  must(listener, 'the listener').close()
  await told('degraded', `the certificate of node ${node.id} cannot be read at 127.0.0.1 port ${port}: connect ECONNREFUSED`)
  must(listener, 'the listener').listen(port, '127.0.0.1')
  await told('active', '')
})

test('deploying with a certificate for other names, and listed as such', async () => {
  const { account, endpoint, node, told } = await served('ber')
  const names = 'localhost, 127.0.0.1, *.loc.inlet.test'
  await told('deploying', `the certificate of node ${node.id} is for ${names}, not for ${endpoint.ingest_host}`)
  expect(await account.get('/v1/endpoints?status=deploying')).toMatchObject({ body: { items: [{ id: endpoint.id }] } })
})
