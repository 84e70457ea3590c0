/** Where waiting segments go when their endpoint's destination is changed, removed or set, or the endpoint is paused or deleted. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Delivered, expectExactlyOnce, numbersIn, Sender } from '../support/acknowledged.ts'
import { FaultProxy } from '../support/fault-proxy.ts'
import { Installation } from '../support/installation.ts'
import { Customer, describeGateway, gatewayEnvironment } from '../support/object-gateway.ts'
import { until } from '../support/until.ts'

describeGateway('undelivered segments', (gateway) => {
  const customer = new Customer(gateway)
  let proxy: FaultProxy
  let installation: Installation

  beforeAll(async () => {
    proxy = await FaultProxy.start(gateway.url)
    installation = await Installation.create({ environment: gatewayEnvironment(gateway, { s3Url: proxy.url }) })
    await installation.start('control', 'ingest', 'delivery')
  })
  afterAll(async () => {
    await installation?.[Symbol.asyncDispose]()
    await proxy?.[Symbol.asyncDispose]()
  })

  const endpoint = (id: string) => installation.ok('GET', `/v1/endpoints/${id}`)
  const waits = (id: string, reason: RegExp) =>
    until(
      `the endpoint to say ${reason}`,
      async () => (await endpoint(id)).status_reasons.some((text: string) => reason.test(text)),
      60_000,
    )

  /** An endpoint with commits, and segments that cannot be delivered yet. */
  async function blocked(): Promise<Delivered & { readonly path: string }> {
    const destination = await customer.destination(installation)
    const { id: endpointId } = await installation.endpoint({ bucket: destination.bucket, destination_id: destination.id })
    const sender = new Sender(installation, endpointId)
    await sender.send()
    await installation.committed(endpointId, sender.seqs)
    const path = `/${destination.bucket}/`
    proxy.break(path, { kind: 'answer', status: 503, code: 'SlowDown' })
    sender.start()
    await waits(endpointId, /SlowDown/)
    await sender.stop()
    return { installation, customer, destination, endpointId, sender, path }
  }

  /** Returns the numbers of the records in a bucket. */
  const delivered = async (destination: Delivered['destination'], endpointId: string) =>
    numbersIn(customer, destination.bucket, await customer.markers(destination, endpointId))

  describe.concurrent('go', () => {
    test('to the other destination that the endpoint is bound to', async () => {
      const { destination, endpointId, sender } = await blocked()
      const before = await delivered(destination, endpointId)
      const other = await customer.destination(installation)
      await installation.ok('PATCH', `/v1/endpoints/${endpointId}`, { destination_id: other.id })
      await installation.committed(endpointId, sender.seqs)
      const there = await delivered(other, endpointId)
      expect(await delivered(destination, endpointId)).toEqual(before)
      const all = [...before, ...there].toSorted((a, b) => a - b)
      expect(all).toEqual(sender.acknowledged.map(({ number }) => number))
      expect(before.length).toBeGreaterThan(0)
      expect(there.length).toBeGreaterThan(0)
    })

    test('to the new bucket if the destination itself is changed', async () => {
      const { destination, endpointId, sender } = await blocked()
      const before = await delivered(destination, endpointId)
      const bucket = `${destination.bucket}-b`
      await customer.createBucket(bucket)
      await customer.allow(destination.role, bucket)
      await installation.ok('PATCH', `/v1/destinations/${destination.id}`, { bucket, prefix: 'elsewhere' })
      await installation.committed(endpointId, sender.seqs)
      const there = await delivered({ ...destination, bucket, prefix: 'elsewhere' }, endpointId)
      expect([...before, ...there].toSorted((a, b) => a - b)).toEqual(sender.acknowledged.map(({ number }) => number))
      await waits(endpointId, /not validated/)
    })

    test('nowhere while no destination is bound, then to the one that is bound', async () => {
      const { destination, endpointId, sender, path } = await blocked()
      await installation.ok('PATCH', `/v1/endpoints/${endpointId}`, { destination_id: null })
      proxy.heal(path)
      await waits(endpointId, /no destination is bound/)
      expect(await sender.send()).toBe(202)
      // One may have been delivered before the node had the new snapshot.
      const counts = () => Promise.all([installation.commits(endpointId), customer.markers(destination, endpointId)])
      await until('nothing to be under way', async () => {
        const [commits, markers] = await counts()
        return commits.length === markers.length
      })
      const [before] = await counts()
      expect(before.length).toBeLessThan(sender.seqs.size)
      await installation.ok('PATCH', `/v1/endpoints/${endpointId}`, { destination_id: destination.id })
      await installation.committed(endpointId, sender.seqs)
      await expectExactlyOnce({ installation, customer, destination, endpointId, sender })
    })

    test('to the bucket of a paused endpoint', async () => {
      const { path, ...all } = await blocked()
      const { endpointId, sender } = all
      await installation.ok('POST', `/v1/endpoints/${endpointId}/pause`)
      await until('ingest to refuse', async () => (await sender.send()) !== 202, 30_000)
      proxy.heal(path)
      await installation.committed(endpointId, sender.seqs, 60_000)
      expect((await endpoint(endpointId)).status).toBe('paused')
      await expectExactlyOnce(all)
    })

    test('to the bucket of an endpoint that is being deleted', async () => {
      const { destination, endpointId, sender, path } = await blocked()
      await installation.ok('DELETE', `/v1/endpoints/${endpointId}`)
      await until('ingest to refuse', async () => (await sender.send()) !== 202, 30_000)
      expect((await endpoint(endpointId)).status).toBe('draining')
      proxy.heal(path)
      const gone = async () => (await installation.api('GET', `/v1/endpoints/${endpointId}`)).status === 404
      await until('the endpoint to be gone', gone, 90_000)
      const all = (await delivered(destination, endpointId)).toSorted((a, b) => a - b)
      expect(all).toEqual(sender.acknowledged.map(({ number }) => number))
    })
  })
})
