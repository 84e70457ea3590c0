/** MQTT from outside. */
import mqtt from 'mqtt'
import { expect, test } from 'vitest'
import { describeWith, useDeployment } from '../support/deployment.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { until } from '../support/until.ts'

const bucket = 'bucket'

describeWith('objects', 'both protocols', () => {
  const deployment = useDeployment()

  test('an endpoint takes HTTP and MQTT at once, and its view tells them apart', async () => {
    const columns = [
      { name: 'n', type: 'INTEGER', path: '$.n', required: true },
      { name: 'protocol', type: 'VARCHAR', path: '$$.protocol' },
      { name: 'topic', type: 'VARCHAR', path: '$$.topic' },
      { name: 'client', type: 'VARCHAR', path: '$$.client_id' },
      { name: 'site', type: 'VARCHAR', path: '$$.user_properties.site' },
      { name: 'address', type: 'VARCHAR', path: '$$.address' },
      { name: 'key_name', type: 'VARCHAR', path: '$$.key_name' },
      { name: 'at', type: 'TIMESTAMP', path: '$$.received_at', required: true },
    ]
    const view = { name: 'both', definition: { columns } }
    const { id, viewName } = await deployment().endpoint({
      ...{ bucket, view, mqtt_config: {}, kept_fields: ['address_masked', 'key_name'] },
    })
    const client = await mqtt.connectAsync(deployment().mqttUrl(id), {
      protocolVersion: 5,
      clientId: 'device',
      username: 'somebody',
      password: deployment().apiKey,
    })
    const properties = { userProperties: { site: 'north' } }
    await Promise.all(
      Array.from({ length: 200 }, async (_, n) => {
        if (n % 2 === 0) await client.publishAsync('t/1', `{"n":${n}}`, { qos: 1, properties })
        else expect((await deployment().ingest(id, `{"n":${n}}`)).status).toBe(202)
      }),
    )
    await client.endAsync()
    const delivered = async () => (await deployment().markers(id)).reduce((sum, { records }) => sum + records, 0)
    await until('everything to be delivered', async () => (await delivered()) >= 200, 60_000)
    const rows = await readWithDuckDb(await deployment().artifacts(id, `views/${viewName}/v1`))
    expect(rows).toHaveLength(200)
    for (const { n, at: _, ...envelope } of rows) {
      const isMqtt = Number(n) % 2 === 0
      expect(envelope).toEqual({
        protocol: isMqtt ? 'mqtt' : 'http',
        topic: isMqtt ? 't/1' : null,
        client: isMqtt ? 'device' : null,
        site: isMqtt ? 'north' : null,
        address: '127.0.0.0',
        key_name: expect.stringMatching(/./),
      })
    }
  })
})
