import { rmSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { newApiKey } from '#auth/secrets.ts'
import { controlLimits } from '#control/limits.ts'
import { revokeApiKey } from '#store/accounts/api-keys.ts'
import { insertSigningKey, listSigningKeys } from '#store/accounts/signing-keys.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import { clientOf, newControl, type TestAccount, testWithAccount, useControl } from '../support/control.ts'
import { newDatabase } from '../support/databases.ts'
import { keyring } from '../support/keyring.ts'
import { RawClient } from '../support/raw-http.ts'
import { until } from '../support/until.ts'

const control = useControl()
const test = testWithAccount(control)

describe('POST /v1/token/exchange', () => {
  test('200 returns a token of one scope, valid for 15 minutes by default', async () => {
    const { call, newAccount } = control()
    const { api_key } = await newAccount()
    const answer = await call('POST', '/v1/token/exchange', { api_key })
    expect(answer).toMatchObject({ status: 200, body: { token_type: 'Bearer', expires_in: 900 } })
    const claims = JSON.parse(Buffer.from(answer.body.access_token.split('.')[1], 'base64url').toString())
    expect(claims).toMatchObject({ scope: 'ingest', iss: 'http://inlet.test', aud: 'http://inlet.test' })
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  test.each([
    ['1h', 3600],
    ['15m', 900],
    ['1m30s', 90],
    ['45s', 45],
  ])('200 with ttl %s', async (ttl, expires_in) => {
    const { api_key } = await control().newAccount()
    expect(await control().call('POST', '/v1/token/exchange', { api_key, ttl })).toMatchObject({
      status: 200,
      body: { expires_in },
    })
  })

  test('401 for an unknown or malformed key', async () => {
    for (const api_key of [newApiKey().secret, 'nonsense']) {
      const answer = await control().call('POST', '/v1/token/exchange', { api_key })
      expect(answer).toMatchObject({
        status: 401,
        body: { error: 'unauthorized', type: 'http://inlet.test/errors/unauthorized' },
      })
    }
  })

  test('401 takes the same time for any wrong key, long enough to slow down guessing', async ({ account }) => {
    await account.post(`/v1/keys/${account.key_id}/revoke`)
    for (const api_key of ['x', `ing_live_${'a'.repeat(32)}`, account.api_key]) {
      const startedAt = performance.now()
      expect(await control().call('POST', '/v1/token/exchange', { api_key })).toMatchObject({ status: 401 })
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(controlLimits.exchangeRejectionMs - 2)
    }
  })

  test('401 for a revoked key', async () => {
    const { store, clock, call, newAccount } = control()
    const { api_key, account_id, key_id } = await newAccount()
    await inNewEpoch(store, (db) => revokeApiKey(db, account_id, key_id, { at: clock.now(), endsAccess: true }))
    expect(await call('POST', '/v1/token/exchange', { api_key })).toMatchObject({ status: 401 })
  })

  test('403 for a scope that the key does not hold', async () => {
    const { api_key } = await control().newAccount(['ingest'])
    const answer = await control().call('POST', '/v1/token/exchange', { api_key, scope: 'admin' })
    expect(answer).toMatchObject({ status: 403, body: { error: 'forbidden' } })
  })

  test.each([
    [{}, 'api_key'],
    [{ api_key: 'x', scope: 'root' }, 'scope'],
    [{ api_key: 'x', ttl: '2h' }, 'ttl'],
    [{ api_key: 'x', ttl: '0s' }, 'ttl'],
    [{ api_key: 'x', ttl: 'soon' }, 'ttl'],
    [{ api_key: 'x', ttl: '' }, 'ttl'],
    [{ api_key: 'x', more: 1 }, 'more'],
    [{ api_key: 7 }, 'api_key'],
  ])('422 for %j names %s', async (body, path) => {
    const answer = await control().call('POST', '/v1/token/exchange', body)
    expect(answer).toMatchObject({ status: 422, body: { error: 'validation_error' } })
    expect(answer.body.errors.map((error: { path: string }) => error.path)).toEqual([path])
  })

  test('429 with Retry-After for too many requests from one address', async () => {
    await using limited = await newControl({ environment: { INLET_EXCHANGE_REQUESTS_PER_MINUTE: '2' } })
    const exchange = () => limited.call('POST', '/v1/token/exchange', { api_key: 'guess' })
    expect([(await exchange()).status, (await exchange()).status]).toEqual([401, 401])
    const answer = await exchange()
    expect(answer).toMatchObject({ status: 429, body: { error: 'too_many_requests', retry: true } })
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  })
})

describe('the last use of a key', () => {
  const lastUse = async (account: TestAccount, key: string) =>
    (await account.get('/v1/keys')).body.items.find(({ id }: { id: string }) => id === key).last_used_at

  test('is set by an exchange, and by each call with its token', async () => {
    const { clock, call, newAccount } = control()
    const account = await newAccount()
    const { body: key } = await account.post('/v1/keys', { name: 'dashboard', scopes: ['metrics'] })
    expect(key.last_used_at).toBeNull()
    const { body } = await call('POST', '/v1/token/exchange', { api_key: key.api_key, scope: 'metrics' })
    await until('the exchange to count', async () => (await lastUse(account, key.id)) !== null)
    const exchanged = await lastUse(account, key.id)
    clock.advance(61_000)
    expect(await clientOf(call, body.access_token).get('/v1/endpoints')).toMatchObject({ status: 200 })
    await until('the call to count', async () => (await lastUse(account, key.id)) > exchanged)
  })

  test('is not changed by what is refused', async () => {
    const { call, newAccount } = control()
    const account = await newAccount()
    const { body: key } = await account.post('/v1/keys', { name: 'sensor', scopes: ['ingest'] })
    const { body: other } = await account.post('/v1/keys', { name: 'other', scopes: ['ingest'] })
    expect(await call('POST', '/v1/token/exchange', { api_key: key.api_key, scope: 'admin' })).toMatchObject({ status: 403 })
    expect(await call('POST', '/v1/token/exchange', { api_key: other.api_key })).toMatchObject({ status: 200 })
    await until('another use to count', async () => (await lastUse(account, other.id)) !== null)
    expect(await lastUse(account, key.id)).toBeNull()
  })
})

describe('an access token', () => {
  test('lives on when its key is revoked, for 15 minutes at most, and creates no more keys', async () => {
    await using own = await newControl()
    const account = await own.newAccount()
    const keyPath = `/v1/keys/${account.key_id}/revoke`
    expect(await account.post(keyPath)).toMatchObject({ status: 200, body: { access_ended_at: null } })
    expect(await own.call('POST', '/v1/token/exchange', { api_key: account.api_key, scope: 'admin' })).toMatchObject({
      status: 401,
    })
    expect(await account.post('/v1/keys', { name: 'minted', scopes: ['admin'] })).toMatchObject({
      status: 401,
      body: { detail: expect.stringContaining('was revoked') },
    })
    expect(await account.post('/v1/endpoints', { region: 'loc' })).toMatchObject({ status: 201 })
    // The tokens of this account are valid for an hour.
    own.clock.advance(870_000)
    expect(await account.post('/v1/endpoints', { region: 'loc' })).toMatchObject({ status: 201 })
    expect((await account.get('/v1/keys')).body.total).toBe(1)
    own.clock.advance(30_000)
    for (const client of [account, account.as('metrics')]) expect(await client.get('/v1/views')).toMatchObject({ status: 401 })
  })

  test('changes nothing more if the 15 minutes end while the body arrives', async () => {
    await using own = await newControl()
    const account = await own.newAccount()
    const { body: exchanged } = await own.call('POST', '/v1/token/exchange', {
      api_key: account.api_key,
      scope: 'admin',
      ttl: '1h',
    })
    await account.post(`/v1/keys/${account.key_id}/revoke`)
    const body = JSON.stringify({ region: 'loc' })
    await using slow = await RawClient.connect(own.url)
    await slow.send(
      `POST /v1/endpoints HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${exchanged.access_token}\r\n` +
        `Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    expect(await slow.answer()).toMatchObject({ status: 100 })
    own.clock.advance(900_000)
    await slow.send(body)
    expect(await slow.answer()).toMatchObject({ status: 401 })
  })

  test('is refused at once when the access of its key is ended, also after its revocation', async ({ account }) => {
    const another = await account.post('/v1/keys', { name: 'another', scopes: ['admin'] })
    expect(await account.post(`/v1/keys/${account.key_id}/revoke`)).toMatchObject({ status: 200 })
    expect(await account.get('/v1/views')).toMatchObject({ status: 200 })
    expect(await account.post(`/v1/keys/${account.key_id}/revoke?now=true`)).toMatchObject({
      status: 200,
      body: { access_ended_at: expect.stringMatching(/Z$/) },
    })
    for (const client of [account, account.as('metrics'), account.as('ingest')]) {
      expect(await client.get('/v1/views')).toMatchObject({ status: 401, body: { error: 'unauthorized' } })
    }
    const minted = await account.post('/v1/keys', { name: 'minted', scopes: ['admin'] })
    expect(minted).toMatchObject({ status: 401, body: { detail: expect.stringContaining('was revoked') } })
    expect(await control().call('POST', '/v1/token/exchange', { api_key: another.body.api_key, scope: 'admin' })).toMatchObject({
      status: 200,
    })
  })

  test('is refused within the epoch poll when another process revokes its key', async () => {
    const { store, clock, newAccount } = control()
    const account = await newAccount()
    expect(await account.get('/v1/keys')).toMatchObject({ status: 200 })
    await inNewEpoch(store, (db) => revokeApiKey(db, account.account_id, account.key_id, { at: clock.now(), endsAccess: true }))
    await until('the token to be refused', async () => (await account.get('/v1/keys')).status === 401, 5_000)
  })

  test('changes nothing if its key is revoked while the body arrives, or by another process just now', async () => {
    const { url, store, clock, newAccount, call } = control()
    const account = await newAccount()
    const { body: thief } = await account.post('/v1/keys', { name: 'stolen', scopes: ['admin'] })
    const { body } = await call('POST', '/v1/token/exchange', { api_key: thief.api_key, scope: 'admin' })
    const authorization = `Bearer ${body.access_token}`
    const minted = JSON.stringify({ name: 'minted', scopes: ['admin'] })
    await using slow = await RawClient.connect(url)
    await slow.send(
      `POST /v1/keys HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n` +
        `Expect: 100-continue\r\nContent-Length: ${minted.length}\r\n\r\n`,
    )
    expect(await slow.answer()).toMatchObject({ status: 100 })
    await slow.send(minted.slice(0, 5))
    await inNewEpoch(store, (db) => revokeApiKey(db, account.account_id, thief.id, { at: clock.now(), endsAccess: true }))
    expect(await call('POST', '/v1/keys', minted, { authorization, 'content-type': 'application/json' })).toMatchObject({
      status: 401,
    })
    await slow.send(minted.slice(5))
    expect(await slow.answer()).toMatchObject({ status: 401 })
    expect((await account.get('/v1/keys')).body.total).toBe(2)
  })

  test('revokes its own key', async ({ account }) => {
    expect(await account.post(`/v1/keys/${account.key_id}/revoke`)).toMatchObject({ status: 200 })
  })

  test('expires', async () => {
    await using own = await newControl()
    const account = await own.newAccount()
    own.clock.advance(3_590_000)
    expect(await account.get('/v1/destinations')).toMatchObject({ status: 200 })
    own.clock.advance(20_000)
    expect(await account.get('/v1/destinations')).toMatchObject({ status: 401 })
  })

  test.each(['', 'Bearer', 'Bearer x', 'Bearer a b', 'Basic dXNlcjpwYXNz', 'Bearer eyJhbGciOiJub25lIn0.e30.'])(
    'is rejected as %j',
    async (authorization) => {
      const answer = await control().call('GET', '/v1/destinations', undefined, { authorization })
      expect(answer).toMatchObject({ status: 401, body: { error: 'unauthorized' } })
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    },
  )

  test('is rejected if an unknown key signed it', async () => {
    await using other = await newControl()
    const stranger = await other.newAccount()
    const { body } = await other.call('POST', '/v1/token/exchange', { api_key: stranger.api_key, scope: 'admin' })
    const authorization = `Bearer ${body.access_token}`
    expect(await control().call('GET', '/v1/destinations', undefined, { authorization })).toMatchObject({ status: 401 })
  })
})

describe('signing keys', () => {
  const month = 31 * 86_400_000

  test('GET /.well-known/jwks.json returns only public keys', async () => {
    const { body } = await control().call('GET', '/.well-known/jwks.json')
    expect(body.keys).toHaveLength(1)
    expect(Object.keys(body.keys[0]).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'])
  })

  test('a start replaces an old key, and the new one signs only after every process could load it', async () => {
    await using database = await newDatabase()
    const first = await newControl({ database })
    const [old] = await listSigningKeys(first.store.db, keyring)
    const aged = { ...old, kid: 'aged', created_at: new Date(Date.now() - month).toISOString() } as NonNullable<typeof old>
    await inNewEpoch(first.store, async (db) => {
      await db.deleteFrom('signing_keys').execute()
      await insertSigningKey(db, keyring, aged)
    })
    await first[Symbol.asyncDispose]()
    await using second = await newControl({ database })
    const kids = (await second.call('GET', '/.well-known/jwks.json')).body.keys.map(({ kid }: { kid: string }) => kid)
    expect(kids).toHaveLength(2)
    expect(kids[1]).toBe('aged')
    const account = await second.newAccount()
    const kidOf = async () => {
      const { body } = await second.call('POST', '/v1/token/exchange', { api_key: account.api_key })
      return JSON.parse(Buffer.from(body.access_token.split('.')[0], 'base64url').toString()).kid
    }
    expect(await kidOf()).toBe('aged')
    second.clock.advance(121_000)
    expect(await kidOf()).toBe(kids[0])
  })

  test('a start removes old keys only after their last token has expired', async () => {
    await using database = await newDatabase()
    const first = await newControl({ database })
    await first.app.stop(AbortSignal.timeout(5_000))
    const [signing] = await listSigningKeys(first.store.db, keyring)
    const keyOf = (kid: string, ageMs: number) => ({ ...signing, kid, created_at: new Date(Date.now() - ageMs).toISOString() })
    const replaceWith = (keys: readonly object[]) =>
      inNewEpoch(first.store, async (db) => {
        await db.deleteFrom('signing_keys').execute()
        for (const key of keys) await insertSigningKey(db, keyring, key as NonNullable<typeof signing>)
      })
    const kidsAfterStart = async () => {
      await using control = await newControl({ database })
      return (await control.call('GET', '/.well-known/jwks.json')).body.keys.map(({ kid }: { kid: string }) => kid)
    }
    const hour = 3_600_000
    await replaceWith([keyOf('newest', hour), keyOf('old', month)])
    expect(await kidsAfterStart()).toEqual(['newest', 'old'])
    await replaceWith([keyOf('newest', hour + 130_000), keyOf('old', month), keyOf('older', 2 * month)])
    expect(await kidsAfterStart()).toEqual(['newest'])
    await first.store.close()
    rmSync(first.directory, { recursive: true })
  })
})
