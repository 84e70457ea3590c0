/** The checks of names can fail: with a DNS server and TLS servers that tell something else. */

import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { decode, encode } from 'dns-packet'
import { afterEach, expect, test } from 'vitest'
import { writeCertificate } from '../support/certificates.ts'
import type { Cluster } from './cluster.ts'
import { ports } from './layout.ts'
import { findWrongCertificates, findWrongRecords } from './names.ts'
import { LoopbackNetwork } from './network/loopback.ts'

const { address } = new LoopbackNetwork().hub
const name = 'a.nyc.inlet.test'
const hourMs = 3_600_000
const open: { readonly close: (done: () => void) => unknown }[] = []

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => new Promise<void>((resolve) => server.close(resolve))))
})

/** A cluster with one endpoint in `nyc`, as far as these checks look at it. */
const clusterOf = (parts: { readonly server?: string; readonly root?: string }) =>
  ({
    endpoints: [{ id: 'a', region: 'nyc', protocol: 'http', ingestHost: name }],
    network: { hasNames: false },
    host: () => ({ address, addresses: [address] }),
    services: { bind: { described: { server: parts.server } }, pebble: { described: { root: parts.root } } },
  }) as unknown as Cluster

/** Starts a name server that has these addresses for each name. */
async function nameServer(addresses: readonly string[]): Promise<string> {
  const socket: Socket = createSocket('udp4')
  socket.on('message', (query, { port, address: from }) => {
    const { id = 0, questions = [] } = decode(query)
    const isA = questions[0]?.type === 'A'
    const answers = isA ? addresses.map((data) => ({ type: 'A' as const, name, ttl: 1, data })) : []
    socket.send(encode({ type: 'response', id, questions, answers }), port, from)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  open.push(socket)
  return `127.0.0.1:${socket.address().port}`
}

test.each<[string, readonly string[], boolean]>([
  ['as it should be', [address], true],
  ['without the node', [], false],
  ['with another one', ['192.0.2.1'], false],
  ['with one too many', [address, '192.0.2.1'], false],
])('a name %s', async (_, addresses, isRight) => {
  const found = await findWrongRecords(clusterOf({ server: await nameServer(addresses) }), () => ['nyc-1'])
  expect(found.length === 0).toBe(isRight)
})

test.each<[string, string, number, boolean]>([
  ['for the name', name, hourMs, true],
  ['for another name', 'a.fra.inlet.test', hourMs, false],
  ['that has expired', name, -hourMs, false],
])('a certificate %s', async (_, servedName, endsInMs, isRight) => {
  const directory = mkdtempSync(join(tmpdir(), 'names-'))
  const files = { certificateFile: join(directory, 'cert.pem'), keyFile: join(directory, 'key.pem') }
  await writeCertificate(files, { name: servedName, fromMs: Date.now() - 2 * hourMs, toMs: Date.now() + endsInMs })
  const [cert, key] = [readFileSync(files.certificateFile, 'utf8'), readFileSync(files.keyFile, 'utf8')]
  rmSync(directory, { recursive: true })
  for (const port of [ports.ingest, ports.mqtt]) {
    const server = createServer({ cert, key }, (socket) => void socket.on('error', () => undefined))
    server.listen(port, address)
    await once(server, 'listening')
    open.push(server)
  }
  const found = await findWrongCertificates(clusterOf({ root: cert }))
  expect(found).toHaveLength(isRight ? 0 : 2)
})
