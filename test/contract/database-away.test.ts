/** While the database is unavailable, clients get 503 with Retry-After, and never a 500. */
import { connect, createServer, type Socket } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import fastify from 'fastify'
import { sql } from 'kysely'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { handleErrors } from '#control/problem.ts'
import { newId } from '#model/id.ts'
import { insertAccount } from '#store/accounts.ts'
import { transact } from '#store/store.ts'
import { type Answer, newControl } from '../support/control.ts'
import { newDatabase, newStore, postgresUrl } from '../support/databases.ts'
import { until } from '../support/until.ts'

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
      expectUnavailable(await account.post('/v1/destinations', aDestination))
      expectUnavailable(await account.post('/v1/endpoints', { region: 'loc' }))
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
  handleErrors(app, { baseUrl: '', logger: pino({}, { write: (line: string) => void lines.push(line) }) })
  app.post('/', () =>
    transact(store, async (db) => {
      for (let written = 0; written < 10; written += 1)
        await insertAccount(db, { id: newId(), name: newId() + 'x'.repeat(4096), external_id: newId() }, 0)
      return {}
    }),
  )
  await sql`pragma max_page_count = 1`.execute(store.db)
  const answer = await app.inject({ method: 'POST', url: '/' })
  expect(answer).toMatchObject({ statusCode: 503, headers: { 'retry-after': '1' } })
  expect(answer.json()).toMatchObject({ error: 'unavailable', retry: true })
  expect(lines.join()).toContain('the disk of the database is full')
  expect(lines.join()).not.toContain('cannot rollback')
  await sql`pragma max_page_count = 1000000`.execute(store.db)
  expect(await app.inject({ method: 'POST', url: '/' })).toMatchObject({ statusCode: 200 })
})

/** A proxy between control and Postgres that can be interrupted. */
async function aWire(url: string) {
  const { hostname, port, searchParams } = new URL(url)
  const folder = searchParams.get('host')
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = folder === null ? connect(Number(port || 5432), hostname) : connect(`${folder}/.s.PGSQL.${port || 5432}`)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
      from.pipe(to)
    }
  })
  const listen = (at: number) => new Promise<void>((resolve) => server.listen(at, '127.0.0.1', resolve))
  await listen(0)
  const address = server.address()
  const at = typeof address === 'object' && address !== null ? address.port : 0
  const through = new URL(url)
  through.searchParams.delete('host')
  through.hostname = '127.0.0.1'
  through.port = String(at)
  const cut = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    sockets.clear()
    await closed
  }
  return { url: through.href, cut, mend: () => listen(at) }
}

describe.skipIf(postgresUrl === undefined)('Postgres that is not to be reached', () => {
  test('503 during an outage, and success after it', async () => {
    await using database = await newDatabase('postgres')
    const wire = await aWire(database.url)
    try {
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
    } finally {
      await wire.cut().catch(() => undefined)
    }
  })
})
