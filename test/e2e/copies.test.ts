/** Endpoints with two copies, on a node with a copy store in a directory. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startWithCopies } from '../support/machines-with-copies.ts'
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
