/** An outage that lasts until the disk budget is full. */
import { expect, test } from 'vitest'
import { expectExactlyOnce, Sender } from '../support/acknowledged.ts'
import { FaultProxy } from '../support/fault-proxy.ts'
import { Installation } from '../support/installation.ts'
import { Customer, describeGateway, gatewayEnvironment } from '../support/object-gateway.ts'
import { until } from '../support/until.ts'

const MiB = 1024 * 1024

describeGateway('an outage that lasts', (gateway) => {
  const customer = new Customer(gateway)

  test('until the disk budget is full: ingest returns 503, and every acknowledged record is delivered after the outage', async () => {
    await using proxy = await FaultProxy.start(gateway.url)
    const budget = 64 * MiB
    const environment = { ...gatewayEnvironment(gateway, { s3Url: proxy.url }), INLET_DISK_BUDGET_BYTES: `${budget}B` }
    await using installation = await Installation.create({ environment })
    await installation.start('control', 'ingest', 'delivery')
    const destination = await customer.destination(installation)
    const settings = { bucket: destination.bucket, destination_id: destination.id, output_formats: ['parquet'] }
    const { id: endpointId } = await installation.endpoint({ ...settings, segment_bytes: 8_000_000 })
    const path = `/${destination.bucket}`
    proxy.break(path, { kind: 'answer', status: 503, code: 'SlowDown' })
    const sender = new Sender(installation, endpointId, { recordsPerRequest: 500, recordBytes: 1000 })
    await until('a refusal', async () => (await sender.send()) === 503, 60_000)
    expect(sender.acknowledged.length * 1000).toBeGreaterThan(budget / 2)
    const refused = await installation.ingest(endpointId, `"${'x'.repeat(999_000)}"\n`)
    expect(refused).toMatchObject({ status: 503, body: { error: 'unavailable', retry: true } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    const endpoint = () => installation.ok('GET', `/v1/endpoints/${endpointId}`)
    await until('the reason', async () => (await endpoint()).status_reasons.join().includes('SlowDown'), 60_000)
    expect((await endpoint()).status).toBe('degraded')
    expect(await installation.commits(endpointId)).toEqual([])
    proxy.heal(path)
    await until('room', async () => (await sender.send()) === 202, 90_000)
    await installation.committed(endpointId, sender.seqs, 90_000)
    await expectExactlyOnce({ installation, customer, destination, endpointId, sender })
  })
})
