import { expect, test } from 'vitest'
import { hashApiKey } from '#auth/secrets.ts'
import { keysCommand } from '#cli/keys.ts'
import { apiKeyPattern } from '#model/api-key.ts'
import { findApiKeyByHash, listApiKeys } from '#store/api-keys.ts'
import { currentEpoch } from '#store/epoch.ts'
import { describeDatabases, newDatabase, newStore, type TestStore } from '../support/databases.ts'
import { anAccount } from './fixtures.ts'

async function keys(url: string, ...args: string[]) {
  let text = ''
  const stdout = { write: (part: string) => (text += part) }
  const code = await keysCommand(args, { databaseUrl: url, paths: { database: url } }, stdout)
  return { code, text }
}

async function created(store: TestStore, ...args: string[]) {
  const { text } = await keys(store.url, 'create', ...args)
  const secret = text.split('\n')[0] ?? ''
  expect(secret).toMatch(apiKeyPattern)
  return { secret, key: await findApiKeyByHash(store.db, hashApiKey(secret)) }
}

describeDatabases('inlet keys', (kind) => {
  test('create makes a key that works and shows it, with a new epoch', async () => {
    await using store = await newStore(kind)
    const account_id = await anAccount(store)
    const { key } = await created(store, '--name', 'ci', '--scope', 'ingest, metrics')
    expect(key).toMatchObject({ account_id, name: 'ci', scopes: ['ingest', 'metrics'], revoked_at: null })
    expect(await currentEpoch(store.db)).toBe(1)
  })

  test('--scope may be given several times', async () => {
    await using store = await newStore(kind)
    await anAccount(store)
    const { key } = await created(store, '--name', 'ci', '--scope', 'ingest', '--scope', 'admin')
    expect(key?.scopes).toEqual(['ingest', 'admin'])
  })

  test('list shows all but the secrets', async () => {
    await using store = await newStore(kind)
    await anAccount(store)
    const { secret, key } = await created(store, '--name', 'ci', '--scope', 'ingest')
    const { code, text } = await keys(store.url, 'list')
    expect(code).toBe(0)
    expect(text).toContain(`${key?.id}  ${secret.slice(0, 13)}…  ci`)
    expect(text).not.toContain(secret)
  })

  test('revoke ends a key, with a new epoch', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { key } = await created(store, '--name', 'ci', '--scope', 'ingest')
    const { code, text } = await keys(store.url, 'revoke', key?.id ?? '')
    expect([code, text]).toEqual([0, expect.stringContaining('The key "ci" is revoked since 20')])
    expect(await listApiKeys(store.db, account)).toEqual([expect.objectContaining({ revoked_at: expect.any(String) })])
    expect(await currentEpoch(store.db)).toBe(2)
  })

  test('revoke of a key that is not there changes nothing, not even the epoch', async () => {
    await using store = await newStore(kind)
    await anAccount(store)
    expect(await keys(store.url, 'revoke', 'nobody')).toEqual({ code: 1, text: 'no such API key\n' })
    expect(await currentEpoch(store.db)).toBe(0)
  })

  test('a database that was never started says so', async () => {
    await using database = await newDatabase(kind)
    expect(await keys(database.url, 'list')).toMatchObject({ code: 1, text: expect.stringContaining('no account yet') })
  })

  test.each([
    [['create']],
    [['create', '--name', 'x']],
    [['create', '--name', 'x', '--scope', 'root']],
    [['create', '--name', 'x', '--scope', 'ingest,ingest']],
    [['create', '--name', ' ', '--scope', 'ingest']],
    [['create', 'x', '--name', 'x', '--scope', 'ingest']],
    [['create', '--nmae', 'x']],
    [['list', 'all']],
    [['list', '--name', 'x']],
    [['revoke']],
    [['revoke', 'a', 'b']],
    [['remove', 'a']],
  ])('wrong use is explained: %j', async (args) => {
    await using store = await newStore(kind)
    await anAccount(store)
    const { code, text } = await keys(store.url, ...args)
    expect(code).toBe(2)
    expect(text).toContain('Usage:')
    expect(await currentEpoch(store.db)).toBe(0)
  })

  test('without a verb it says how it is used', async () => {
    expect(await keys('unused')).toMatchObject({ code: 0, text: expect.stringContaining('Usage:') })
  })
})
