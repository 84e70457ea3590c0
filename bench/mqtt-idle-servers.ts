/** A server that mqtt-idle.ts measures, in a process of its own: `node mqtt-idle-servers.ts floor|inlet TRANSPORT DIRECTORY`. */
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { WebSocketServer } from 'ws'
import { freePort } from '../tools/services/processes.ts'
import { type Running, startInlet } from './inlet-node.ts'
import type { Transport } from './mqtt-idle.ts'
import { answerQuestions } from './rig.ts'

const accepted = Buffer.from([0x20, 2, 0, 0])
const [kind, transport, directory = ''] = process.argv.slice(2) as ['floor' | 'inlet', Transport, string]
const isSecure = transport === 'tls' || transport === 'secure-websocket'
const files = { cert: join(directory, 'certificate.pem'), key: join(directory, 'key.pem') }

/** The least that keeps a connection: no session, no deadline, no limits. */
async function startFloor(): Promise<Running> {
  const certificate = isSecure ? { cert: readFileSync(files.cert), key: readFileSync(files.key) } : {}
  const server = createFloor(certificate)
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0, backlog: 4096 }, resolve))
  return {
    url: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    clean: async () => undefined,
    stop: async () => process.exit(0),
  }
}

function createFloor(certificate: { readonly cert?: Buffer; readonly key?: Buffer }): Server {
  const onSocket = (socket: Socket) => {
    socket.on('data', () => socket.write(accepted))
    socket.on('error', () => socket.destroy())
  }
  if (transport === 'tcp') return createServer({ noDelay: true }, onSocket)
  if (transport === 'tls') return createTlsServer(certificate, onSocket)
  const server = isSecure ? createHttpsServer(certificate) : createHttpServer()
  const upgrades = new WebSocketServer({
    server,
    clientTracking: false,
    perMessageDeflate: false,
    handleProtocols: () => 'mqtt',
  })
  upgrades.on('connection', (webSocket) => {
    webSocket.on('message', () => webSocket.send(accepted))
    webSocket.on('error', () => undefined)
  })
  return server
}

async function startOurs(): Promise<Running> {
  const port = await freePort()
  const certificate = { INLET_TLS_CERTIFICATE_FILE: files.cert, INLET_TLS_KEY_FILE: files.key }
  const bounds = { INLET_MAX_CONNECTIONS: '1000000', INLET_MAX_UNAUTHENTICATED_PER_ADDRESS: '4000' }
  const settings = { ...bounds, ...(isSecure ? certificate : {}) }
  const { url, ...running } = await startInlet(join(directory, transport), { mqttPort: port, settings })
  return { ...running, url: transport.endsWith('websocket') ? new URL(url).host : `127.0.0.1:${port}` }
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect: (options: object) => void = runInNewContext('gc')
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

const running = kind === 'floor' ? await startFloor() : await startOurs()
answerQuestions({ ...running, clean: async () => collectGarbage() })
