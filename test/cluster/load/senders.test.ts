/** Clients notice servers that fail in one way each. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer, type Server, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeCertificate } from '../../support/certificates.ts'
import { until } from '../../support/until.ts'
import { Ledger } from '../../torture/ledger.ts'
import { Random } from '../../torture/random.ts'
import { HttpSender } from './http-sender.ts'
import { MqttSender } from './mqtt-sender.ts'
import { Notices } from './notices.ts'
import { Waits } from './sender.ts'

const name = 'a.inlet.test'
const [listening, closed] = ['127.0.0.1', '127.0.0.2']
let directory: string
let tls: { readonly cert: Buffer; readonly key: Buffer }

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'senders-'))
  const files = { certificateFile: join(directory, 'cert.pem'), keyFile: join(directory, 'key.pem') }
  await writeCertificate(files, { name, fromMs: Date.now() - 60_000, toMs: Date.now() + 3_600_000 })
  tls = { cert: readFileSync(files.certificateFile), key: readFileSync(files.keyFile) }
})

afterAll(() => rmSync(directory, { recursive: true }))

type Names = { readonly addresses: readonly string[]; readonly isCurrent: boolean }
const here: Names = { addresses: [listening], isCurrent: true }

/** Sends until something is acknowledged, and returns what was noticed, and how the first request went. `names` are the answers of DNS, the last of which is repeated. */
async function send(Kind: typeof HttpSender | typeof MqttSender, server: Server, names: readonly Names[] = [here]) {
  await new Promise<void>((resolve) => server.listen(0, listening, resolve))
  const ledger = new Ledger()
  const notices = new Notices()
  let looked = 0
  const resolve = async () => names[Math.min(looked++, names.length - 1)] ?? here
  const { port } = server.address() as AddressInfo
  const sender = new Kind({
    ...{
      ledger,
      notices,
      resolve,
      port,
      ca: String(tls.cert),
      ingestHost: name,
      transport: 'mqtts',
      endpointId: 'a',
      apiKey: 'k',
    },
    ...{ waits: new Waits(), random: new Random(1) },
  })
  await until('an acknowledgement', () => ledger.acknowledgedRecords > 0)
  await sender.stop()
  server.close()
  return { noticed: notices.since(0), attempts: ledger.sent[0]?.attempts ?? [] }
}

/** Responds to requests in turn; 202 after that. */
function httpServer(...first: readonly RequestListener[]): Server {
  let number = 0
  return createServer(tls, (request, response) => {
    request.resume()
    const respond = first[number++]
    if (respond === undefined) response.writeHead(202).end()
    else respond(request, response)
  })
}

/** Sends these codes in CONNACK, one for each connection, and acknowledges what follows the first 0. */
function mqttServer(...codes: readonly number[]): Server {
  let number = 0
  return createTlsServer(tls, (socket: TLSSocket) => {
    socket.on('error', () => undefined)
    const code = codes[number++] ?? 0
    socket.once('data', () => {
      const connack = Buffer.from([0x20, 3, 0, code, 0])
      if (code === 0) socket.write(connack)
      else socket.end(connack)
    })
    socket.on('data', (packet: Buffer) => {
      if (packet[0] !== 0x32) return
      // The topic has 7 characters. The identifier of the packet follows it.
      const at = packet.indexOf('plant/7') + 7
      socket.write(Buffer.from([0x40, 2, packet[at] ?? 0, packet[at + 1] ?? 0]))
    })
  })
}

test('a request that is accepted is not noticed, nor one that says when to try again', async () => {
  expect((await send(HttpSender, httpServer())).noticed).toEqual([])
  const refusing = httpServer((_, response) => response.writeHead(503, { 'retry-after': '0' }).end())
  expect(await send(HttpSender, refusing)).toEqual({ noticed: [], attempts: ['refused', 'acknowledged'] })
})

test.each<[string, RequestListener, RegExp]>([
  ['503 without Retry-After', (_, response) => response.writeHead(503).end(), /503/],
  ['500', (_, response) => response.writeHead(500).end(), /500/],
  ['no response', ({ socket }) => socket.destroy(), /socket hang up/],
])('%s is noticed', async (_, respond, text) => {
  const { noticed, attempts } = await send(HttpSender, httpServer(respond))
  expect(noticed).toEqual([expect.stringMatching(text)])
  expect(attempts).toEqual(['unknown', 'acknowledged'])
})

test.each([
  ['HTTP', HttpSender, () => httpServer()],
  ['MQTT', MqttSender, () => mqttServer()],
] as const)('%s: a refused connection is noticed if DNS names its address', async (_, Kind, server) => {
  const named = { addresses: [closed], isCurrent: true }
  const both = { addresses: [closed, listening], isCurrent: true }
  expect((await send(Kind, server(), [named, both])).noticed).toEqual([expect.stringContaining(`ECONNREFUSED ${closed}`)])
  expect((await send(Kind, server(), [{ ...named, isCurrent: false }, here])).noticed).toEqual([])
})

test('a session that MQTT refuses is noticed', async () => {
  expect((await send(MqttSender, mqttServer())).noticed).toEqual([])
  expect((await send(MqttSender, mqttServer(0x88))).noticed).toEqual([expect.stringContaining(listening)])
})
