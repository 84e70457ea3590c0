/** A machine with a copy store that is lost: control finds that it is silent. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ApiClient } from '../support/api-client.ts'
import { Installation } from '../support/installation.ts'
import { startElsewhere, startWithCopies } from '../support/machines-with-copies.ts'
import { doubleCredentials, S3Double } from '../support/s3/double.ts'
import { until } from '../support/until.ts'

test('control gives a silent node to another one, which delivers its copies and removes them', async () => {
  const { installation, objects } = await startWithCopies({ INLET_TAKEOVER_AFTER: '10s' })
  await using _ = installation
  const { id } = await installation.endpoint({ bucket: 'lake', copies: 2, segment_max_age_seconds: 1 })
  const commits = async () => (await installation.ok('GET', `/v1/endpoints/${id}/commits`)).items
  const sendBy = async (client: ApiClient, n: number) => await client.ingest(id, `{"n":${n}}`, { 'idempotency-key': `key-${n}` })
  const send = (n: number) => sendBy(installation, n)
  const delivered = (await send(1)).body
  const lost = delivered.node_id
  await until('the first commit', async () => (await commits()).length === 1, 30_000)
  // Its keys are in the store on their own then.
  await until('the removal of the copy', () => objects().length === 1, 30_000)
  await installation.ok('PATCH', `/v1/endpoints/${id}`, { segment_max_age_seconds: 3600 })
  const undelivered = (await send(2)).body
  for (let n = 3; n <= 20; n += 1) expect((await send(n)).status).toBe(202)
  for (const command of ['ingest', 'delivery']) await installation.kill(command)
  rmSync(join(installation.directory, 'node'), { recursive: true })
  const { apiUrl, apiKey } = installation
  const ingestUrl = await startElsewhere(installation)
  // Control first reads the markers of the lost node, which may still run, after a minute.
  await until('the delivery', async () => (await commits()).length > 1, 150_000)
  expect((await commits()).map(({ node_id, records }: { node_id: string; records: number }) => [node_id, records])).toEqual(
    expect.arrayContaining([
      [lost, 1],
      [lost, 19],
    ]),
  )
  // Only those that close the incarnations of records and of keys.
  await until('the removal', () => objects().length === 2, 30_000)
  // The other node answers repetitions with the receipts of the lost one.
  const other = new ApiClient({ apiUrl, apiKey, ingestUrl })
  const metrics = async () => await (await fetch(`${ingestUrl}/metrics`)).text()
  await until('the keys', async () => /^inlet_ingest_idempotency_keys\{[^}]*\} 20$/m.test(await metrics()))
  for (const [index, receipt] of [delivered, undelivered].entries()) {
    const again = await sendBy(other, index + 1)
    expect([again.body, again.headers.get('idempotent-replayed')]).toEqual([receipt, 'true'])
  }
  const { items } = await installation.ok('GET', '/v1/losses')
  expect(items.filter(({ state }: { readonly state: string }) => state === 'open')).toEqual([])
}, 240_000)

test('a node whose copy store ignores conditions is not taken over by itself, and a line in the log says what to do', async () => {
  await using double = await S3Double.start()
  double.withoutRoles({ knowsHeaders: true })
  const { objects } = double.addBucket('copies', 'us-east-1')
  const installation = await Installation.create()
  await using _ = installation
  const { accessKeyId, secretAccessKey } = doubleCredentials
  installation.configure({
    ...{ INLET_COPY_URL: 's3://copies/in/let', INLET_COPY_S3_ENDPOINT: double.url, INLET_TAKEOVER_AFTER: '10s' },
    ...{ INLET_COPY_ACCESS_KEY_ID: accessKeyId, INLET_COPY_SECRET_ACCESS_KEY: secretAccessKey },
  })
  double.heedsConditions = false
  await installation.start('control', 'ingest', 'delivery')
  const { id } = await installation.endpoint({ bucket: 'lake', copies: 2, segment_max_age_seconds: 3600 })
  await until('the store', async () => (await installation.ingest(id, '{"n":1}')).status === 202)
  const lost = (await installation.ingest(id, '{"n":2}')).body.node_id
  for (const command of ['ingest', 'delivery']) await installation.kill(command)
  rmSync(join(installation.directory, 'node'), { recursive: true })
  await startElsewhere(installation)
  const advice = `then run inlet node --adopt-copy ${lost}`
  await until('the refusal', () => installation.log.includes(advice), 90_000)
  expect(installation.log).toContain('the copy store is not safe for a takeover by itself')
  expect(objects.keys().some((key) => key.includes(`${lost}/fence/`))).toBe(false)
}, 240_000)
