/** A new user with a bucket on S3: from the first start to files, through a role that is deleted and recreated. */
import { expect, test } from 'vitest'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { doubleCredentials, S3Double } from '../support/s3/double.ts'
import { until } from '../support/until.ts'

const role_arn = 'arn:aws:iam::222222222222:role/ingest'
const principal = 'arn:aws:iam::111111111111:user/inlet'

describeWith('processes', 'a bucket on S3', () => {
  test('data waits for a destination, is delivered with its role, and survives the loss of the role', async () => {
    await using double = await S3Double.start()
    await using inlet = await Installation.create({
      environment: {
        INLET_OBJECT_STORE: 's3',
        INLET_LOG_FORMAT: 'text',
        INLET_S3_ENDPOINT: double.url,
        INLET_STS_ENDPOINT: double.url,
        INLET_AWS_PRINCIPAL_ARN: principal,
        AWS_ACCESS_KEY_ID: doubleCredentials.accessKeyId,
        AWS_SECRET_ACCESS_KEY: doubleCredentials.secretAccessKey,
      },
    })
    await inlet.start('start')
    await until('the banner', () => inlet.log.includes('until the endpoint has a destination'))
    const [endpoint] = (await inlet.ok('GET', '/v1/endpoints')).items
    expect(inlet.log).toContain(`PATCH /v1/endpoints/${endpoint.id}`)
    const send = async (event: string) => {
      const answer = await inlet.ingest(endpoint.id, `{"event":"${event}","amount":"${event === 'bad' ? 'x' : '1'}"}\n`)
      expect(answer.status).toBe(202)
    }
    await send('waits')
    const reasons = async () => (await inlet.ok('GET', `/v1/endpoints/${endpoint.id}`)).status_reasons.join()
    await until('the endpoint to report what it waits for', async () => (await reasons()).includes('no destination'))

    const wished = { name: 'lake', bucket: 'lake', prefix: 'raw', region: 'eu-central-1', role_arn, path_style: true }
    const destination = await inlet.ok('POST', '/v1/destinations', wished)
    expect(destination.trust_policy.Statement[0].Principal.AWS).toBe(principal)
    const bucket = double.addBucket('lake')
    double.addRole(role_arn, { externalId: destination.external_id })
    expect(await inlet.ok('POST', `/v1/destinations/${destination.id}/validate`)).toMatchObject({ status: 'valid' })
    await inlet.ok('PATCH', `/v1/endpoints/${endpoint.id}`, { destination_id: destination.id, segment_max_age_seconds: 1 })
    await inlet.committed(endpoint.id, [0])

    // Each object describes itself: a bucket can be read without the service.
    const marker = [...bucket.objects.keys()].find((key) => key.includes('/commits/')) ?? ''
    const commit = JSON.parse(bucket.objects.get(marker)?.body.toString() ?? '')
    expect(Object.keys(commit.artifacts).sort()).toEqual(['parquet', 'segment', 'views/events/v1'])
    for (const [kind, { key, sha256, rows }] of Object.entries<{ key: string; sha256: string; rows: number }>(commit.artifacts)) {
      expect(bucket.objects.get(key)?.headers).toMatchObject({
        'x-amz-meta-kind': kind,
        'x-amz-meta-sha256': sha256,
        'x-amz-meta-rows': String(rows),
        'x-amz-meta-endpoint-id': endpoint.id,
        'x-amz-meta-node-id': commit.node_id,
        'x-amz-meta-log': commit.log,
        'x-amz-meta-seq': '0',
        'x-amz-meta-sealed-at': commit.sealed_at,
        'x-amz-server-side-encryption': 'AES256',
      })
    }
    const sessions = new Set(double.calls.flatMap(({ form }) => form.get('RoleSessionName') ?? []))
    expect(sessions).toContain(`inlet-${[...sessions][0]?.slice(6, 18)}-${endpoint.id}`)

    // The role is deleted while data is on its way, and recreated.
    double.roles.delete(role_arn)
    await send('bad')
    await until('the endpoint to report why', async () => (await reasons()).includes('assuming the role'))
    expect(await reasons()).toContain(`${principal} to assume it with the external id ${destination.external_id}`)
    expect(await reasons()).not.toContain('127.0.0.1')
    double.addRole(role_arn, { externalId: destination.external_id })
    await inlet.committed(endpoint.id, [0, 1])
    await until(
      'the endpoint to be active',
      async () => (await inlet.ok('GET', `/v1/endpoints/${endpoint.id}`)).status === 'active',
    )

    const [view] = (await inlet.ok('GET', '/v1/views')).items
    const { files } = await inlet.ok('GET', `/v1/views/${view.id}/dlq-files`)
    expect(files).toMatchObject([{ rows: 1, s3_bucket: 'lake' }])
    const download = await fetch(files[0].download_url)
    expect(download.status).toBe(200)
    const rows = await new Response(download.body?.pipeThrough(new DecompressionStream('gzip'))).text()
    expect(JSON.parse(rows)).toMatchObject({ error_code: 'cast_failed', column: 'amount' })
  })
})
