/** Quotas that nodes enforce: records a second and bytes a day, of all nodes together. */
import { describe, expect, test } from 'vitest'
import { effectiveQuotas } from '#model/quota.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { accountId, aKey, anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { MqttClient } from '../support/mqtt-client.ts'
import { expectEnd, MqttNode, mqttEndpoint } from '../support/mqtt-node.ts'
import { until } from '../support/until.ts'

const records = (count: number) => '{"n":1}\n'.repeat(count)

function send(node: IngestNode, endpoint: SnapshotEndpoint, body: string, secret = secretOf('a')): Promise<Response> {
  return fetch(`${node.url}/v1/ingest?endpoint=${endpoint.id}`, {
    method: 'POST',
    headers: { 'x-api-key': secret, 'content-type': 'application/x-ndjson' },
    body,
  })
}

const withQuotas = (quotas: Partial<SnapshotEndpoint['account_quotas']>) => ({
  account_quotas: { ...effectiveQuotas({}), ...quotas },
})

/** Lets the node report what it accepted. */
async function report(node: IngestNode, clock: ManualClock): Promise<void> {
  const before = node.control.usage.length
  await until('a report', () => {
    clock.advance(2_000)
    return node.control.usage.length > before
  })
}

describe('over HTTP', () => {
  test('429 above the records a second, with the quota and Retry-After, until they are paid back; others are not affected', async () => {
    const clock = new ManualClock()
    const own = anEndpoint({ ...withQuotas({ records_per_second: 10 }) })
    const other = anEndpoint({ account_id: accountId('b') })
    const snapshot = aSnapshot({
      keys: [aKey(), aKey({ account_id: accountId('b'), secret: secretOf('b') })],
      endpoints: [own, other],
    })
    await using node = await IngestNode.start({ snapshot, clock })
    expect((await send(node, own, records(45))).status).toBe(202)
    const refused = await send(node, own, records(1))
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('4')
    expect(await refused.json()).toMatchObject({
      ...{ error: 'quota_exceeded', retry: true, quota: 'records_per_second', detail: expect.stringContaining('10 records') },
    })
    expect((await send(node, other, records(45), secretOf('b'))).status).toBe(202)
    expect(await node.metric('inlet_ingest_quota_refusals_total')).toBe(1)
    clock.advance(4_000)
    expect((await send(node, own, records(1))).status).toBe(202)
  })

  test('429 above the bytes a day, counted over all nodes; a higher quota applies with the next configuration', async () => {
    const clock = new ManualClock()
    const endpoint = anEndpoint(withQuotas({ bytes_per_day: 1_000 }))
    const snapshot = aSnapshot({ endpoints: [endpoint] })
    await using node = await IngestNode.start({ snapshot, clock })
    expect((await send(node, endpoint, records(10))).status).toBe(202)
    node.control.usageElsewhere = { nodes: 2, bytes: 920 }
    await report(node, clock)
    const { account_id } = endpoint
    expect(node.control.usage.at(-1)?.accounts).toMatchObject([{ account_id, day: '2026-11-20', bytes: 80, records: 10 }])
    const refused = await send(node, endpoint, records(1))
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(80_000)
    expect(await refused.json()).toMatchObject({ error: 'quota_exceeded', quota: 'bytes_per_day' })

    await node.publish({ ...snapshot, epoch: 2, endpoints: [{ ...endpoint, ...withQuotas({ bytes_per_day: 1_001 }) }] })
    expect((await send(node, endpoint, records(1))).status).toBe(202)
    clock.advance(86_400_000)
    expect((await send(node, endpoint, records(1))).status).toBe(202)
  })

  test('the records a second are divided among the healthy nodes of the region', async () => {
    const clock = new ManualClock()
    const endpoint = anEndpoint(withQuotas({ records_per_second: 100 }))
    await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }), clock })
    node.control.usageElsewhere = { nodes: 4, bytes: 0 }
    expect((await send(node, endpoint, records(1))).status).toBe(202)
    await report(node, clock)
    expect((await send(node, endpoint, records(75))).status).toBe(202)
    const refused = await send(node, endpoint, records(1))
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3'])
  })

  test('a report that control did not store is repeated, and the last one is sent when the node stops', async () => {
    const clock = new ManualClock()
    const endpoint = anEndpoint()
    await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }), clock })
    node.control.isAway = true
    expect((await send(node, endpoint, records(3))).status).toBe(202)
    clock.advance(2_000)
    node.control.isAway = false
    await report(node, clock)
    expect((await send(node, endpoint, records(2))).status).toBe(202)
    await node.stop()
    const reports = node.control.usage.map(({ run, accounts }) => [run, accounts[0]?.records])
    const run = node.control.usage[0]?.run
    expect(reports).toEqual([
      [run, 3],
      [run, 5],
    ])
  })
})

describe('over MQTT', () => {
  const start = (clock: ManualClock, records_per_second: number) =>
    MqttNode.start({ clock, endpoint: mqttEndpoint(withQuotas({ records_per_second })) })

  test.each([4, 5] as const)(
    'QoS 1: those within the quota are acknowledged, then the connection ends: 0x97, and so does the next CONNECT, version %s',
    async (version) => {
      const clock = new ManualClock()
      await using mqtt = await start(clock, 3)
      const client = await mqtt.connect(mqtt.over('tcp', version))
      const publish = (messageId: number) =>
        ({ cmd: 'publish', topic: 't', payload: String(messageId), qos: 1, messageId, dup: false, retain: false }) as const
      client.send(...[1, 2, 3, 4, 5].map(publish))
      for (const messageId of [1, 2, 3]) expect(await client.next()).toMatchObject({ cmd: 'puback', messageId })
      await expectEnd(client, 0x97)
      const { connack } = await MqttClient.connect(mqtt.over('tcp', version))
      expect(connack).toMatchObject(version === 5 ? { reasonCode: 0x97 } : { returnCode: 3 })

      clock.advance(1_000)
      const again = await mqtt.connect(mqtt.over('tcp', version))
      again.send(...[4, 5].map(publish))
      for (const messageId of [4, 5]) expect(await again.next()).toMatchObject({ cmd: 'puback', messageId })
      expect(await mqtt.stored()).toEqual(['t 1', 't 2', 't 3', 't 4', 't 5'])
    },
  )

  test('QoS 0: messages above the quota are dropped and counted, and the connection stays', async () => {
    const clock = new ManualClock()
    await using mqtt = await start(clock, 2)
    const client = await mqtt.connect(mqtt.over('ws', 5))
    for (let message = 0; message < 5; message += 1) client.publish(String(message), { qos: 0 })
    await until('the messages', async () => (await mqtt.node.metric('inlet_mqtt_lost_total')) === 3)
    expect(await mqtt.node.metric('inlet_ingest_quota_refusals_total')).toBe(3)
    clock.advance(1_000)
    client.publish('late')
    expect(await client.next()).toMatchObject({ cmd: 'puback' })
    expect(await mqtt.stored()).toEqual(['plant/7 0', 'plant/7 1', 'plant/7 late'])
  })
})
