/** Opens MQTT connections that then send nothing: `node mqtt-idle-clients.ts` gets jobs as messages and says when each is done. */
import { connect, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { generate } from 'mqtt-packet'
import { benchKey } from './inlet-node.ts'
import type { Transport } from './mqtt-idle.ts'
import { frame } from './mqtt-load.ts'

/** The address is `host:port`. */
export type IdleJob = { readonly transport: Transport; readonly address: string; readonly connections: number } | 'close'

const atOnce = 100
const upgrade =
  'GET /mqtt HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'

let sockets: Socket[] = []

/** Resolves when the server has accepted the CONNECT. */
function open(transport: Transport, address: { readonly host: string; readonly port: number }, index: number): Promise<void> {
  const isSecure = transport === 'tls' || transport === 'secure-websocket'
  const isWebSocket = transport.endsWith('websocket')
  const socket = isSecure ? connectSecurely({ ...address, rejectUnauthorized: false }) : connect(address)
  sockets.push(socket)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.on('error', reject)
  socket.on('close', () => reject(new Error('the server closed a connection')))
  const packet = generate({
    cmd: 'connect',
    ...{ clientId: `idle-${index}`, keepalive: 300, clean: true, username: 'bench', password: Buffer.from(benchKey) },
  })
  const hello = isWebSocket ? frame(packet) : packet
  let isUpgraded = !isWebSocket
  socket.once(isSecure ? 'secureConnect' : 'connect', () => socket.write(isWebSocket ? upgrade : hello))
  socket.on('data', (chunk: Buffer) => {
    if (isUpgraded) {
      if (chunk.at(-1) === 0) resolve()
      else reject(new Error(`connection refused: ${chunk.toString('hex')}`))
      return
    }
    if (!chunk.toString('latin1').startsWith('HTTP/1.1 101')) reject(new Error(`upgrade failed: ${chunk}`))
    isUpgraded = true
    socket.write(hello)
  })
  return promise
}

process.on('message', async (job: IdleJob) => {
  if (job === 'close') {
    const closed = sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve)))
    for (const socket of sockets)
      socket
        .removeAllListeners('error')
        .on('error', () => undefined)
        .end()
    await Promise.all(closed)
    sockets = []
  } else {
    const { hostname: host, port } = new URL(`http://${job.address}`)
    const address = { host, port: Number(port) }
    for (let index = 0; index < job.connections; index += atOnce) {
      const count = Math.min(atOnce, job.connections - index)
      await Promise.all(Array.from({ length: count }, (_, n) => open(job.transport, address, index + n)))
    }
  }
  process.send?.('done')
})
