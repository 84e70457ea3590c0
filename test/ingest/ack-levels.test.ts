/** The acknowledgement that a sender asks for: `Inlet-Ack` over HTTP, and the user property of MQTT 5. */
import { afterEach, describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { MqttClient, type Version } from '../support/mqtt-client.ts'
import { mqttEndpoint } from '../support/mqtt-node.ts'
import { RawClient } from '../support/raw-http.ts'
import { aCommit } from '../support/test-node.ts'
import { until } from '../support/until.ts'

function send(node: IngestNode, headers: Readonly<Record<string, string>>, body = '{"n":1}\n'): Promise<Response> {
  return fetch(`${node.url}/v1/ingest`, {
    method: 'POST',
    headers: { 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson', ...headers },
    body,
  })
}

/** The node has stored one record then. */
async function idOf(node: IngestNode): Promise<string> {
  const receipt = (await (await send(node, {}, '{"n":0}\n')).json()) as { readonly node_id: string }
  return receipt.node_id
}

describe('over HTTP', () => {
  const endpoint = anEndpoint()
  const start = () => IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }) })

  test('committed: 200 with the keys once control has the commit of the segment', async () => {
    await using node = await start()
    const nodeId = await idOf(node)
    const response = send(node, { 'inlet-ack': 'committed' })
    await until('a question', () => node.control.deliveredLookups > 0)
    const commit = aCommit(nodeId, endpoint.id, 0)
    node.control.commits.push(commit)
    const { status, headers } = await response
    expect([status, headers.get('inlet-ack')]).toEqual([200, 'committed'])
    expect(await (await response).json()).toEqual({
      ...{ accepted_records: 1, accepted_bytes: 8, node_id: nodeId, segment_seq: 0 },
      ...{ commit_id: commit.id, keys: [commit.artifacts['parquet']?.key] },
    })
  })

  test('committed: a repetition under a key waits for the commit of the first one', async () => {
    await using node = await start()
    const nodeId = await idOf(node)
    const key = { 'idempotency-key': 'a' }
    expect((await send(node, key)).status).toBe(202)
    expect((await send(node, {}, '{"n":2}\n')).status).toBe(202)
    node.control.commits.push(aCommit(nodeId, endpoint.id, 0))
    const again = await send(node, { ...key, 'inlet-ack': 'committed' })
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true'])
    expect(await again.json()).toMatchObject({ accepted_records: 1, segment_seq: 0, commit_id: expect.any(String) })
  })

  test('committed: 202 with the receipt if that takes longer than the sender waits', async () => {
    await using node = await start()
    const nodeId = await idOf(node)
    const response = await send(node, { 'inlet-ack': 'committed', prefer: 'wait=1' })
    expect([response.status, response.headers.get('inlet-ack')]).toEqual([202, 'disk'])
    expect(await response.json()).toEqual({
      ...{ accepted_records: 1, accepted_bytes: 8, node_id: nodeId, segment_seq: 0 },
    })
    expect(node.control.deliveredLookups).toBeLessThan(3)
  })

  test('committed: 202 at once from a node that stops', async () => {
    await using node = await start()
    const response = send(node, { 'inlet-ack': 'committed', prefer: 'wait=300' })
    await until('a question', () => node.control.deliveredLookups > 0)
    await node.stop()
    expect((await response).status).toBe(202)
  })

  test('committed: a sender that waits holds back no other one', async () => {
    await using node = await start()
    let isAnswered = false
    const first = send(node, { 'inlet-ack': 'committed', prefer: 'wait=2' }).then(() => {
      isAnswered = true
    })
    await until('a question', () => node.control.deliveredLookups > 0)
    expect([(await send(node, {})).status, isAnswered]).toEqual([202, false])
    await first
  })

  test.each([
    ['disk', 202, 'disk'],
    ['copied', 422, null],
    ['twice', 422, null],
  ])('%s of an endpoint with one copy: %i', async (level, status, answered) => {
    await using node = await start()
    const response = await send(node, { 'inlet-ack': level })
    expect([response.status, response.headers.get('inlet-ack')]).toEqual([status, answered])
    if (status === 422) expect(await response.json()).toMatchObject({ errors: [{ path: 'inlet-ack' }] })
    expect(await node.frames(endpoint.id)).toHaveLength(status === 422 ? 0 : 1)
  })

  test('no level: the response has no header', async () => {
    await using node = await start()
    expect((await send(node, {})).headers.get('inlet-ack')).toBe(null)
  })
})

describe('GET /v1/ingest/receipts/{receipt}', () => {
  const endpoint = anEndpoint()
  const start = () => IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }) })
  const ask = (node: IngestNode, receipt: string, prefer = 'wait=0', key = secretOf('a')) =>
    fetch(`${node.url}/v1/ingest/receipts/${receipt}`, { headers: { 'x-api-key': key, prefer } })

  test('200 with the keys of a segment of any node, 202 while it has no commit', async () => {
    await using node = await start()
    const other = newId()
    const commit = aCommit(other, endpoint.id, 5)
    node.control.commits.push(commit)
    const found = await ask(node, `${other}-5`)
    const keys = [commit.artifacts['parquet']?.key]
    expect([found.status, await found.json()]).toEqual([200, { node_id: other, segment_seq: 5, commit_id: commit.id, keys }])
    const none = await ask(node, `${other}-6`)
    expect([none.status, await none.json()]).toEqual([202, { node_id: other, segment_seq: 6 }])
  })

  test('202 at once from a node that stops', async () => {
    await using node = await start()
    const response = ask(node, `${newId()}-0`, 'wait=300')
    await until('a question', () => node.control.deliveredLookups > 0)
    await node.stop()
    expect((await response).status).toBe(202)
  })

  test('requests in a row on one connection end with it', async () => {
    await using node = await start()
    await using client = await RawClient.connect(node.url)
    const head = `Host: x\r\nX-API-Key: ${secretOf('a')}\r\nPrefer: wait=300\r\n\r\n`
    await client.send([1, 2, 3].map((seq) => `GET /v1/ingest/receipts/${newId()}-${seq} HTTP/1.1\r\n${head}`).join(''))
    await until('a question about all', () => node.control.segmentsInQuestion.length === 3)
    // One that only ends its side may still read the responses.
    client.socket.resetAndDestroy()
    const last = ask(node, `${newId()}-4`)
    await until('a question about the last one', () => node.control.segmentsInQuestion.some(({ seq }) => seq === 4))
    expect(node.control.segmentsInQuestion).toMatchObject([{ seq: 4 }])
    expect((await last).status).toBe(202)
  })

  test.each([
    ['no receipt', 'x', secretOf('a'), 404],
    ['a key that is unknown', `${newId()}-0`, secretOf('z'), 401],
  ])('%s: %s', async (_, receipt, key, status) => {
    await using node = await start()
    expect((await ask(node, receipt, 'wait=0', key)).status).toBe(status)
  })

  test('404 for POST: nothing is stored there', async () => {
    await using node = await start()
    const response = await fetch(`${node.url}/v1/ingest/receipts/${newId()}-0`, { method: 'POST', body: '{}' })
    expect(response.status).toBe(404)
  })
})

describe('over MQTT', () => {
  const endpoint = mqttEndpoint()
  const start = () =>
    IngestNode.start({
      snapshot: aSnapshot({ endpoints: [endpoint] }),
      environment: { INLET_MQTT_LISTEN: '127.0.0.1:0' },
    })
  const clients: MqttClient[] = []
  afterEach(() => {
    for (const client of clients.splice(0)) client.destroy()
  })
  const connect = async (node: IngestNode, version: Version = 5) => {
    const { client, connack } = await MqttClient.connect({ port: node.mqttPort ?? 0, version })
    expect(connack.returnCode ?? connack.reasonCode).toBe(0)
    clients.push(client)
    return client
  }
  const asking = (level: string) => ({ properties: { userProperties: { 'inlet-ack': level } } })

  test('committed: the PUBACK comes with the commit, and holds back those after it', async () => {
    await using node = await start()
    const nodeId = await idOf(node)
    const client = await connect(node)
    client.publish('1', asking('committed'))
    client.publish('2', { messageId: 2 })
    await until('a question', () => node.control.deliveredLookups > 0)
    node.control.commits.push(aCommit(nodeId, endpoint.id, 0))
    const level = { properties: { userProperties: { 'inlet-ack': 'committed' } } }
    expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: 1, reasonCode: 0, ...level })
    expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: 2 })
    expect(await node.frames(endpoint.id)).toHaveLength(3)
  })

  test('committed: a node that stops says that it is on the disk', async () => {
    await using node = await start()
    const client = await connect(node)
    client.publish('1', asking('committed'))
    await until('a question', () => node.control.deliveredLookups > 0)
    await node.stop()
    expect(await client.next()).toMatchObject({ cmd: 'puback', properties: { userProperties: { 'inlet-ack': 'disk' } } })
  })

  test.each(['copied', 'twice'])('%s, which there is not: the message is refused, and the connection goes on', async (level) => {
    await using node = await start()
    const client = await connect(node)
    client.publish('1', asking(level))
    client.publish('2', { messageId: 2 })
    expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: 1, reasonCode: 0x83 })
    expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: 2 })
    expect(await node.frames(endpoint.id)).toHaveLength(1)
  })
})
