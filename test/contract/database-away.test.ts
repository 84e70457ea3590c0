/** While the database is unavailable, clients get 503 with Retry-After, and never a 500. */
import { DatabaseSync } from 'node:sqlite'
import fastify from 'fastify'
import { sql } from 'kysely'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { handleErrors } from '#control/http/requests/problem.ts'
import { systemClock } from '#lib/clock.ts'
import { newId } from '#model/id.ts'
import { insertAccount } from '#store/accounts/accounts.ts'
import { transact } from '#store/store.ts'
import { type Answer, newControl } from '../support/control.ts'
import { newDatabase, newStore, postgresUrl } from '../support/databases.ts'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'
import { aWire } from '../support/wire.ts'

const aDestination = { name: 'lake', bucket: 'lake', region: 'eu', role_arn: 'arn:aws:iam::123456789012:role/ingest' }

function expectUnavailable(answer: Answer): void {
  expect(answer).toMatchObject({ status: 503, body: { error: 'unavailable', retry: true } })
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(JSON.stringify(answer.body)).not.toMatch(/sqlite|postgres|ECONN|terminat/i)
}

describe('SQLite that another process keeps locked', () => {
  test('503 for writes; reads continue', async () => {
    await using database = await newDatabase('sqlite')
    await using control = await newControl({ database })
    const account = await control.newAccount()
    const other = new DatabaseSync(database.url)
    other.exec('begin immediate')
    try {
      // Each attempt at a write waits for the lock, and there are ten.
      expectUnavailable(await account.post('/v1/destinations', aDestination))
      expect(await account.get('/v1/endpoints')).toMatchObject({ status: 200, body: { total: 0 } })
    } finally {
      other.close()
    }
    expect(await account.post('/v1/destinations', aDestination)).toMatchObject({ status: 201 })
    expect(await account.post('/v1/endpoints', { region: 'loc' })).toMatchObject({ status: 201 })
  })
})

test('SQLite on a full disk: 503 for writes, the log names the disk, and writes continue once there is room', async () => {
  await using store = await newStore('sqlite')
  const lines: string[] = []
  const app = fastify()
  handleErrors(app, { baseUrl: '', logger: pino({}, { write: (line: string) => void lines.push(line) }), clock: systemClock })
  app.post('/', () =>
    transact(store, async (db) => {
      for (let written = 0; written < 10; written += 1)
        await insertAccount(db, { id: newId(), name: newId() + 'x'.repeat(4096), external_id: newId() }, 0)
      return {}
    }),
  )
  await sql`pragma max_page_count = 1`.execute(store.db)
  const answer = await app.inject({ method: 'POST', url: '/' })
  expect(answer).toMatchObject({ statusCode: 503, headers: { 'retry-after': '1', connection: 'close' } })
  expect(answer.json()).toMatchObject({ error: 'unavailable', retry: true })
  expect(lines.join()).toContain('the disk of the database is full')
  expect(lines.join()).not.toContain('cannot rollback')
  await sql`pragma max_page_count = 1000000`.execute(store.db)
  expect(await app.inject({ method: 'POST', url: '/' })).toMatchObject({ statusCode: 200 })
})

describe.skipIf(postgresUrl === undefined)('Postgres that is not to be reached', () => {
  test('503 during an outage, and success after it', async () => {
    await using database = await newDatabase('postgres')
    await using wire = await aWire(database.url)
    await using control = await newControl({ database: { ...database, url: wire.url } })
    const account = await control.newAccount()
    expect(await account.get('/v1/endpoints')).toMatchObject({ status: 200 })
    const before = Promise.all(Array.from({ length: 20 }, () => account.get('/v1/endpoints')))
    await wire.cut()
    for (const answer of await before) if (answer.status !== 200) expectUnavailable(answer)
    expectUnavailable(await account.get('/v1/endpoints'))
    expectUnavailable(await account.post('/v1/destinations', aDestination))
    expectUnavailable(await account.post('/v1/endpoints', { region: 'loc' }))
    expectUnavailable(await control.call('GET', '/readyz'))
    expect(await control.call('GET', '/healthz')).toMatchObject({ status: 200 })
    await wire.mend()
    await until('control is ready again', async () => (await control.call('GET', '/readyz')).status === 200)
    expect(await account.post('/v1/endpoints', { region: 'loc' })).toMatchObject({ status: 201 })
  })

  test('503 after a few seconds if it does not respond at all, and success after it', async () => {
    await using database = await newDatabase('postgres')
    await using wire = await aWire(database.url)
    await using control = await newControl({ database: { ...database, url: wire.url } })
    const account = await control.newAccount()
    wire.freeze()
    const answers = await Promise.all([account.get('/v1/endpoints'), account.get('/v1/views'), account.get('/v1/endpoints')])
    for (const answer of answers) expectUnavailable(answer)
    wire.thaw()
    await until('control is ready again', async () => (await control.call('GET', '/readyz')).status === 200)
    expect(await account.post('/v1/endpoints', { region: 'loc' })).toMatchObject({ status: 201 })
  })

  test('nodes do not notice: data is accepted meanwhile, and committed when it is over', { timeout: 60_000 }, async () => {
    await using database = await newDatabase('postgres')
    await using wire = await aWire(database.url)
    await using inlet = await Installation.create({ environment: { INLET_DATABASE_URL: wire.url } })
    await inlet.start('control', 'ingest', 'delivery')
    const { id } = await inlet.endpoint({ bucket: 'lake' })
    await wire.cut()
    await until('control cannot work', async () => (await inlet.request('GET', '/v1/endpoints')).status === 503)
    const answers = await Promise.all(Array.from({ length: 5 }, (_, n) => inlet.ingest(id, `{"n":${n}}`)))
    expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(202))
    expect((await fetch(`${inlet.ingestUrl}/readyz`)).status).toBe(200)
    await until('a segment is delivered', () => inlet.markers('lake', id).length > 0, 30_000)
    await wire.mend()
    await inlet.committed(
      id,
      answers.map(({ body }) => body.segment_seq),
    )
  })
})
