import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { useControl } from '../support/control.ts'

const control = useControl()

describe('POST /v1/keys', () => {
  test('201 returns the key once, and the key works', async () => {
    const account = await control().newAccount()
    const answer = await account.post('/v1/keys', { name: 'sensors', scopes: ['ingest'] })
    expect(answer).toMatchObject({ status: 201, body: { name: 'sensors', scopes: ['ingest'], revoked_at: null } })
    expect(answer.body.api_key).toMatch(/^ing_live_[0-9A-Za-z]{32}$/)
    expect(answer.body.api_key.startsWith(answer.body.prefix)).toBe(true)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(await control().call('POST', '/v1/token/exchange', { api_key: answer.body.api_key })).toMatchObject({ status: 200 })
    expect(JSON.stringify((await account.get('/v1/keys')).body)).not.toContain(answer.body.api_key)
  })

  test('401, 403, 422', async () => {
    const account = await control().newAccount()
    const body = { name: 'x', scopes: ['ingest'] }
    expect(await account.as('nobody').post('/v1/keys', body)).toMatchObject({ status: 401 })
    expect(await account.as('metrics').post('/v1/keys', body)).toMatchObject({ status: 403 })
    const answer = await account.post('/v1/keys', { name: '', scopes: ['ingest', 'ingest'], secret: 'mine' })
    expect(answer.status).toBe(422)
    expect(answer.body.errors.map(({ path }: { path: string }) => path)).toEqual(['name', 'scopes', 'secret'])
  })
})

describe('GET /v1/keys', () => {
  test('200 includes revoked keys; 401; 403', async () => {
    const account = await control().newAccount()
    const { body: key } = await account.post('/v1/keys', { name: 'gone', scopes: ['metrics'] })
    await account.post(`/v1/keys/${key.id}/revoke`)
    const { status, body } = await account.get('/v1/keys')
    expect(status).toBe(200)
    expect(body).toMatchObject({ total: 2, next_offset: null, items: [{}, {}] })
    expect(await account.get('/v1/keys?limit=1')).toMatchObject({ status: 200, body: { total: 2, next_offset: 1, items: [{}] } })
    expect(await account.get('/v1/keys?limit=0')).toMatchObject({ status: 422, body: { errors: [{ path: 'limit' }] } })
    expect(body.items.find(({ id }: { id: string }) => id === key.id).revoked_at).toMatch(/Z$/)
    expect(await account.as('nobody').get('/v1/keys')).toMatchObject({ status: 401 })
    expect(await account.as('metrics').get('/v1/keys')).toMatchObject({ status: 403 })
  })
})

describe('POST /v1/keys/{id}/revoke', () => {
  test('200 is permanent and idempotent', async () => {
    const account = await control().newAccount()
    const { body: key } = await account.post('/v1/keys', { name: 'k', scopes: ['admin'] })
    const first = await account.post(`/v1/keys/${key.id}/revoke`)
    expect(first).toMatchObject({ status: 200, body: { id: key.id, revoked_at: expect.stringMatching(/Z$/) } })
    expect(await account.post(`/v1/keys/${key.id}/revoke`)).toMatchObject({ status: 200, body: first.body })
    expect(await control().call('POST', '/v1/token/exchange', { api_key: key.api_key })).toMatchObject({ status: 401 })
  })

  test('401, 403, 404', async () => {
    const account = await control().newAccount()
    const path = `/v1/keys/${account.key_id}/revoke`
    expect(await account.as('nobody').post(path)).toMatchObject({ status: 401 })
    expect(await account.as('ingest').post(path)).toMatchObject({ status: 403 })
    expect(await account.post(`/v1/keys/${newId()}/revoke`)).toMatchObject({ status: 404 })
  })
})
