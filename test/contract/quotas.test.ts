/** Quotas of accounts on what they create, as their operator sets them and as they see them. */
import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { quotaLimits } from '#model/limits.ts'
import { clientOf, createAccount, newRegion, operatorToken, type TestAccount, useControl } from '../support/control.ts'

const control = useControl()
const operator = () => clientOf(control().call, operatorToken)
const definition = { columns: [{ name: 'event', type: 'VARCHAR', path: '$.event' }] }

const setQuotas = async ({ account_id }: TestAccount, quotas: object) => {
  expect(await operator().patch(`/v1/accounts/${account_id}`, { quotas })).toMatchObject({ status: 200, body: { quotas } })
}

const exceeded = (quota: string) => ({
  status: 429,
  body: { error: 'quota_exceeded', retry: true, quota, detail: expect.stringContaining('ask the operator') },
})

const used = async (account: TestAccount, quota: string) => (await account.get('/v1/quotas')).body.quotas[quota].used

describe('GET /v1/quotas', () => {
  test('200 has every quota with its limit and use', async () => {
    const account = await createAccount(control().call)
    const region = newRegion()
    await account.post('/v1/endpoints', { region })
    const { body: view } = await account.post('/v1/views', { name: 'events', definition })
    await account.post(`/v1/views/${view.id}/versions`)
    const { endpoints, views, view_versions, api_keys, bytes_per_day, records_per_second } = quotaLimits
    const answer = await account.as('metrics').get('/v1/quotas')
    expect(answer).toMatchObject({
      status: 200,
      body: {
        account_id: account.account_id,
        weight: 1,
        quotas: {
          endpoints: { limit: endpoints.default, used: 1 },
          views: { limit: views.default, used: 1 },
          view_versions: { limit: view_versions.default, used: 2 },
          api_keys: { limit: api_keys.default, used: 1 },
          bytes_per_day: { limit: bytes_per_day.default, used: 0, resets_at: expect.stringMatching(/T00:00:00\.000Z$/) },
          records_per_second: { limit: records_per_second.default, used: 0 },
        },
      },
    })
    expect(await operator().get(`/v1/accounts/${account.account_id}/quotas`)).toMatchObject({ status: 200, body: answer.body })
  })

  test('the operator gets 404 for an unknown account', async () => {
    expect(await operator().get(`/v1/accounts/${newId()}/quotas`)).toMatchObject({ status: 404 })
  })
})

describe('PATCH /v1/accounts/{id} with quotas', () => {
  test('200 changes those that are given, and null restores the default', async () => {
    const { account_id } = await createAccount(control().call)
    const path = `/v1/accounts/${account_id}`
    const { body: before } = await operator().get(path)
    const { body: changed } = await operator().patch(path, { quotas: { endpoints: 3, views: 0 } })
    expect(changed).toEqual({ ...before, quotas: { ...before.quotas, endpoints: 3, views: 0 } })
    const { body: restored } = await operator().patch(path, { quotas: { endpoints: null } })
    expect(restored).toEqual({ ...before, quotas: { ...before.quotas, views: 0 } })
    expect((await operator().get(path)).body).toEqual(restored)
  })

  test.each([{ endpoints: -1 }, { records_per_second: 0 }, { bytes_per_day: 1e16 }, { api_keys: 1.5 }, { requests: 1 }, null])(
    '422 for %j',
    async (quotas) => {
      const { account_id } = await createAccount(control().call)
      expect(await operator().patch(`/v1/accounts/${account_id}`, { quotas })).toMatchObject({ status: 422 })
    },
  )
})

describe('a quota that is used up', () => {
  test('429 for another endpoint until one is deleted, with the name of the quota and Retry-After', async () => {
    const account = await createAccount(control().call)
    const region = newRegion()
    await setQuotas(account, { endpoints: 1 })
    const { body: first } = await account.post('/v1/endpoints', { region })
    const refused = await account.post('/v1/endpoints', { region })
    expect(refused).toMatchObject(exceeded('endpoints'))
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await account.get('/v1/endpoints')).body.total).toBe(1)
    expect(await account.delete(`/v1/endpoints/${first.id}?force=true`)).toMatchObject({ status: 200 })
    expect(await account.post('/v1/endpoints', { region })).toMatchObject({ status: 201 })
  })

  test('429 for another view until one is archived; new versions of a view are no other view', async () => {
    const account = await createAccount(control().call)
    const create = (name: string) => account.post('/v1/views', { name, definition })
    await setQuotas(account, { views: 1 })
    const { body: view } = await create('events')
    expect(await create('others')).toMatchObject(exceeded('views'))
    expect(await account.post(`/v1/views/${view.id}/publish`)).toMatchObject({ status: 200 })
    const { body: draft } = await account.post(`/v1/views/${view.id}/versions`)
    expect(await account.delete(`/v1/views/${draft.id}`)).toMatchObject({ status: 204 })
    await account.post(`/v1/views/${view.id}/archive`)
    expect(await used(account, 'views')).toBe(0)
    expect(await create('others')).toMatchObject({ status: 201 })
    expect(await account.post(`/v1/views/${view.id}/versions`)).toMatchObject(exceeded('views'))
  })

  test('429 for another version until a draft is deleted; archiving frees none', async () => {
    const account = await createAccount(control().call)
    const { body: view } = await account.post('/v1/views', { name: 'events', definition })
    await setQuotas(account, { view_versions: 2 })
    const { body: draft } = await account.post(`/v1/views/${view.id}/versions`)
    const next = () => account.post(`/v1/views/${view.id}/versions`)
    await account.post(`/v1/views/${view.id}/publish`)
    await account.post(`/v1/views/${view.id}/archive`)
    expect(await next()).toMatchObject(exceeded('view_versions'))
    expect(await account.post('/v1/views', { name: 'others', definition })).toMatchObject(exceeded('view_versions'))
    await account.delete(`/v1/views/${draft.id}`)
    expect(await next()).toMatchObject({ status: 201 })
  })

  test('429 for another key until one is revoked', async () => {
    const account = await createAccount(control().call)
    const create = () => account.post('/v1/keys', { name: 'spare', scopes: ['ingest'] })
    await setQuotas(account, { api_keys: 2 })
    const { body: key } = await create()
    expect(await create()).toMatchObject(exceeded('api_keys'))
    await account.post(`/v1/keys/${key.id}/revoke`)
    expect(await create()).toMatchObject({ status: 201 })
  })

  test('lets the account have what it has if the operator lowers it', async () => {
    const account = await createAccount(control().call)
    const { body: view } = await account.post('/v1/views', { name: 'events', definition })
    await setQuotas(account, { views: 0 })
    expect(await account.post(`/v1/views/${view.id}/versions`)).toMatchObject({ status: 201 })
    expect(await account.post('/v1/views', { name: 'others', definition })).toMatchObject(exceeded('views'))
  })

  test('is not exceeded by requests at once', async () => {
    const account = await createAccount(control().call)
    const region = newRegion()
    await setQuotas(account, { endpoints: 3, views: 3, api_keys: 4 })
    const create = [
      () => account.post('/v1/endpoints', { region }),
      () => account.post('/v1/views', { name: `events_${newId().slice(0, 8)}`, definition }),
      () => account.post('/v1/keys', { name: 'spare', scopes: ['ingest'] }),
    ]
    const answers = await Promise.all(create.flatMap((one) => Array.from({ length: 6 }, one)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(9)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(9)
    for (const quota of ['endpoints', 'views', 'api_keys']) expect(await used(account, quota)).toBe(quota === 'api_keys' ? 4 : 3)
  })
})
