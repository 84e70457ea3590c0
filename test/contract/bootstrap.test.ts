import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { clientOf, newControl, type TestControl } from '../support/control.ts'
import { newDatabase, postgresUrl } from '../support/databases.ts'
import { TestNode } from '../support/test-node.ts'

const aKey = () => `ing_live_${randomBytes(16).toString('hex')}`

async function signIn({ call }: TestControl, api_key: string) {
  const { status, body } = await call('POST', '/v1/token/exchange', { api_key, scope: 'admin' })
  expect(status).toBe(200)
  return clientOf(call, body.access_token)
}

describe('the first start', () => {
  test('creates everything needed to send a first event', async () => {
    await using control = await newControl()
    const { api_key, endpoint_id, ingest_host } = control.bootstrapped ?? {}
    expect(ingest_host).toBe('127.0.0.1:8081')
    const api = await signIn(control, api_key ?? '')
    const { body: destinations } = await api.get('/v1/destinations')
    expect(destinations.items).toMatchObject([{ name: 'local', bucket: 'local', status: 'valid', ref_count: 1 }])
    const { body: views } = await api.get('/v1/views')
    expect(views.items).toMatchObject([{ name: 'events', status: 'published', usage_count: 1 }])
    // It was stored without a check.
    const { body: draft } = await api.post(`/v1/views/${views.items[0].id}/versions`)
    expect(await api.post(`/v1/views/${draft.id}/publish`)).toMatchObject({ status: 200 })
    const formats = ['parquet_views', 'parquet', 'segments']
    expect((await api.get(`/v1/endpoints/${endpoint_id}`)).body).toMatchObject({
      ...{ region: 'loc', destination_status: 'valid', segment_max_age_seconds: 60, output_formats: formats },
    })
    const node = await TestNode.register(control, 'loc')
    await node.heartbeat()
    expect((await api.get(`/v1/endpoints/${endpoint_id}`)).body).toMatchObject({ status: 'active', status_reasons: [] })
    expect((await node.snapshot()).endpoints).toMatchObject([{ id: endpoint_id, views: [{ name: 'events', version: 1 }] }])
    const left = readdirSync(join(control.directory, 'buckets', 'local'), { recursive: true, withFileTypes: true })
    expect(left.filter((entry) => entry.isFile())).toEqual([])
  })

  test('at a terminal makes an endpoint whose files appear within seconds', async () => {
    await using control = await newControl({ isAtTerminal: true })
    const { api_key, endpoint_id } = control.bootstrapped ?? {}
    const api = await signIn(control, api_key ?? '')
    expect((await api.get(`/v1/endpoints/${endpoint_id}`)).body).toMatchObject({ segment_max_age_seconds: 5 })
  })

  test('creates nothing at the second start', async () => {
    await using database = await newDatabase()
    const first = await newControl({ database })
    const key = first.bootstrapped?.api_key ?? ''
    await first[Symbol.asyncDispose]()
    await using second = await newControl({ database })
    expect(second.bootstrapped).toBeUndefined()
    expect((await (await signIn(second, key)).get('/v1/endpoints')).body.total).toBe(1)
  })

  test.skipIf(postgresUrl === undefined)('of two processes at once makes one account', async () => {
    await using database = await newDatabase('postgres')
    const both = await Promise.all([newControl({ database }), newControl({ database })])
    const made = both.flatMap(({ bootstrapped }) => bootstrapped ?? [])
    expect(made).toHaveLength(1)
    for (const control of both)
      expect((await (await signIn(control, made[0]?.api_key ?? '')).get('/v1/endpoints')).body.total).toBe(1)
    for (const control of both) await control[Symbol.asyncDispose]()
  })
})

test('a second control process on one SQLite database fails to start, and the first continues', async () => {
  await using database = await newDatabase('sqlite')
  await using first = await newControl({ database })
  await expect(newControl({ database })).rejects.toThrow(/another control process running on this SQLite database/)
  expect((await first.call('GET', '/readyz')).status).toBe(200)
})

describe('INLET_BOOTSTRAP_API_KEY', () => {
  test('becomes the key of the first account and is not printed', async () => {
    const key = aKey()
    await using control = await newControl({ environment: { INLET_BOOTSTRAP_API_KEY: key } })
    expect(control.bootstrapped).toMatchObject({ api_key: null })
    const { body } = await (await signIn(control, key)).get('/v1/keys')
    expect(body.items).toMatchObject([{ scopes: ['ingest', 'metrics', 'query', 'admin'] }])
  })

  test('is added once to a database that is already in use', async () => {
    await using database = await newDatabase()
    await (await newControl({ database }))[Symbol.asyncDispose]()
    const environment = { INLET_BOOTSTRAP_API_KEY: aKey() }
    for (let start = 0; start < 3; start += 1) {
      await using control = await newControl({ database, environment })
      expect(control.bootstrapped).toBeUndefined()
      const { body } = await (await signIn(control, environment.INLET_BOOTSTRAP_API_KEY)).get('/v1/keys')
      expect(body.items).toHaveLength(2)
    }
  })

  test('keeps the scopes that it had when there were fewer, which a warning says', async () => {
    await using database = await newDatabase()
    const environment = { INLET_BOOTSTRAP_API_KEY: aKey() }
    const first = await newControl({ database, environment })
    const older = JSON.stringify(['ingest', 'metrics', 'admin'])
    await first.store.db.updateTable('api_keys').set({ scopes: older }).execute()
    await first[Symbol.asyncDispose]()
    const lines: string[] = []
    await using control = await newControl({ database, environment, onLog: (line) => lines.push(line) })
    const { body } = await (await signIn(control, environment.INLET_BOOTSTRAP_API_KEY)).get('/v1/keys')
    expect(body.items).toMatchObject([{ scopes: ['ingest', 'metrics', 'admin'] }])
    const [warning] = lines.filter((line) => line.includes('INLET_BOOTSTRAP_API_KEY'))
    expect(warning).toMatch(/without the scope query/)
    expect(warning).toContain('inlet keys create')
    expect(warning).not.toContain(environment.INLET_BOOTSTRAP_API_KEY)
  })

  test('prevents the start if it was revoked', async () => {
    await using database = await newDatabase()
    const environment = { INLET_BOOTSTRAP_API_KEY: aKey() }
    const first = await newControl({ database, environment })
    const api = await signIn(first, environment.INLET_BOOTSTRAP_API_KEY)
    const { body } = await api.get('/v1/keys')
    await api.post(`/v1/keys/${body.items[0].id}/revoke`)
    await first[Symbol.asyncDispose]()
    const failure = await newControl({ database, environment }).catch((error: unknown) => error)
    expect(String(failure)).toMatch(/INLET_BOOTSTRAP_API_KEY .* was revoked at/)
    expect(String(failure)).not.toContain(environment.INLET_BOOTSTRAP_API_KEY)
  })
})
