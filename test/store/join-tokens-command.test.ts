import { join } from 'node:path'
import { expect } from 'vitest'
import { parseJoinToken } from '#auth/join-token.ts'
import { hashApiKey } from '#auth/secrets.ts'
import { readConfig } from '#config/config.ts'
import { joinTokenPattern } from '#model/patterns.ts'
import { listAuditEvents } from '#store/accounts/audit-events.ts'
import { findJoinTokenId } from '#store/nodes/join-tokens.ts'
import { runCli } from '../support/cli.ts'
import { newStore, type TestStore } from '../support/databases.ts'
import { describeStores } from './fixtures.ts'

const chain = join(import.meta.dirname, '../fixtures/tls/chain.crt')

function inlet(url: string, args: readonly string[], environment: Record<string, string> = {}) {
  return runCli(['join-tokens', ...args], { config: readConfig({ INLET_DATABASE_URL: url, ...environment }) })
}

async function created(store: TestStore, args: readonly string[] = [], environment: Record<string, string> = {}) {
  const { code, out, err } = await inlet(store.url, ['create', '--name', 'rack 4', ...args], environment)
  expect([code, err]).toEqual([0, ''])
  const [token = ''] = out.split('\n')
  expect(token).toMatch(joinTokenPattern)
  const { secret, pin } = parseJoinToken(token) ?? { secret: '', pin: null }
  return { out, pin, secret, id: (await findJoinTokenId(store.db, hashApiKey(secret))) ?? '' }
}

describeStores('inlet join-tokens', (test, kind) => {
  test('create prints a token once, and how to use it', async ({ store }) => {
    const { out, pin, secret, id } = await created(store)
    expect(pin).toBeNull()
    expect(out).toContain(`Its id is ${id}.\n`)
    expect(out).toContain(
      'one node may join with it in any region:\n\n  inlet node --region REGION --control URL --join-token TOKEN\n',
    )
    const listed = await inlet(store.url, ['list'])
    expect(listed.out).toMatch(new RegExp(`^${id}  rack 4  any +active +0 of 1  `, 'm'))
    expect(listed.out).not.toContain(secret)
  })

  test('create takes region, number of nodes and lifetime, and pins the root of control', async ({ store }) => {
    const key = join(import.meta.dirname, '../fixtures/tls/chain.key')
    const environment = { INLET_NODE_API_CERTIFICATE_FILE: chain, INLET_NODE_API_KEY_FILE: key }
    const { out, pin } = await created(store, ['--region', 'fra', '--uses', 'any', '--ttl', '720h'], environment)
    expect(pin).toMatch(/^[\w-]{43}$/)
    expect(out).toContain('any number of nodes may join with it in region fra')
    expect(out).toContain('It pins the root certificate of control, so nodes need no CA file.')
    await created(store, ['--uses', '5'])
    const { out: listed } = await inlet(store.url, ['list'])
    expect(listed).toMatch(/ fra +active +0 +2/)
    expect(listed).toMatch(/ any +active +0 of 5 +2/)
  })

  test('revoke ends it, and every change is in the audit trail', async ({ store }) => {
    const { id } = await created(store)
    expect(await inlet(store.url, ['revoke', id])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^The join token "rack 4" was revoked at .*Z. No node has joined with it.\n$/),
    })
    expect((await inlet(store.url, ['list'])).out).toMatch(/ revoked +0 of 1 /)
    expect(await inlet(store.url, ['revoke', 'nobody'])).toMatchObject({ code: 1, err: 'no such join token\n' })
    const { items } = await listAuditEvents(store.db, undefined, { limit: 10 })
    expect(items.map(({ operation, resource_id, error }) => [operation, resource_id, error])).toEqual([
      ['revokeJoinToken', null, 'not_found'],
      ['revokeJoinToken', id, null],
      ['createJoinToken', id, null],
    ])
  })

  test.each([
    [['--region', 'Frankfurt'], '--region: must be a region code of three lowercase letters'],
    [['--uses', '0'], '--uses: must be'],
    [['--uses', 'many'], '--uses: must be a whole number, or any, not "many"'],
    [['--ttl', '1s'], '--ttl: must be from 60 s to 8760 h'],
  ])('create %j is wrong usage', async (args, message) => {
    await using store = await newStore(kind)
    expect(await inlet(store.url, ['create', '--name', 'x', ...args])).toMatchObject({
      code: 2,
      err: expect.stringContaining(message),
    })
  })
})
