/** Secrets of an account: they can be set, and never read. */
import { randomBytes } from 'node:crypto'
import { describe, expect } from 'vitest'
import { newId } from '#model/id.ts'
import { secretLimits } from '#model/limits.ts'
import { type TestAccount, testWithAccount, useControl } from '../support/control.ts'
import { aPublishedView } from '../support/set-up.ts'

const control = useControl()
const test = testWithAccount(control)

const value = 'a value that nobody may see'
const hashing = (secret: string) => ({
  columns: [
    { name: 'email', type: 'VARCHAR', path: '$.email', hidden: true },
    { name: 'person', type: 'VARCHAR', value: `hmac_sha256('${secret}', email)` },
  ],
})

async function published(account: TestAccount, secret = 'email_key') {
  const { body: created } = await account.post('/v1/secrets', { name: secret, value })
  const view = await aPublishedView(account, 'people', hashing(secret))
  return { secret: created, view }
}

describe('POST /v1/secrets', () => {
  test('201 returns a value only if Inlet made it, and that once', async ({ account }) => {
    const given = await account.post('/v1/secrets', { name: 'email_key', value })
    expect(given).toMatchObject({ status: 201, body: { name: 'email_key', rotated_at: null, used_by: [] } })
    expect(given.body).not.toHaveProperty('value')
    expect(given.headers.get('cache-control')).toBe('no-store')
    const made = await account.post('/v1/secrets', { name: 'made' })
    expect(Buffer.from(made.body.value, 'base64')).toHaveLength(secretLimits.bytesMade)
    const listed = JSON.stringify((await account.get('/v1/secrets')).body)
    expect(listed).toContain('email_key')
    for (const text of [value, made.body.value]) expect(listed).not.toContain(text)
  })

  test('409 for a name that is taken, and beyond the most', async ({ account }) => {
    await account.post('/v1/secrets', { name: 'k0' })
    expect(await account.post('/v1/secrets', { name: 'k0' })).toMatchObject({ status: 409 })
    const more = Array.from({ length: secretLimits.perAccountMax - 1 }, (_, index) => ({ name: `k${index + 1}` }))
    for (const each of more) expect(await account.post('/v1/secrets', each)).toMatchObject({ status: 201 })
    expect(await account.post('/v1/secrets', { name: 'one_more' })).toMatchObject({ status: 409 })
  })

  test('422 says what is wrong without the value', async ({ account }) => {
    for (const body of [
      { name: 'k', value: 'short' },
      { name: 'k', value: `${'x'.repeat(secretLimits.bytesMax)}y` },
      { name: 'k', value: 'not base64 at all, is it', encoding: 'base64' },
      { name: 'k', value: '\ud800 is no character by itself' },
    ]) {
      const answer = await account.post('/v1/secrets', body)
      expect(answer).toMatchObject({ status: 422, body: { errors: [{ path: 'value' }] } })
      expect(JSON.stringify(answer.body)).not.toContain(body.value.slice(0, 12))
    }
    const named = await account.post('/v1/secrets', { name: 'Not a name', value })
    expect(named).toMatchObject({ status: 422, body: { errors: [{ path: 'name' }] } })
    expect(JSON.stringify(named.body)).not.toContain(value)
  })
})

describe('GET /v1/secrets', () => {
  test('200 says which views name each, and 403 without the scope admin', async ({ account }) => {
    await published(account)
    await account.post('/v1/secrets', { name: 'another' })
    const { status, body } = await account.get('/v1/secrets')
    expect(status).toBe(200)
    expect(body.items).toMatchObject([
      { name: 'another', used_by: [] },
      { name: 'email_key', used_by: ['people'] },
    ])
    expect(await account.as('metrics').get('/v1/secrets')).toMatchObject({ status: 403 })
  })
})

describe('POST /v1/secrets/{id}/rotate', () => {
  test('200 replaces the value, and nodes see that their views changed', async ({ account }) => {
    const { secret } = await published(account)
    const rotated = await account.post(`/v1/secrets/${secret.id}/rotate`, {
      value: randomBytes(32).toString('base64'),
      encoding: 'base64',
    })
    expect(rotated).toMatchObject({
      status: 200,
      body: { id: secret.id, rotated_at: expect.stringMatching(/Z$/), used_by: ['people'] },
    })
    expect(rotated.body).not.toHaveProperty('value')
    expect((await account.post(`/v1/secrets/${secret.id}/rotate`, {})).body.value).toMatch(/=$/)
  })

  test('404 for an unknown id, 422 for a value that is too short', async ({ account }) => {
    expect(await account.post(`/v1/secrets/${newId()}/rotate`, {})).toMatchObject({ status: 404 })
    const { body } = await account.post('/v1/secrets', { name: 'k' })
    expect(await account.post(`/v1/secrets/${body.id}/rotate`, { value: 'x' })).toMatchObject({ status: 422 })
  })
})

describe('DELETE /v1/secrets/{id}', () => {
  test('204 unless a published version names it: 409 says which', async ({ account }) => {
    const { secret, view } = await published(account)
    const refused = await account.delete(`/v1/secrets/${secret.id}`)
    expect(refused).toMatchObject({ status: 409, body: { detail: expect.stringContaining('people (version 1)') } })
    await account.post(`/v1/views/${view.id}/archive`)
    expect(await account.delete(`/v1/secrets/${secret.id}`)).toMatchObject({ status: 204 })
    expect(await account.delete(`/v1/secrets/${secret.id}`)).toMatchObject({ status: 404 })
  })
})

describe('a view that names a secret', () => {
  const unknown = {
    status: 422,
    body: {
      errors: [
        {
          path: 'definition.columns.1.value',
          code: 'unknown_name',
          message: expect.stringContaining('inlet secrets create'),
          excerpt: expect.stringContaining('^'),
        },
      ],
    },
  }

  test('422 when it is created, changed, previewed or published without that secret', async ({ account }) => {
    const { body: secret } = await account.post('/v1/secrets', { name: 'email_key', value })
    expect(await account.post('/v1/views', { name: 'v', definition: hashing('emial_key') })).toMatchObject(unknown)
    const { body: view } = await account.post('/v1/views', { name: 'v', definition: hashing('email_key') })
    expect(await account.patch(`/v1/views/${view.id}`, { definition: hashing('emial_key') })).toMatchObject(unknown)
    expect(await account.post('/v1/views/preview', { definition: hashing('emial_key'), samples: ['{}'] })).toMatchObject(unknown)
    // A draft does not keep it.
    expect(await account.delete(`/v1/secrets/${secret.id}`)).toMatchObject({ status: 204 })
    expect(await account.post(`/v1/views/${view.id}/publish`)).toMatchObject(unknown)
  })

  test('422 with the secret of another account', async ({ account }) => {
    const other = await control().newAccount()
    await other.post('/v1/secrets', { name: 'theirs', value })
    expect(await account.post('/v1/views', { name: 'v', definition: hashing('theirs') })).toMatchObject(unknown)
    expect(await account.post('/v1/views/preview', { definition: hashing('theirs'), samples: ['{}'] })).toMatchObject(unknown)
    expect((await account.get('/v1/secrets')).body.items).toEqual([])
  })

  test('a copy of a version needs it, too', async ({ account }) => {
    const { secret, view } = await published(account)
    const { body: next } = await account.post(`/v1/views/${view.id}/versions`)
    await account.post(`/v1/views/${next.id}/publish`)
    await account.post(`/v1/views/${view.id}/archive`)
    expect(await account.delete(`/v1/secrets/${secret.id}`)).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining('version 2') },
    })
  })

  test('a preview hashes with it for who may create views, and with a stand-in for others', async ({ account }) => {
    await account.post('/v1/secrets', { name: 'email_key', value })
    const body = { definition: hashing('email_key'), samples: ['{"email":"a@b.example"}'] }
    const hash = async (caller: Pick<TestAccount, 'post'>) => {
      const { body: result } = await caller.post('/v1/views/preview', body)
      expect(JSON.stringify(result)).not.toContain(value)
      return [result.rows[0].person.slice(0, 8), result.warnings.map(({ code }: { code: string }) => code)]
    }
    expect(await hash(account)).toEqual([expect.not.stringMatching('69600a10'), []])
    expect(await hash(account.as('metrics'))).toEqual(['69600a10', ['stand_in_secret']])
  })
})
