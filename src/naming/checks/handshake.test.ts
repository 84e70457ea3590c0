/** Listeners that do not do what a TLS server should. Control connects to whatever a node names. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { expect, test } from 'vitest'
import { makeCertificate } from '../../../test/support/certificates.ts'
import { readServedCertificate } from './handshake.ts'
import { checkLimits } from './limits.ts'

async function handshake(server: Server): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket.on('error', () => undefined)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  try {
    const { names } = await readServedCertificate({ address: '127.0.0.1', port }, 'a.test', new AbortController().signal)
    return names
  } finally {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
}

async function aServerWith(nameCount: number): Promise<Server> {
  const names = Array.from({ length: nameCount }, (_, index) => `name-${index}.inlet.test`)
  const certificate = await makeCertificate({ names, fromMs: Date.now() - 60_000, toMs: Date.now() + 60_000 })
  return createTlsServer(certificate).on('tlsClientError', () => undefined)
}

test('as many names as a public CA allows are read', async () => {
  expect((await handshake(await aServerWith(100))).split(', ')).toHaveLength(100)
})

test('more names than anybody needs are refused', async () => {
  await expect(handshake(await aServerWith(2_000))).rejects.toThrow(/^its names have \d+ characters/)
})

test('a listener that says nothing is given up', async () => {
  await expect(handshake(createServer())).rejects.toThrow('no response within 5 s')
}, 15_000)

test('a connection whose packets get lost is tried again', async () => {
  const certificate = await makeCertificate({ names: ['a.test'], fromMs: Date.now() - 60_000, toMs: Date.now() + 60_000 })
  const served = createTlsServer(certificate)
  let connections = 0
  const lossy = createServer((socket) => {
    connections += 1
    if (connections === checkLimits.handshakeTimeoutsMs.length) served.emit('connection', socket)
  })
  expect(await handshake(lossy)).toBe('DNS:a.test')
})

test.each([
  ['speaks HTTP', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
  ['sends endless garbage', 'x'.repeat(1_000_000)],
])('a listener that %s is an error', async (_, said) => {
  await expect(handshake(createServer((socket) => void socket.end(said)))).rejects.toThrow(/SSL|socket|ECONNRESET/i)
})
