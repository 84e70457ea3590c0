/** A whole installation that delivers to a real S3: objects, download links, validation and commits. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { S3Stores } from '#objects/s3.ts'
import { newDatabase, postgresUrl } from '../support/databases.ts'
import { Installation } from '../support/installation.ts'
import { secretKey } from '../support/keyring.ts'
import { allActions, Customer, describeGateway, gatewayEnvironment, putActions } from '../support/object-gateway.ts'
import { readWithDuckDb, readWithHyparquet } from '../support/parquet.ts'
import { until } from '../support/until.ts'

const view = {
  name: 'numbers',
  definition: { columns: [{ name: 'n', type: 'INTEGER', path: '$.n', required: true, cast_failures: 'dlq' }] },
}

describeGateway('on S3', (gateway) => {
  const customer = new Customer(gateway)
  let installation: Installation

  beforeAll(async () => {
    installation = await Installation.create({ environment: gatewayEnvironment(gateway) })
    await installation.start('control', 'ingest', 'delivery')
  })
  afterAll(async () => {
    await installation?.[Symbol.asyncDispose]()
  })

  test('every file of a segment is in the bucket as its marker lists it, and readable', async () => {
    const destination = await customer.destination(installation)
    expect(await installation.ok('POST', `/v1/destinations/${destination.id}/validate`)).toMatchObject({
      status: 'valid',
      last_error: null,
    })
    expect(await customer.list(destination.bucket)).toEqual([])
    const { bucket } = destination
    const { id, viewId } = await installation.endpoint({ bucket, destination_id: destination.id, view })
    const { body } = await installation.ingest(id, '{"n":1}\n{"n":"two"}\n{"n":3}\n')
    await installation.committed(id, [body.segment_seq])
    const markers = await customer.markers(destination, id)
    expect(markers).toMatchObject([{ records: 3, views: [{ processed: 3, accepted: 2, dropped: 0, dlq: 1 }] }])
    const [marker] = markers
    const kinds = Object.keys(marker?.artifacts ?? {}).toSorted()
    expect(kinds).toEqual(['dlq/numbers/v1', 'parquet', 'segment', 'views/numbers/v1'])
    for (const { key, bytes, rows, sha256 } of Object.values(marker?.artifacts ?? {})) {
      const { ContentLength, Metadata } = await customer.head(bucket, key)
      expect(ContentLength, key).toBe(bytes)
      expect(Metadata, key).toMatchObject({ sha256, rows: String(rows), 'endpoint-id': id, seq: String(marker?.seq) })
    }
    await using typed = await customer.download(bucket, markers, 'views/numbers/v1')
    expect((await readWithDuckDb(typed.paths)).map(({ n }) => n)).toEqual(['1', '3'])
    expect((await readWithHyparquet(typed.paths)).map(({ n }) => n)).toEqual(['1', '3'])
    await using raw = await customer.download(bucket, markers, 'parquet')
    expect((await readWithDuckDb(raw.paths)).map(({ payload }) => payload)).toEqual(['{"n":1}', '{"n":"two"}', '{"n":3}'])

    const { files } = await installation.ok('GET', `/v1/views/${viewId}/dlq-files`)
    expect(files).toMatchObject([{ s3_bucket: bucket, rows: 1 }])
    const url = new URL(files[0].download_url)
    expect(url.searchParams.get('X-Amz-Expires')).toBe('3600')
    const download = await fetch(url)
    expect(download.status).toBe(200)
    expect(
      Buffer.from(await download.arrayBuffer())
        .subarray(0, 2)
        .toString('hex'),
    ).toBe('1f8b')
    url.searchParams.set('X-Amz-Expires', '7200')
    expect((await fetch(url)).status).toBe(403)
  })

  test('a download link expires on time and covers one object', async () => {
    const { id } = await customer.destination(installation)
    const destination = await installation.ok('GET', `/v1/destinations/${id}`)
    const { accessKeyId, secretAccessKey } = gateway.service
    const stores = new S3Stores({
      s3Endpoint: gateway.url,
      stsEndpoint: gateway.stsUrl,
      ...system,
      credentials: { accessKeyId, secretAccessKey },
    })
    const store = stores.open(destination)
    const options = { contentType: 'text/plain', metadata: {} }
    for (const key of ['in/let/a', 'in/let/b']) await store.put(key, Buffer.from(key), options)
    const url = await store.presign('in/let/a', 2)
    const download = await fetch(url)
    expect(await download.text()).toBe('in/let/a')
    expect((await fetch(url.replace('/in/let/a', '/in/let/b'))).status).toBe(403)
    await until('the link to be too old', async () => (await fetch(url)).status === 403)
    stores.close()
  })

  test('delivers with a KMS key', async () => {
    const destination = await customer.destination(installation, { kms_key_arn: gateway.kmsKeyArn })
    expect(await installation.ok('POST', `/v1/destinations/${destination.id}/validate`)).toMatchObject({ last_error: null })
    const { bucket } = destination
    const { id } = await installation.endpoint({ bucket, destination_id: destination.id })
    const { body } = await installation.ingest(id, '{"n":1}\n')
    await installation.committed(id, [body.segment_seq])
    for (const { key } of await customer.list(bucket)) {
      expect(await customer.head(bucket, key), key).toMatchObject({
        ServerSideEncryption: 'aws:kms',
        SSEKMSKeyId: gateway.kmsKeyArn,
      })
    }
  })

  describe('a failed validation says what to do if', () => {
    test.each([
      ['there is no such role', async (role: string) => customer.deleteRole(role), /assuming the role .*no such role/],
      [
        'the role demands another external id',
        async (role: string) => customer.demand(role, 'of-somebody-else'),
        /assuming the role .*AccessDenied.*trust policy.*external id/,
      ],
      [
        'the role does not trust us',
        async (role: string) => {
          await customer.deleteRole(role)
          const Principal = { AWS: gateway.stranger.arn }
          const Statement = [{ Effect: 'Allow', Principal, Action: 'sts:AssumeRole' }]
          await customer.createRole(role, { Version: '2012-10-17', Statement })
        },
        /assuming the role .*trust policy/,
      ],
      [
        'there is no such bucket',
        async (_: string, bucket: string) => customer.deleteBucket(bucket),
        /writing in bucket .*NoSuchBucket.*check its name/,
      ],
      [
        'the role may not put',
        async (role: string, bucket: string) => customer.allow(role, bucket, ['s3:GetObject', 's3:DeleteObject']),
        /writing in bucket .*AccessDenied.*s3:PutObject/,
      ],
      [
        'the role may not delete',
        async (role: string, bucket: string) => customer.allow(role, bucket, [...putActions, 's3:GetObject']),
        /deleting in bucket .*AccessDenied.*s3:DeleteObject/,
      ],
    ])('%s', async (_, spoil, reason) => {
      const { id, role, bucket } = await customer.destination(installation)
      await spoil(role, bucket)
      const destination = await installation.ok('POST', `/v1/destinations/${id}/validate`)
      expect(destination).toMatchObject({ status: 'pending', validated_at: null })
      expect(destination.last_error).toMatch(reason)
      for (const secret of [gateway.service.secretAccessKey, gateway.url]) expect(destination.last_error).not.toContain(secret)
    })

    test('S3 is unreachable', async () => {
      const environment = gatewayEnvironment(gateway, { s3Url: 'http://127.0.0.1:9' })
      await using lonely = await Installation.create({ environment })
      await lonely.start('control')
      const { id } = await customer.destination(lonely)
      const destination = await lonely.ok('POST', `/v1/destinations/${id}/validate`)
      expect(destination).toMatchObject({
        status: 'pending',
        last_error: expect.stringMatching(/writing in bucket .*ECONNREFUSED/),
      })
    })
  })

  // A second control process does not start on SQLite.
  test.skipIf(postgresUrl === undefined)('at most one validation in 30 s, across two control processes', async () => {
    await using database = await newDatabase('postgres')
    const environment = { ...gatewayEnvironment(gateway), INLET_DATABASE_URL: database.url, INLET_SECRET_KEY: secretKey }
    await using one = await Installation.create({ environment })
    await one.start('control')
    await using two = await Installation.create({ environment })
    await two.start('control')
    const { id } = await customer.destination(one)
    const answers = await Promise.all(
      [one, two, one, two].map((control) => control.request('POST', `/v1/destinations/${id}/validate`)),
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 429, 429, 429])
    for (const { status, headers } of answers) {
      if (status !== 429) continue
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(20)
      expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(30)
    }
    expect(await two.ok('GET', `/v1/destinations/${id}`)).toMatchObject({ status: 'valid' })
  })

  test('a repaired destination becomes valid with the next validation', async () => {
    const { id, role, bucket } = await customer.destination(installation)
    await customer.allow(role, bucket, ['s3:GetObject'])
    expect((await installation.ok('POST', `/v1/destinations/${id}/validate`)).status).toBe('pending')
    await customer.allow(role, bucket, allActions)
    const second = await installation.request('POST', `/v1/destinations/${id}/validate`)
    expect(second.status).toBe(429)
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0)
  })
})
