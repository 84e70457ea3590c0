/** The contract of object stores on a real S3, and multipart uploads. */
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateMultipartUploadCommand, ListMultipartUploadsCommand } from '@aws-sdk/client-s3'
import { expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { S3Stores } from '#objects/s3.ts'
import { allActions, Customer, describeGateway, type GatewayDescription } from '../support/object-gateway.ts'
import { type Opened, objectStoreSuite } from '../support/object-store-suite.ts'

const MiB = 1024 * 1024

async function opened(gateway: GatewayDescription): Promise<Opened & { readonly bucket: string; readonly customer: Customer }> {
  const customer = new Customer(gateway)
  const bucket = `lake-${randomUUID().slice(0, 8)}`
  await customer.createBucket(bucket)
  const Statement = [{ Effect: 'Allow', Principal: { AWS: gateway.service.arn }, Action: 'sts:AssumeRole' }]
  await customer.createRole(bucket, { Version: '2012-10-17', Statement })
  await customer.allow(bucket, bucket, [...allActions, 's3:ListBucketMultipartUploads'])
  const { accessKeyId, secretAccessKey } = gateway.service
  const stores = new S3Stores({
    ...{ s3Endpoint: gateway.url, stsEndpoint: gateway.stsUrl, ...system },
    credentials: { accessKeyId, secretAccessKey },
  })
  const how = {
    region: 'us-east-1',
    role_arn: customer.roleArn(bucket),
    external_id: 'external',
    encryption: 'sse-s3' as const,
    kms_key_arn: null,
    checksums: 'standard' as const,
    allowed_buckets: [],
    path_style: true,
  }
  const store = stores.open({ id: randomUUID(), bucket, ...how })
  return { store, bucket, customer, [Symbol.asyncDispose]: async () => stores.close() }
}

describeGateway('on S3', (gateway) => {
  objectStoreSuite('the gateway', () => opened(gateway))

  test('a large file is uploaded in parts, reads back unchanged, and aborts the upload of a crashed process', async () => {
    await using at = await opened(gateway)
    const directory = await mkdtemp(join(tmpdir(), 'inlet-large-'))
    try {
      {
        await using large = await open(join(directory, 'large'), 'w')
        for (let n = 0; n < 70; n += 1) await large.write(randomBytes(MiB))
      }
      await at.customer.s3.send(new CreateMultipartUploadCommand({ Bucket: at.bucket, Key: 'a/large' }))
      await at.store.putFile('a/large', join(directory, 'large'), { contentType: 'x/y', metadata: { seq: '7' } })
      const { Uploads = [] } = await at.customer.s3.send(new ListMultipartUploadsCommand({ Bucket: at.bucket }))
      expect(Uploads).toEqual([])
      expect(await at.customer.head(at.bucket, 'a/large')).toMatchObject({ ContentType: 'x/y', Metadata: { seq: '7' } })
      expect(await at.store.getFile('a/large', join(directory, 'copy'))).toBe(true)
      await using sent = await open(join(directory, 'large'))
      await using got = await open(join(directory, 'copy'))
      expect((await got.readFile()).equals(await sent.readFile())).toBe(true)
    } finally {
      await rm(directory, { recursive: true })
    }
  })
})
