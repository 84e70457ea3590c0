/** Endpoints with two copies, on a node with a copy store in a directory. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ApiClient } from '../support/api-client.ts'
import { Installation } from '../support/installation.ts'
import { startElsewhere, startWithCopies } from '../support/machines-with-copies.ts'
import { doubleCredentials, S3Double } from '../support/s3/double.ts'
import { until } from '../support/until.ts'

test('a record of an endpoint with two copies is in the copy store when it is acknowledged, until it is delivered', async () => {
  const { installation, objects } = await startWithCopies()
  await using _ = installation
  const one = await installation.endpoint({ bucket: 'other' })
  const two = await installation.endpoint({ bucket: 'lake', copies: 2, segment_max_age_seconds: 3600 })
  expect((await installation.ingest(one.id, '{"n":1}')).status).toBe(202)
  expect(objects()).toEqual([])
  expect((await installation.ingest(two.id, '{"n":2}')).status).toBe(202)
  expect(objects()).toHaveLength(1)
  await installation.ok('PATCH', `/v1/endpoints/${two.id}`, { segment_max_age_seconds: 1 })
  await until(
    'the commit',
    async () => (await installation.ok('GET', `/v1/endpoints/${two.id}/commits`)).items.length === 1,
    30_000,
  )
  await until('the removal of the copy', () => objects().length === 0, 30_000)
}, 120_000)

test('a request that asks for its commit is answered with the objects in the bucket', async () => {
  const { installation } = await startWithCopies()
  await using _ = installation
  const { id } = await installation.endpoint({ bucket: 'lake', copies: 2, segment_max_age_seconds: 1 })
  const { status, body, headers } = await installation.ingest(id, '{"n":1}', { 'inlet-ack': 'committed' })
  expect([status, headers.get('inlet-ack')]).toEqual([200, 'committed'])
  const [commit] = (await installation.ok('GET', `/v1/endpoints/${id}/commits`)).items
  const files: readonly { readonly key: string }[] = Object.values(commit.artifacts)
  expect(body).toMatchObject({ accepted_records: 1, segment_seq: commit.seq, commit_id: commit.id })
  expect(body.keys.length).toBeGreaterThan(0)
  expect(files.map(({ key }) => key)).toEqual(expect.arrayContaining(body.keys))
  expect((await installation.ingest(id, '{"n":2}', { 'inlet-ack': 'disk' })).status).toBe(202)
}, 120_000)

test('while the copy store fails, only endpoints with two copies are refused, and a repeated request is stored once', async () => {
  const { installation, store } = await startWithCopies()
  await using _ = installation
  const one = await installation.endpoint({ bucket: 'other' })
  const two = await installation.endpoint({ bucket: 'lake', copies: 2 })
  const send = (id: string, n: number) => installation.ingest(id, JSON.stringify({ n }), { 'idempotency-key': `key-${id}-${n}` })
  expect((await send(two.id, 1)).status).toBe(202)
  const away = join(installation.directory, 'away')
  renameSync(store, away)
  writeFileSync(store, 'no directory')
  const refused = await send(two.id, 2)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)])
  expect(refused.body.detail).toContain('the copy store did not take the records in time')
  const again = await send(two.id, 3)
  expect([again.status, again.body.detail]).toEqual([503, expect.stringContaining('the copy store takes no records')])
  expect((await send(one.id, 1)).status).toBe(202)
  const reasons = async (id: string): Promise<string> =>
    (await installation.ok('GET', `/v1/endpoints/${id}`)).status_reasons.join()
  await until(
    'the reason',
    async () => (await reasons(two.id)).includes('new data is refused: the copy store takes no records'),
    15_000,
  )
  expect(await reasons(one.id)).not.toContain('copy')
  rmSync(store)
  renameSync(away, store)
  await until('the repetition', async () => (await send(two.id, 2)).status === 202, 30_000)
  await until('the end of the reason', async () => !(await reasons(two.id)).includes('copy'), 15_000)
  const records = async () =>
    (await installation.ok('GET', `/v1/endpoints/${two.id}/commits`)).items.reduce(
      (sum: number, commit: { readonly records: number }) => sum + commit.records,
      0,
    )
  expect((await send(two.id, 4)).status).toBe(202)
  await until('the three records', async () => (await records()) === 3, 30_000)
}, 120_000)

test('while the disk of the copy store is not mounted, nothing is acknowledged with two copies', async () => {
  const { installation, store } = await startWithCopies()
  await using _ = installation
  const { id } = await installation.endpoint({ bucket: 'lake', copies: 2, segment_max_age_seconds: 3600 })
  expect((await installation.ingest(id, '{"n":1}')).status).toBe(202)
  // As after `umount`: the directory below the mount point is on the disk of this node, and empty.
  const away = join(installation.directory, 'away')
  renameSync(store, away)
  mkdirSync(store)
  expect((await installation.ingest(id, '{"n":2}')).status).toBe(503)
  rmSync(store, { recursive: true })
  renameSync(away, store)
  await until('records again', async () => (await installation.ingest(id, '{"n":3}')).status === 202, 30_000)
}, 120_000)

test('a node that starts while the disk of its copy store is not mounted acknowledges nothing with two copies', async () => {
  const { installation, store } = await startWithCopies()
  await using _ = installation
  const { id } = await installation.endpoint({ bucket: 'lake', copies: 2, segment_max_age_seconds: 3600 })
  expect((await installation.ingest(id, '{"n":1}')).status).toBe(202)
  await installation.end('ingest', 'SIGTERM')
  const away = join(installation.directory, 'away')
  renameSync(store, away)
  mkdirSync(store)
  await installation.start('ingest')
  const ends = Date.now() + 5_000
  while (Date.now() < ends) expect((await installation.ingest(id, '{"n":2}')).status).toBe(503)
  rmSync(store, { recursive: true })
  renameSync(away, store)
  await until('records again', async () => (await installation.ingest(id, '{"n":3}')).status === 202, 30_000)
}, 120_000)

test('a node without a copy store refuses such an endpoint: the API with 422, and ingest with 503', async () => {
  const { installation } = await startWithCopies()
  await using _ = installation
  const { id } = await installation.endpoint({ bucket: 'lake', copies: 2 })
  expect((await installation.ingest(id, '{"n":1}')).status).toBe(202)
  await installation.end('ingest', 'SIGTERM')
  installation.configure({ INLET_COPY_URL: '' })
  await installation.start('ingest')
  const refused = await installation.ingest(id, '{"n":2}')
  expect([refused.status, refused.body.detail]).toEqual([503, expect.stringContaining('set INLET_COPY_URL on it')])
  await until('the reason', async () => {
    const { status_reasons } = await installation.ok('GET', `/v1/endpoints/${id}`)
    return status_reasons.join().includes('has no copy store')
  })
  const created = await installation.request('POST', '/v1/endpoints', { region: 'loc', copies: 2 })
  expect([created.status, created.body.errors?.[0]]).toEqual([
    422,
    { path: 'copies', message: expect.stringContaining('has no copy store: set INLET_COPY_URL there, and start it again') },
  ])
  expect((await installation.request('PATCH', `/v1/endpoints/${id}`, { copies: 1 })).status).toBe(200)
  await until('data again', async () => (await installation.ingest(id, '{"n":3}')).status === 202, 15_000)
}, 120_000)

test('what a lost machine acknowledged with two copies is delivered by another one, once, and the machine may not come back', async () => {
  const { installation, objects } = await startWithCopies()
  await using _ = installation
  const { id } = await installation.endpoint({ bucket: 'lake', copies: 2, segment_max_age_seconds: 3600 })
  const lost = (await installation.ingest(id, '{"n":1}')).body.node_id
  for (let n = 2; n <= 20; n += 1) expect((await installation.ingest(id, `{"n":${n}}`)).status).toBe(202)
  const { ingestUrl } = installation
  const signal = (name: NodeJS.Signals) => {
    for (const command of ['ingest', 'delivery']) process.kill(installation.pid(command) ?? 0, name)
  }
  signal('SIGSTOP')
  // They wait in the queue of its socket.
  const send = async () => (await installation.ingest(id, '{"n":21}').catch(() => undefined))?.status
  const queued = Promise.all(Array.from({ length: 20 }, send))

  await startElsewhere(installation)

  const adoption = await installation.run('node', '--adopt-copy', lost)
  expect([adoption.exitCode, adoption.log]).toEqual([0, expect.stringContaining('log restored from its copies')])
  const commits = async () => (await installation.ok('GET', `/v1/endpoints/${id}/commits`)).items
  expect(await commits()).toMatchObject([{ node_id: lost, records: 20 }])
  expect(await installation.ok('GET', `/v1/endpoints/${id}/receipts/${lost}-0`)).toMatchObject({ state: 'delivered' })
  expect((await installation.ok('GET', '/v1/losses')).items.filter(({ state }: { state: string }) => state === 'open')).toEqual(
    [],
  )
  // Only those that close the incarnations of records and of keys.
  expect(objects()).toHaveLength(2)

  // The machine was only frozen.
  signal('SIGCONT')
  // It resets those that waited for too long. 500 for a record that was stored when the node learned of it: it may be delivered.
  expect((await queued).filter((status) => status !== undefined && ![500, 503].includes(status))).toEqual([])
  const refused = await installation.ingest(id, '{"n":22}')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)])
  const readiness = async () => await (await fetch(`${ingestUrl}/readyz`)).text()
  await until('the refusal', async () => (await readiness()).includes('another machine adopted the log of this node'), 15_000)
  for (const command of ['ingest', 'delivery'] as const) expect(await installation.end(command, 'SIGTERM')).toBe(0)
  expect(await commits()).toMatchObject([{ node_id: lost, records: 20 }])

  // It comes back with its disk, and then without.
  installation.configure({ INLET_DATA_DIR: installation.directory, INLET_INGEST_LISTEN: new URL(ingestUrl).host })
  const refusals = () => installation.log.split('another machine adopted the log of this node').length
  const before = refusals()
  installation.spawn('ingest')
  await until('the refusal', () => refusals() > before, 30_000)
  expect((await installation.ingest(id, '{"n":23}').catch(() => undefined))?.status ?? 503).toBe(503)
  await installation.end('ingest', 'SIGTERM')
  renameSync(join(installation.directory, 'node'), join(installation.directory, 'lost-disk'))
  await installation.start('ingest')
  await until('data', async () => (await installation.ingest(id, '{"n":24}')).status === 202, 15_000)
  expect((await installation.ingest(id, '{"n":25}')).body.node_id).not.toBe(lost)
}, 240_000)

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
