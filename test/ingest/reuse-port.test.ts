/** Several nodes of one machine listen on one address. */
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { expect, test } from 'vitest'
import { freePort } from '../../tools/services/processes.ts'
import { anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { until } from '../support/until.ts'

const snapshot = aSnapshot({ endpoints: [anEndpoint()] })

async function start(port: number, more: Readonly<Record<string, string>> = {}): Promise<IngestNode> {
  const environment = { INLET_INGEST_LISTEN: `127.0.0.1:${port}`, INLET_REUSE_PORT: 'true', ...more }
  const node = await IngestNode.start({ snapshot, environment })
  // `/readyz` may have been that of the other node.
  await until('the node to be healthy', () => node.control.heartbeats.some(({ healthy }) => healthy))
  return node
}

/** Sends a record on a connection of its own, and returns the node that accepted it. */
async function accept(url: string): Promise<string> {
  const headers = { 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson' }
  const ask = request(`${url}/v1/ingest`, { method: 'POST', headers, agent: new Agent() })
  ask.end('{}\n')
  const [answer] = await once(ask, 'response')
  const body = JSON.parse(Buffer.concat(await answer.toArray()).toString())
  expect([answer.statusCode, body]).toEqual([202, expect.anything()])
  return body.node_id
}

test('connections are spread over both, and one of them may stop', async () => {
  const [port, mqttPort] = [await freePort(), await freePort()]
  const mqtt = { INLET_MQTT_LISTEN: `127.0.0.1:${mqttPort}` }
  await using one = await start(port, mqtt)
  await using other = await start(port, mqtt)
  expect([one.url, other.url]).toEqual(Array(2).fill(`http://127.0.0.1:${port}`))
  expect([one.mqttPort, other.mqttPort]).toEqual([mqttPort, mqttPort])
  const accepted = new Set<string>()
  // The kernel chooses by a hash of the addresses: 64 connections all to one node have a chance of 2^-63.
  for (let sent = 0; sent < 64; sent++) accepted.add(await accept(one.url))
  expect(accepted.size).toBe(2)
  await one.stop()
  const left = new Set<string>()
  for (let sent = 0; sent < 8; sent++) left.add(await accept(other.url))
  expect(left.size).toBe(1)
})

test('a node that does not say so finds the address in use', async () => {
  const port = await freePort()
  await using _node = await start(port)
  await expect(start(port, { INLET_REUSE_PORT: 'false' })).rejects.toMatchObject({ code: 'EADDRINUSE' })
})
