/** Checks that the gateway behaves as the suites of this folder assume. */
import { randomUUID } from 'node:crypto'
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts'
import { expect, test } from 'vitest'
import { Customer, describeGateway } from '../support/object-gateway.ts'

describeGateway('the gateway', (gateway) => {
  const customer = new Customer(gateway)
  const trust = (arn: string, externalId: string) => ({
    Version: '2012-10-17',
    Statement: [
      {
        Sid: 'Ingest',
        Effect: 'Allow',
        Principal: { AWS: arn },
        Action: 'sts:AssumeRole',
        Condition: { StringEquals: { 'sts:ExternalId': externalId } },
      },
    ],
  })

  async function assume(role: string, ExternalId: string, { accessKeyId, secretAccessKey } = gateway.service) {
    const credentials = { accessKeyId, secretAccessKey }
    const sts = new STSClient({ endpoint: gateway.stsUrl, region: 'us-east-1', credentials, maxAttempts: 1 })
    const command = new AssumeRoleCommand({ RoleArn: customer.roleArn(role), RoleSessionName: 'test', ExternalId })
    const { Credentials: { AccessKeyId = '', SecretAccessKey = '', SessionToken = '' } = {} } = await sts.send(command)
    return { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: SessionToken }
  }

  test('an assumed role may do what its policy allows, until the policy changes', async () => {
    const smoke = `smoke-${randomUUID()}`
    await customer.createBucket(smoke)
    await customer.createRole(smoke, trust(gateway.service.arn, 'secret-of-smoke'))
    await customer.allow(smoke, smoke)
    const credentials = await assume(smoke, 'secret-of-smoke')
    const s3 = new S3Client({ endpoint: gateway.url, region: 'us-east-1', credentials, forcePathStyle: true, maxAttempts: 1 })
    const object = { Bucket: smoke, Key: 'a/b' }
    await s3.send(new PutObjectCommand({ ...object, Body: 'hello', ServerSideEncryption: 'AES256' }))
    const { Body } = await s3.send(new GetObjectCommand(object))
    expect(await Body?.transformToString()).toBe('hello')
    await customer.allow(smoke, smoke, ['s3:GetObject'])
    await expect(s3.send(new PutObjectCommand({ ...object, Body: 'x' }))).rejects.toMatchObject({ name: 'AccessDenied' })
    await customer.deleteRole(smoke)
    await expect(s3.send(new GetObjectCommand(object))).rejects.toMatchObject({ name: 'AccessDenied' })
  })

  test('a role can be assumed only with its external id, and only by the principal that it trusts', async () => {
    const trusting = `trusting-${randomUUID()}`
    await customer.createRole(trusting, trust(gateway.service.arn, 'secret-of-trusting'))
    await expect(assume(trusting, 'another')).rejects.toMatchObject({
      name: 'AccessDenied',
      $metadata: { httpStatusCode: 403 },
    })
    await expect(assume(trusting, 'secret-of-trusting', gateway.stranger)).rejects.toMatchObject({
      $metadata: { httpStatusCode: 403 },
    })
    expect(await assume(trusting, 'secret-of-trusting')).toMatchObject({ sessionToken: expect.stringMatching(/./) })
  })
})
