import { sql } from 'kysely'
import { expect } from 'vitest'
import { hashApiKey } from '#auth/secrets.ts'
import { readConfig } from '#config/config.ts'
import { newId } from '#model/id.ts'
import { apiKeyPattern } from '#model/patterns.ts'
import { findApiKeyByHash, listApiKeys } from '#store/accounts/api-keys.ts'
import { listAuditEvents } from '#store/accounts/audit-events.ts'
import { currentEpoch } from '#store/cluster/epoch.ts'
import { runCli } from '../support/cli.ts'
import { newStore, type TestStore } from '../support/databases.ts'
import { anAccount, aStoredEndpoint, describeStores } from './fixtures.ts'

function keys(url: string, ...args: string[]) {
  return runCli(['keys', ...args], { config: readConfig({ INLET_DATABASE_URL: url }) })
}

async function created(store: TestStore, ...args: string[]) {
  const { out } = await keys(store.url, 'create', ...args)
  const secret = out.split('\n')[0] ?? ''
  expect(secret).toMatch(apiKeyPattern)
  return { secret, key: await findApiKeyByHash(store.db, hashApiKey(secret)) }
}

describeStores('inlet keys', (test, kind) => {
  test('every change, and every attempt, is in the audit trail', async ({ store }) => {
    const account_id = await anAccount(store)
    const { key } = await created(store, '--name', 'ci', '--scope', 'ingest')
    await keys(store.url, 'list')
    await keys(store.url, 'revoke', key?.id ?? '')
    await keys(store.url, 'revoke', 'nobody')
    const { items } = await listAuditEvents(store.db, account_id, { limit: 10 })
    const command = { actor: 'cli', account_id, address: null, status: null }
    expect(items).toMatchObject([
      { ...command, operation: 'revokeKey', resource_id: null, result: 'failed', error: 'not_found' },
      { ...command, operation: 'revokeKey', resource_id: key?.id, result: 'succeeded', error: null },
      { ...command, operation: 'createKey', resource_id: key?.id, result: 'succeeded', error: null },
    ])
  })

  test('a database of another release is refused, and left as it is', async ({ store }) => {
    await anAccount(store)
    const newest = await sql<{ version: number }>`select max(version) as version from schema_migrations`.execute(store.db)
    const version = Number(newest.rows[0]?.version)
    await sql`delete from schema_migrations where version = ${version}`.execute(store.db)
    const older = await keys(store.url, 'list')
    expect(older).toMatchObject({
      code: 1,
      err: expect.stringMatching(/has schema version \d+, .* make a backup .* start Inlet/),
    })
    expect((await sql`select version from schema_migrations where version = ${version}`.execute(store.db)).rows).toEqual([])
    await sql`insert into schema_migrations (version, name, applied_at) values (${version + 1}, 'next', 0)`.execute(store.db)
    expect(await keys(store.url, 'list')).toMatchObject({ code: 1, err: expect.stringContaining('run the newer release') })
  })

  test('create stores a key, prints it, and increments the epoch', async ({ store }) => {
    const account_id = await anAccount(store)
    const { key } = await created(store, '--name', 'ci', '--scope', 'ingest, metrics')
    expect(key).toMatchObject({ account_id, name: 'ci', scopes: ['ingest', 'metrics'], revoked_at: null })
    expect(await currentEpoch(store.db)).toBe(1)
  })

  test('--scope can be repeated', async ({ store }) => {
    await anAccount(store)
    const { key } = await created(store, '--name', 'ci', '--scope', 'ingest', '--scope', 'admin')
    expect(key?.scopes).toEqual(['ingest', 'admin'])
  })

  test('--endpoint limits the key', async ({ store }) => {
    const { id } = await aStoredEndpoint(store, await anAccount(store))
    const { key } = await created(store, '--name', 'ci', '--scope', 'ingest', '--endpoint', id.toUpperCase())
    expect(key?.endpoint_ids).toEqual([id])
    const unknown = await keys(store.url, 'create', '--name', 'ci', '--scope', 'ingest', '--endpoint', newId())
    expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining('the account has no endpoint ') })
  })

  test('--origin makes a public key, where the operator allows them', async ({ store }) => {
    const { id } = await aStoredEndpoint(store, await anAccount(store))
    const args = ['--name', 'web', '--scope', 'ingest', '--endpoint', id, '--origin', 'https://a.example']
    const create = (settings: Record<string, string>) => {
      const config = readConfig({ INLET_DATABASE_URL: store.url, ...settings })
      return runCli(['keys', 'create', ...args], { config })
    }
    expect(await create({})).toMatchObject({ code: 1, out: '', err: expect.stringContaining('set INLET_PUBLIC_KEYS=true') })
    const { code, out } = await create({ INLET_PUBLIC_KEYS: 'true' })
    expect(code).toBe(0)
    const key = await findApiKeyByHash(store.db, hashApiKey(out.split('\n')[0] ?? ''))
    expect(key?.origins).toEqual(['https://a.example'])
  })

  test('list prints everything but the secrets', async ({ store }) => {
    await anAccount(store)
    const { secret, key } = await created(store, '--name', 'ci', '--scope', 'ingest')
    const { code, out } = await keys(store.url, 'list')
    expect(code).toBe(0)
    expect(out).toContain(`${key?.id}  ${secret.slice(0, 13)}…  ci`)
    expect(out).not.toContain(secret)
  })

  test('revoke revokes a key and increments the epoch', async ({ store, account }) => {
    const { key } = await created(store, '--name', 'ci', '--scope', 'ingest')
    const { code, out } = await keys(store.url, 'revoke', key?.id ?? '')
    expect([code, out]).toEqual([0, expect.stringContaining('The key "ci" was revoked at 20')])
    expect((await listApiKeys(store.db, account, { limit: 10, offset: 0 })).items).toEqual([
      expect.objectContaining({ revoked_at: expect.any(String) }),
    ])
    expect(await currentEpoch(store.db)).toBe(2)
    expect(out).toContain('revoke it again with --now')
    expect(out).toContain('So far: applied on 0 of 0 nodes.\ninlet keys list says when')
    expect((await keys(store.url, 'list')).out).toContain('applied on 0 of 0 nodes')
    const again = await keys(store.url, 'revoke', key?.id ?? '', '--now')
    expect([again.code, again.out]).toEqual([0, expect.stringContaining('and end its MQTT connections')])
    expect((await listApiKeys(store.db, account, { limit: 10, offset: 0 })).items).toEqual([
      expect.objectContaining({ access_ended_at: expect.any(String) }),
    ])
    const { items } = await listAuditEvents(store.db, account, { limit: 1 })
    expect(items).toMatchObject([{ operation: 'revokeKeyNow', actor: 'cli' }])
  })

  test('revoke of an unknown key changes nothing, not even the epoch', async ({ store }) => {
    await anAccount(store)
    expect(await keys(store.url, 'revoke', 'nobody')).toEqual({ code: 1, out: '', err: 'no such API key\n' })
    expect(await currentEpoch(store.db)).toBe(0)
  })

  test('an empty database is reported', async ({ store }) => {
    expect(await keys(store.url, 'list')).toMatchObject({ code: 1, err: expect.stringContaining('no account yet') })
  })

  test.each([
    [['create'], 'missing option: --name'],
    [['create', '--name', 'x'], 'missing option: --scope'],
    [['create', '--name', 'x', '--scope', 'root'], '--scope: '],
    [['create', '--name', 'x', '--scope', 'ingest,ingest'], '--scope: '],
    [['create', '--name', ' ', '--scope', 'ingest'], '--name: '],
    [['create', '--name', 'x', '--scope', 'ingest', '--endpoint', 'all'], '--endpoint: '],
    [['create', '--name', 'x', '--scope', 'admin', '--endpoint', '4f8c1f0e-6a53-4c0e-9d3b-0000000000e1'], '--endpoint: '],
    [['create', 'x', '--name', 'x', '--scope', 'ingest'], 'unexpected argument: x'],
    [['create', '--nmae', 'x'], 'unknown option: --nmae; did you mean --name?'],
    [['list', 'all'], 'unexpected argument: all'],
    [['list', '--name', 'x'], 'unknown option: --name'],
    [['revoke'], 'missing argument: ID'],
    [['revoke', 'a', 'b'], 'unexpected argument: b'],
    [['revok', 'a'], 'unknown command: revok; did you mean revoke?'],
  ])('explains wrong usage: %j', async (args, message) => {
    await using store = await newStore(kind)
    await anAccount(store)
    const { code, err } = await keys(store.url, ...args)
    expect(code).toBe(2)
    expect(err).toContain(message)
    expect(err).toMatch(/^See: inlet keys .*--help$/m)
    expect(await currentEpoch(store.db)).toBe(0)
  })

  test('prints its help without a command', async () => {
    expect(await keys('unused')).toMatchObject({ code: 0, out: expect.stringContaining('Usage') })
  })
})
