/** The certificate that control hands to a node. */
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { fingerprintOf } from '#lib/fingerprint.ts'
import type { IssuedCertificate } from '#model/node-protocol.ts'
import { handshake, portOf } from '../support/handshake.ts'
import { aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { MqttClient } from '../support/mqtt-client.ts'
import { mqttEndpoint } from '../support/mqtt-node.ts'
import { until } from '../support/until.ts'

const environment = { INLET_CERTIFICATES: 'control', INLET_MQTT_LISTEN: '127.0.0.1:0' }
const endpoint = mqttEndpoint()

function certificate(name: 'first' | 'renewed'): IssuedCertificate {
  const read = (suffix: string) => readFileSync(join(import.meta.dirname, `../fixtures/tls/${name}.${suffix}`), 'utf8')
  return { fingerprint: fingerprintOf(read('crt')), chain: read('crt'), key: read('key') }
}

const [first, renewed] = [certificate('first'), certificate('renewed')]

/** Publishes a configuration with the fingerprint of a certificate. */
function announce(node: IngestNode, epoch: number, { fingerprint }: IssuedCertificate): void {
  node.control.publish(aSnapshot({ epoch, endpoints: [endpoint], certificate: fingerprint }))
}

const serialAt = (port: number) => handshake(port, { rejectUnauthorized: false }).then(({ serial }) => serial)

/** Waits until new connections get this certificate. */
async function served(node: IngestNode, { chain }: IssuedCertificate): Promise<void> {
  const serial = new X509Certificate(chain).serialNumber
  for (const port of [portOf(node.url), node.mqttPort ?? 0])
    await until('the certificate', () =>
      serialAt(port).then(
        (found) => found === serial,
        () => false,
      ),
    )
}

/** Starts a node that has the certificate. */
async function started(options: { readonly directory?: string } = {}): Promise<IngestNode> {
  const node = await IngestNode.start({ snapshot: undefined, environment, ...options })
  node.control.certificate = first
  announce(node, 1, first)
  await served(node, first)
  return node
}

test('a node without one is not ready, and serves it as soon as control has issued it', async () => {
  await using node = await IngestNode.start({ snapshot: undefined, environment })
  expect(node.url).toMatch(/^https:/)
  node.control.publish(aSnapshot({ endpoints: [endpoint] }))
  await until('a heartbeat with the reason', () =>
    node.control.heartbeats.some(
      (beat) => !beat.healthy && beat.reasons.some((reason) => reason.includes('no TLS certificate yet')),
    ),
  )
  await expect(serialAt(portOf(node.url))).rejects.toThrow()
  // The snapshot may arrive before the certificate can be fetched.
  announce(node, 2, first)
  node.control.certificate = first
  await served(node, first)
  await node.until('/readyz', ({ status }) => status === 200)
  expect(statSync(join(node.directory, 'node', 'certificate.pem')).mode & 0o077).toBe(0)
})

test('a renewed one is served to new connections, while HTTP and MQTT connections stay open', async () => {
  await using node = await started()
  const port = portOf(node.url)
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
  const post = async () => {
    const headers = { 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson' }
    const sent = request(`${node.url}/v1/ingest`, { method: 'POST', headers, agent })
    sent.end('{"a":1}\n')
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    await text(response)
    return { status: response.statusCode, socket: sent.socket }
  }
  const before = await post()
  const { client: overTls, connack } = await MqttClient.connect({ port: node.mqttPort ?? 0, transport: 'tls' })
  expect(connack).toMatchObject({ returnCode: 0 })
  const { client: overWebSocket } = await MqttClient.connect({ port, transport: 'wss' }, { clientId: 'another' })
  node.control.certificate = renewed
  announce(node, 2, renewed)
  await served(node, renewed)
  const after = await post()
  expect(after).toMatchObject({ status: 202 })
  expect(after.socket).toBe(before.socket)
  for (const client of [overTls, overWebSocket]) {
    client.send({ cmd: 'pingreq' })
    expect(await client.next()).toMatchObject({ cmd: 'pingresp' })
    await client[Symbol.asyncDispose]()
  }
  agent.destroy()
})

test('serves TLS 1.2 and 1.3 on both listeners, and nothing older', async () => {
  await using node = await started()
  for (const port of [portOf(node.url), node.mqttPort ?? 0]) {
    const ask = (options: object) => handshake(port, { rejectUnauthorized: false, ...options })
    expect(await ask({ maxVersion: 'TLSv1.2' })).toMatchObject({ protocol: 'TLSv1.2' })
    expect(await ask({})).toMatchObject({ protocol: 'TLSv1.3' })
    await expect(ask({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1' })).rejects.toThrow()
  }
})

test('plain text gets no response, and others are served', async () => {
  await using node = await started()
  const port = portOf(node.url)
  for (const bytes of [
    'POST /v1/ingest HTTP/1.1\r\nHost: x\r\n\r\n',
    '\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0',
    '\xff'.repeat(100),
  ]) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    socket.write(bytes, 'latin1')
    expect(await text(socket)).not.toContain('HTTP/1.1')
  }
  expect(await serialAt(port)).toBe(new X509Certificate(first.chain).serialNumber)
})

test('a start without control serves the stored one; a damaged file waits for control', async () => {
  await using node = await started()
  const { directory } = node
  await node.stop()
  const controlUrl = 'http://127.0.0.1:1'
  const again = await IngestNode.start({ snapshot: undefined, environment, directory, controlUrl })
  await served(again, first)
  await again[Symbol.asyncDispose]()
  const file = join(directory, 'node', 'certificate.pem')
  writeFileSync(file, readFileSync(file, 'utf8').slice(0, 700))
  await using damaged = await IngestNode.start({ snapshot: undefined, environment, directory })
  await expect(serialAt(portOf(damaged.url))).rejects.toThrow()
  damaged.control.certificate = first
  announce(damaged, 2, first)
  await served(damaged, first)
})
