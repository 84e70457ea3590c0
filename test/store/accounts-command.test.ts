import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { hashApiKey } from '#auth/secrets.ts'
import { readConfig } from '#config/config.ts'
import { quotaLimits } from '#model/limits.ts'
import { apiKeyPattern } from '#model/patterns.ts'
import { getAccount, listAccounts } from '#store/accounts/accounts.ts'
import { findApiKeyByHash } from '#store/accounts/api-keys.ts'
import { listAuditEvents } from '#store/accounts/audit-events.ts'
import { currentEpoch } from '#store/cluster/epoch.ts'
import { runCli } from '../support/cli.ts'
import { anAccount, describeStores } from './fixtures.ts'

const ownCredentials = { INLET_OBJECT_STORE: 's3', INLET_S3_CREDENTIALS: 'own' }

function inlet(url: string, ...args: string[]) {
  return runCli(args, { config: readConfig({ INLET_DATABASE_URL: url, ...ownCredentials }) })
}

describeStores('inlet accounts', (test) => {
  test('create stores an account with a first key, and prints the key', async ({ store }) => {
    const first = await anAccount(store)
    const { code, out } = await inlet(store.url, 'accounts', 'create', '--name', 'acme')
    const secret = out.split('\n')[0] ?? ''
    expect([code, secret]).toEqual([0, expect.stringMatching(apiKeyPattern)])
    const key = await findApiKeyByHash(store.db, hashApiKey(secret))
    expect(key).toMatchObject({ name: 'first key', scopes: ['ingest', 'metrics', 'query', 'admin'] })
    expect(key?.account_id).not.toBe(first)
    expect(await getAccount(store.db, key?.account_id ?? '')).toMatchObject({ name: 'acme', status: 'active' })
    expect(out).toContain(key?.account_id)
  })

  test('list prints every account, over all pages', async ({ store }) => {
    const ids = []
    for (let made = 0; made < 201; made += 1) ids.push(await anAccount(store))
    const { out } = await inlet(store.url, 'accounts', 'list')
    const [head, ...rows] = out.trimEnd().split('\n')
    expect(head).toMatch(/^ID +NAME +STATUS +CREATED$/)
    expect(rows.map((row) => row.split(' ')[0])).toEqual(ids.toReversed())
    const { out: json } = await inlet(store.url, 'accounts', 'list', '--json')
    expect(JSON.parse(json).map(({ id }: { id: string }) => id)).toEqual(ids.toReversed())
  })

  test('suspend, resume and rename change an account, and nodes see it', async ({ store }) => {
    const id = await anAccount(store)
    expect(await inlet(store.url, 'accounts', 'rename', id, '--name', 'acme')).toMatchObject({
      code: 0,
      out: `The account ${id} is now named "acme".\n`,
    })
    const suspended = await inlet(store.url, 'accounts', 'suspend', id)
    expect(suspended).toMatchObject({ code: 0, out: expect.stringContaining('The account "acme" is suspended.') })
    expect(await getAccount(store.db, id)).toMatchObject({ name: 'acme', status: 'suspended' })
    expect((await inlet(store.url, 'accounts', 'list')).out).toMatch(new RegExp(`^${id}  acme  suspended  `, 'm'))
    expect(await inlet(store.url, 'accounts', 'resume', id)).toMatchObject({ code: 0 })
    expect(await getAccount(store.db, id)).toMatchObject({ status: 'active' })
    expect(await currentEpoch(store.db)).toBe(3)
  })

  test('buckets shows what an account may use, and changes it', async ({ store }) => {
    const [id, other] = [await anAccount(store), await anAccount(store)]
    const buckets = (account: string, ...flags: string[]) => inlet(store.url, 'accounts', 'buckets', account, ...flags)
    expect(await buckets(id)).toMatchObject({ code: 0, out: expect.stringContaining('may use no bucket') })
    expect(await buckets(id, '--allow', 'lake/raw/', '--allow', 'pond')).toMatchObject({ code: 0, out: 'lake/raw\npond\n' })
    const epoch = await currentEpoch(store.db)
    expect(await buckets(id, '--remove', 'pond', '--allow', 'sea')).toMatchObject({ out: 'lake/raw\nsea\n' })
    expect(await currentEpoch(store.db)).toBe(epoch + 1)
    expect((await listAuditEvents(store.db, id, { limit: 50 })).items[0]).toMatchObject({ operation: 'changeAccount' })
    expect(await buckets(id, '--remove', 'pond')).toMatchObject({
      code: 2,
      err: expect.stringContaining('it has: lake/raw, sea'),
    })
    expect(await buckets(id, '--allow', 'lake//raw')).toMatchObject({ code: 2, err: expect.stringContaining('must be a bucket') })
    for (const taken of ['lake', 'lake/raw', 'lake/raw/deeper', 'sea/any'])
      expect(await buckets(other, '--allow', taken)).toMatchObject({ code: 1, err: expect.stringContaining(`${taken} overlaps`) })
    expect(await buckets(other, '--allow', 'lake/raw2')).toMatchObject({ code: 0 })
    expect(await buckets(id)).toMatchObject({ out: 'lake/raw\nsea\n' })
    const config = readConfig({ INLET_DATABASE_URL: store.url })
    expect(await runCli(['accounts', 'buckets', id, '--allow', 'river'], { config })).toMatchObject({
      code: 1,
      err: expect.stringContaining('only installations with INLET_S3_CREDENTIALS=own'),
    })
  })

  test('quota shows the quotas of an account, and changes those that are given', async ({ store }) => {
    const id = await anAccount(store)
    const quota = (...flags: string[]) => inlet(store.url, 'accounts', 'quota', id, ...flags)
    const changed = await quota('--endpoints', '3', '--records-per-second', '100', '--weight', '2')
    expect(changed).toMatchObject({ code: 0, out: expect.stringMatching(/^records_per_second +100 +0$/m) })
    expect(changed.out).toContain('The weight of the account is 2.')
    expect(await getAccount(store.db, id)).toMatchObject({ weight: 2, quotas: { endpoints: 3, records_per_second: 100 } })
    expect(await currentEpoch(store.db)).toBe(1)

    expect(await quota()).toEqual(changed)
    expect(await currentEpoch(store.db)).toBe(1)
    await quota('--endpoints', 'default', '--weight', 'default')
    expect(await getAccount(store.db, id)).toMatchObject({
      weight: 1,
      quotas: { endpoints: quotaLimits.endpoints.default, records_per_second: 100 },
    })
    const wrong = { code: 2, err: expect.stringMatching(/--records-per-second: must be a whole number/) }
    for (const value of ['0', 'many', '1e3']) expect(await quota('--records-per-second', value)).toMatchObject(wrong)
  })

  test('every change, and every attempt, is in the audit trail', async ({ store }) => {
    await anAccount(store)
    await inlet(store.url, 'accounts', 'create', '--name', 'acme')
    const id = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec((await inlet(store.url, 'accounts', 'list')).out)?.[0] ?? ''
    for (const change of ['suspend', 'resume']) await inlet(store.url, 'accounts', change, id)
    await inlet(store.url, 'accounts', 'rename', id, '--name', 'acme 2')
    await inlet(store.url, 'accounts', 'quota', id, '--weight', '2')
    await inlet(store.url, 'accounts', 'create', '--name', 'acme 2')
    const { items } = await listAuditEvents(store.db, undefined, { limit: 10 })
    expect(items.map(({ actor, operation, result, error }) => [actor, operation, result, error])).toEqual([
      ['cli', 'createAccount', 'failed', 'conflict'],
      ...Array(4).fill(['cli', 'changeAccount', 'succeeded', null]),
      ['cli', 'createAccount', 'succeeded', null],
    ])
    expect(items.slice(1).map(({ account_id, resource_id }) => [account_id, resource_id])).toEqual(Array(5).fill([id, id]))
  })

  test('explains what cannot be done, and changes nothing', async ({ store }) => {
    await anAccount(store)
    await inlet(store.url, 'accounts', 'create', '--name', 'acme')
    const before = await listAccounts(store.db, { limit: 50, offset: 0 })
    expect(await inlet(store.url, 'accounts', 'create', '--name', 'acme')).toMatchObject({
      ...{ code: 1, out: '', err: 'another account has this name\n' },
    })
    expect(await inlet(store.url, 'accounts', 'suspend', 'nobody')).toMatchObject({ code: 1, err: 'no such account\n' })
    expect(await inlet(store.url, 'accounts', 'create', '--name', ' ')).toMatchObject({
      ...{ code: 2, err: expect.stringContaining('--name: ') },
    })
    expect(await listAccounts(store.db, { limit: 50, offset: 0 })).toEqual(before)
  })

  test('create waits for the first start, which creates the first account', async ({ store }) => {
    const { code, err } = await inlet(store.url, 'accounts', 'create', '--name', 'acme')
    expect([code, err]).toEqual([1, expect.stringContaining('no account yet')])
    expect(await inlet(store.url, 'accounts', 'list')).toMatchObject({ code: 0, out: 'There are no accounts.\n' })
  })

  test('inlet keys --account manages the keys of one account', async ({ store }) => {
    const [, second] = [await anAccount(store), await anAccount(store)]
    const created = await inlet(store.url, 'keys', 'create', '--account', second, '--name', 'ci', '--scope', 'ingest')
    const key = await findApiKeyByHash(store.db, hashApiKey(created.out.split('\n')[0] ?? ''))
    expect(key?.account_id).toBe(second)
    const id = key?.id ?? ''
    expect((await inlet(store.url, 'keys', 'list', '--account', second)).out).toContain(id)
    expect((await inlet(store.url, 'keys', 'list')).out).toBe('There are no keys.\n')
    const { out: json } = await inlet(store.url, 'keys', 'list', '--account', second, '--json')
    expect(JSON.parse(json)).toMatchObject([{ id, revoked_at: null }])
    expect(json).not.toContain('hash')
    expect(await inlet(store.url, 'keys', 'revoke', id)).toMatchObject({ code: 1, err: 'no such API key\n' })
    expect(await inlet(store.url, 'keys', 'revoke', id, '--account', second)).toMatchObject({ code: 0 })
    expect(await inlet(store.url, 'keys', 'list', '--account', 'nobody')).toMatchObject({ code: 1, err: 'no such account\n' })
  })
})

test.each([
  ['accounts list'],
  ['accounts quota 4f8c1f0e-6a53-4c0e-9d3b-0000000000ac --endpoints 3'],
  ['accounts create --name acme'],
  ['keys list'],
  ['keys create --name ci --scope ingest'],
  ['commits rebuild'],
])('inlet %s creates no database where there is none', async (command) => {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-nowhere-'))
  try {
    const path = join(directory, 'data', 'inlet.db')
    const config = readConfig({ INLET_DATA_DIR: join(directory, 'data') })
    expect(await runCli(command.split(' '), { config })).toEqual({
      ...{ code: 1, out: '' },
      err: `there is no database at ${path}: set INLET_DATA_DIR or INLET_DATABASE_URL, or create it with a first start (npm run inlet -- start)\n`,
    })
    expect(await readdir(directory)).toEqual([])
  } finally {
    await rm(directory, { recursive: true })
  }
})
