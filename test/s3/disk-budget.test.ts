/** Outages that last until the disk budget is full, or across a restart. */
import { expect, test } from 'vitest'
import { expectExactlyOnce, Sender } from '../support/acknowledged.ts'
import { FaultProxy } from '../support/fault-proxy.ts'
import { Installation } from '../support/installation.ts'
import { Customer, describeGateway, gatewayEnvironment } from '../support/object-gateway.ts'
import { until } from '../support/until.ts'

const MiB = 1024 * 1024

describeGateway('an outage that lasts', (gateway) => {
  const customer = new Customer(gateway)

  async function endpointOf(installation: Installation) {
    const destination = await customer.destination(installation)
    const { id } = await installation.endpoint({
      bucket: destination.bucket,
      destination_id: destination.id,
      output_formats: ['parquet'],
      segment_bytes: 8_000_000,
    })
    return { destination, endpointId: id }
  }

  test('until the disk budget is full: ingest returns 503, and every acknowledged record is delivered after the outage', async () => {
    await using proxy = await FaultProxy.start(gateway.url)
    const budget = 64 * MiB
    const environment = { ...gatewayEnvironment(gateway, { s3Url: proxy.url }), INLET_DISK_BUDGET_BYTES: `${budget}B` }
    await using installation = await Installation.create({ environment })
    await installation.start('control', 'ingest', 'delivery')
    const { destination, endpointId } = await endpointOf(installation)
    const path = `/${destination.bucket}`
    proxy.break(path, { kind: 'answer', status: 503, code: 'SlowDown' })
    const sender = new Sender(installation, endpointId, { recordsPerRequest: 500, recordBytes: 1000 })
    await until('a refusal', async () => (await sender.send()) === 503, 60_000)
    expect(sender.acknowledged.length * 1000).toBeGreaterThan(budget / 2)
    const refused = await installation.ingest(endpointId, `"${'x'.repeat(999_000)}"\n`)
    expect(refused).toMatchObject({ status: 503, body: { error: 'unavailable', retry: true } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    await says(installation, endpointId, 'SlowDown')
    expect(await installation.commits(endpointId)).toEqual([])
    proxy.heal(path)
    await until('room', async () => (await sender.send()) === 202, 90_000)
    await installation.committed(endpointId, sender.seqs, 90_000)
    await expectExactlyOnce({ installation, customer, destination, endpointId, sender })
  })

  test('across a restart, while the name of S3 does not resolve', async () => {
    const environment = gatewayEnvironment(gateway, { s3Url: 'http://s3.gateway.invalid:8000' })
    await using installation = await Installation.create({ environment })
    await installation.start('control', 'ingest', 'delivery')
    const { destination, endpointId } = await endpointOf(installation)
    const sender = new Sender(installation, endpointId)
    for (let request = 0; request < 10; request += 1) expect(await sender.send()).toBe(202)
    await says(installation, endpointId, 'not found in DNS')
    await installation.end('delivery', 'SIGTERM')
    installation.configure(gatewayEnvironment(gateway))
    await installation.start('delivery')
    await installation.committed(endpointId, sender.seqs, 60_000)
    await expectExactlyOnce({ installation, customer, destination, endpointId, sender })
  })
})

async function says(installation: Installation, endpointId: string, reason: string): Promise<void> {
  const endpoint = () => installation.ok('GET', `/v1/endpoints/${endpointId}`)
  const isGiven = async () => (await endpoint()).status_reasons.some((text: string) => text.includes(reason))
  await until(`the endpoint to say ${reason}`, isGiven, 60_000)
  expect((await endpoint()).status).toBe('degraded')
}
