/** HTTPS on the ingest listener: the same service, and no plain text. */
import { once } from 'node:events'
import { request } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import { expect, test } from 'vitest'
import { anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'

const fixture = (name: string) => join(import.meta.dirname, '../fixtures/tls', name)
const environment = { INLET_TLS_CERTIFICATE_FILE: fixture('first.crt'), INLET_TLS_KEY_FILE: fixture('first.key') }
const endpoint = anEndpoint()
const start = () => IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }), environment })

async function post(url: string, body: string) {
  const headers = { 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson' }
  const ask = request(`${url}/v1/ingest`, { method: 'POST', headers, agent: false, rejectUnauthorized: false })
  ask.end(body)
  const [answer] = await once(ask, 'response')
  return { status: answer.statusCode, body: JSON.parse(await text(answer)) }
}

test('accepts requests, large ones too', async () => {
  await using node = await start()
  expect(node.url).toMatch(/^https:/)
  expect(await post(node.url, '{"a":1}\n')).toMatchObject({ status: 202, body: { accepted_records: 1 } })
  const lines = `${JSON.stringify('x'.repeat(1_000))}\n`.repeat(5_000)
  expect(await post(node.url, lines)).toMatchObject({ status: 202, body: { accepted_records: 5_000 } })
  const frames = await node.stored(endpoint.id)
  expect(frames.map(({ recordCount }) => recordCount)).toEqual([1, 5_000])
  expect(frames[1]?.payload.toString()).toBe(lines)
})

test('plain HTTP, garbage and old TLS versions get no response and do not affect other clients', async () => {
  await using node = await start()
  const port = Number(new URL(node.url).port)
  for (const bytes of [
    'POST /v1/ingest HTTP/1.1\r\nHost: x\r\n\r\n',
    '\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0',
    '\xff'.repeat(100),
  ]) {
    const socket = connect(port, '127.0.0.1')
    let received = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      received += chunk
    })
    socket.on('error', () => undefined)
    socket.write(bytes, 'latin1')
    await once(socket, 'close')
    expect(received).not.toContain('HTTP/1.1')
  }
  const old = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, minVersion: 'TLSv1', maxVersion: 'TLSv1.1' })
  const [failure] = await once(old, 'error')
  expect(String(failure)).toMatch(/protocol|version|alert/i)
  expect(await post(node.url, '{"a":1}\n')).toMatchObject({ status: 202 })
})
