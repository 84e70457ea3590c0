/**
 * Failures of S3 and changes by bucket owners during deliveries, each to its own endpoint, all in one installation at the same time.
 * Law: ingest continues, the endpoint reports why it lags, and after the outage everything is committed once and in order.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Delivered, expectExactlyOnce, Sender } from '../support/acknowledged.ts'
import { FaultProxy } from '../support/fault-proxy.ts'
import { Installation } from '../support/installation.ts'
import { Customer, type CustomerDestination, describeGateway, gatewayEnvironment } from '../support/object-gateway.ts'
import { until } from '../support/until.ts'

const recoveryMs = 120_000

describeGateway('while S3 is failing', (gateway) => {
  const customer = new Customer(gateway)
  let proxy: FaultProxy
  let stsProxy: FaultProxy
  let installation: Installation

  beforeAll(async () => {
    proxy = await FaultProxy.start(gateway.url)
    stsProxy = await FaultProxy.start(gateway.stsUrl)
    const urls = { s3Url: proxy.url, stsUrl: stsProxy.url }
    installation = await Installation.create({ environment: gatewayEnvironment(gateway, urls) })
    await installation.start('control', 'ingest', 'delivery')
  })
  afterAll(async () => {
    await installation?.[Symbol.asyncDispose]()
    await proxy?.[Symbol.asyncDispose]()
    await stsProxy?.[Symbol.asyncDispose]()
  })

  /** An endpoint that has delivered and receives more records all the time. */
  async function delivering(): Promise<Delivered> {
    const destination = await customer.destination(installation)
    await installation.ok('POST', `/v1/destinations/${destination.id}/validate`)
    const { id: endpointId } = await installation.endpoint({ bucket: destination.bucket, destination_id: destination.id })
    const sender = new Sender(installation, endpointId)
    sender.start()
    await until('a first commit', async () => (await installation.commits(endpointId)).length > 0, 60_000)
    return { installation, customer, destination, endpointId, sender }
  }

  const reasonsOf = async (id: string): Promise<readonly string[]> => {
    const { status, status_reasons } = await installation.ok('GET', `/v1/endpoints/${id}`)
    return status === 'degraded' ? status_reasons : []
  }

  async function recovers(delivered: Delivered, isExpected?: (seq: number) => boolean): Promise<void> {
    const { endpointId, sender } = delivered
    await sender.stop()
    expect(sender.refusals).toBe(0)
    await installation.committed(endpointId, sender.seqs, recoveryMs)
    await until('the node to be empty', () => installation.walFiles(endpointId).length === 0, 20_000)
    await until('the endpoint to be active', async () => (await reasonsOf(endpointId)).length === 0, 20_000)
    await expectExactlyOnce(delivered, isExpected)
  }

  describe.concurrent('deliveries wait and go on when', () => {
    test('the role may not write for a while', async () => {
      const delivered = await delivering()
      const { role, bucket } = delivered.destination
      await customer.allow(role, bucket, ['s3:GetObject'])
      await until('the reason', () => saysOf(delivered, /s3:PutObject/), 60_000)
      await customer.allow(role, bucket)
      await recovers(delivered)
    })

    test('the role is deleted and created again', async () => {
      const delivered = await delivering()
      const { role, bucket, id } = delivered.destination
      await customer.deleteRole(role)
      await until('the reason', () => saysOf(delivered, /AccessDenied|no such role/), 60_000)
      const { trust_policy } = await installation.ok('GET', `/v1/destinations/${id}`)
      await customer.createRole(role, trust_policy)
      await customer.allow(role, bucket)
      await recovers(delivered)
    })

    test.each([
      ['and deliveries met that', true],
      ['and no delivery met that', false],
    ])('the bucket is deleted and made anew, %s', async (_, isMet) => {
      const delivered = await delivering()
      const { destination, endpointId } = delivered
      // While markers cannot be written, files of later segments are already uploaded; they are lost with the bucket.
      const markers = `/${destination.bucket}/in/let/${endpointId}/commits/`
      proxy.break(markers, { kind: 'answer', status: 500, code: 'InternalError' })
      await until('the reason', () => saysOf(delivered, /InternalError/), 60_000)
      const lost = new Set((await customer.markers(destination, endpointId)).map(({ seq }) => seq))
      if (isMet) {
        await emptied(destination)
        proxy.heal(markers)
        await until('the reason', () => saysOf(delivered, /there is no bucket/), 60_000)
        await customer.createBucket(destination.bucket)
      } else {
        // An emptied bucket equals a new one.
        for (const { key } of await customer.list(destination.bucket)) await customer.delete(destination.bucket, key)
        proxy.heal(markers)
      }
      await recovers(delivered, (seq) => !lost.has(seq))
    })
  })

  test('sessions that exist continue while STS is down, and new ones wait for it', async () => {
    const old = await delivering()
    stsProxy.break('/', { kind: 'answer', status: 500, code: 'InternalFailure' })
    const destination = await customer.destination(installation)
    const { id: endpointId } = await installation.endpoint({ bucket: destination.bucket, destination_id: destination.id })
    const fresh = { installation, customer, destination, endpointId, sender: new Sender(installation, endpointId) }
    fresh.sender.start()
    await until('the reason', () => saysOf(fresh, /assuming the role/), 60_000)
    const before = (await installation.commits(old.endpointId)).length
    await until('a commit of the old one', async () => (await installation.commits(old.endpointId)).length > before, 30_000)
    expect(await installation.commits(endpointId)).toEqual([])
    stsProxy.heal('/')
    await installation.ok('POST', `/v1/destinations/${destination.id}/validate`)
    await recovers(fresh)
    await recovers(old)
  })

  const saysOf = async ({ endpointId }: Delivered, reason: RegExp): Promise<boolean> =>
    (await reasonsOf(endpointId)).some((text) => reason.test(text))

  /** Deliveries still write to the bucket, so it does not stay empty. */
  async function emptied({ bucket }: CustomerDestination): Promise<void> {
    await until(
      'the bucket to go',
      () =>
        customer.deleteBucket(bucket).then(
          () => true,
          () => false,
        ),
      60_000,
    )
  }
})
