/** A node reports time series of its endpoints. */
import { expect, test } from 'vitest'
import { effectiveQuotas } from '#model/quota.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { anEndpoint, aSnapshot, type ControlStandIn, IngestNode, secretOf } from '../support/ingest-node.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { MqttNode, mqttEndpoint } from '../support/mqtt-node.ts'
import { until } from '../support/until.ts'

function send(node: IngestNode, endpoint: SnapshotEndpoint, body: string, more: Record<string, string> = {}): Promise<Response> {
  return fetch(`${node.url}/v1/ingest?endpoint=${endpoint.id}`, {
    method: 'POST',
    headers: { 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson', ...more },
    body,
  })
}

/** Returns the sums over all reports. */
function sums(control: ControlStandIn, endpoint: SnapshotEndpoint) {
  const items = control.series.flatMap((report) => report.items).filter(({ endpoint_id }) => endpoint_id === endpoint.id)
  const total = (each: (item: (typeof items)[number]) => number) => items.reduce((sum, item) => sum + each(item), 0)
  const refused: Record<string, number> = {}
  for (const item of items)
    for (const [reason, count] of Object.entries(item.refused)) refused[reason] = (refused[reason] ?? 0) + count
  return {
    records: total(({ records }) => records),
    bytes: total(({ bytes }) => bytes),
    requests: total(({ requests }) => requests),
    acknowledged: total(({ acknowledged_after }) => Object.values(acknowledged_after).reduce((sum, count) => sum + count, 0)),
    refused,
  }
}

test('over HTTP: what was accepted with how long it took, and what was refused with its reason', async () => {
  const open = anEndpoint()
  const paused = anEndpoint({ desired_state: 'paused' })
  const limited = anEndpoint({
    account_quotas: { ...effectiveQuotas({}), records_per_second: 1 },
    account_id: open.account_id,
  })
  await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [open, paused] }) })
  for (const count of [1, 2]) expect((await send(node, open, '{"n":1}\n'.repeat(count))).status).toBe(202)
  expect((await send(node, open, 'x', { 'content-type': 'image/png' })).status).toBe(415)
  expect((await send(node, paused, '{}\n')).status).toBe(503)
  await node.publish(aSnapshot({ epoch: 2, endpoints: [limited] }))
  const statuses = [await send(node, limited, '{}\n{}\n{}\n'), await send(node, limited, '{}\n')].map(({ status }) => status)
  expect(statuses).toEqual([202, 429])
  await node.stop()
  expect(sums(node.control, open)).toEqual({
    ...{ records: 3, bytes: 24, requests: 2, acknowledged: 2, refused: { unsupported_media_type: 1 } },
  })
  expect(sums(node.control, paused)).toMatchObject({ records: 0, refused: { endpoint_paused: 1 } })
  expect(sums(node.control, limited)).toMatchObject({ records: 3, requests: 1, refused: { quota_exceeded: 1 } })
})

test('over MQTT: messages that became durable, and those above a quota', async () => {
  const clock = new ManualClock()
  const endpoint = mqttEndpoint({ account_quotas: { ...effectiveQuotas({}), records_per_second: 2 } })
  await using mqtt = await MqttNode.start({ clock, endpoint })
  const client = await mqtt.connect(mqtt.over('tcp', 5))
  for (let message = 0; message < 5; message += 1) client.publish(String(message), { qos: 0 })
  await until('the messages', async () => (await mqtt.node.metric('inlet_mqtt_lost_total')) === 3)
  clock.advance(1_000)
  client.publish('late')
  expect(await client.next()).toMatchObject({ cmd: 'puback' })
  await mqtt.node.stop()
  expect(sums(mqtt.node.control, endpoint)).toEqual({
    ...{ records: 3, bytes: 6, requests: 3, acknowledged: 3, refused: { quota_exceeded: 3 } },
  })
})
