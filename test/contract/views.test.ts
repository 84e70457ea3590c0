import { describe, expect } from 'vitest'
import { newRegion, type TestAccount, testWithAccount, useControl } from '../support/control.ts'

const control = useControl()
const test = testWithAccount(control)

const definition = { columns: [{ name: 'event', type: 'VARCHAR', path: '$.event' }], filters: [{ condition: "event != 'x'" }] }

async function made(account: TestAccount, more: object = {}) {
  const { status, body } = await account.post('/v1/views', { name: 'events', definition, ...more })
  expect(status).toBe(201)
  return body
}

async function published(account: TestAccount, more: object = {}) {
  const { id } = await made(account, more)
  const { status, body } = await account.post(`/v1/views/${id}/publish`)
  expect(status).toBe(200)
  return body
}

describe('POST /v1/views', () => {
  test('201 is a draft, version 1, with defaults', async ({ account }) => {
    expect(await account.post('/v1/views', { name: 'events', definition })).toMatchObject({
      status: 201,
      body: {
        ...{
          name: 'events',
          version: 1,
          definition,
          format: 'json',
          status: 'draft',
          description: '',
          tags: [],
          published_at: null,
        },
        created_by: `key:${account.key_id}`,
      },
    })
  })

  test('201 with all fields; the same name in another account', async () => {
    const given = { name: 'events', definition, description: 'd', format: 'yaml', tags: ['a', 'b'] }
    expect(await made(await control().newAccount(), given)).toMatchObject(given)
    expect(await made(await control().newAccount(), given)).toMatchObject(given)
  })

  test.each([
    [{ definition }, ['name']],
    [{ name: 'Events', definition }, ['name']],
    [{ name: '1st', definition }, ['name']],
    [{ name: 'a' }, ['definition']],
    [{ name: 'a', definition: { columns: [] } }, ['definition.columns']],
    [{ name: 'a', definition, format: 'xml' }, ['format']],
    [{ name: 'a', definition, tags: 'x' }, ['tags']],
    [{ name: 'a', definition, owner: 'me' }, ['owner']],
    [
      { name: 'a', definition: { columns: [{ name: 'c', type: 'VARCHAR', path: '$.a', nullable: true }] } },
      ['definition.columns.0.nullable'],
    ],
    [{ name: 'a', definition: { columns: [{ name: 'c', type: 'NUMBER', path: '$.a' }] } }, ['definition.columns.0.type']],
    [{ name: 'a', definition: { columns: [{ name: 'c', type: 'VARCHAR', path: 'a' }] } }, ['definition.columns.0.path']],
    [
      { name: 'a', definition: { ...definition, filters: [{ condition: "read_text('/etc/passwd') = ''" }] } },
      ['definition.filters.0.condition'],
    ],
    [{ name: 'a', definition: { ...definition, filters: [{ condition: 'nosuch > 1' }] } }, ['definition.filters.0.condition']],
  ])('422 for %j names %j', async (body, paths) => {
    const answer = await (await control().newAccount()).post('/v1/views', body)
    expect(answer).toMatchObject({ status: 422, body: { error: 'validation_error' } })
    expect(answer.body.errors.map(({ path }: { path: string }) => path)).toEqual(paths)
  })

  test('422 for a name that the account already uses, also once the first version is deleted', async ({ account }) => {
    const { id } = await made(account)
    const refused = { status: 422, body: { errors: [{ path: 'name' }] } }
    expect(await account.post('/v1/views', { name: 'events', definition })).toMatchObject(refused)
    await account.post(`/v1/views/${id}/versions`)
    expect(await account.delete(`/v1/views/${id}`)).toMatchObject({ status: 204 })
    expect(await account.post('/v1/views', { name: 'events', definition })).toMatchObject(refused)
  })
})

describe('GET /v1/views', () => {
  test('200 lists published views by default, for any token', async ({ account }) => {
    await made(account, { name: 'draft' })
    await published(account, { name: 'published' })
    const { id } = await published(account, { name: 'archived' })
    await account.post(`/v1/views/${id}/archive`)
    const names = async (query: string) =>
      (await account.as('ingest').get(`/v1/views${query}`)).body.items.map(({ name }: { name: string }) => name).toSorted()
    expect(await names('')).toEqual(['published'])
    expect(await names('?status=draft')).toEqual(['draft'])
    expect(await names('?status=archived')).toEqual(['archived'])
    expect(await names('?status=all')).toEqual(['archived', 'draft', 'published'])
  })

  test('200 filters by name and by all tags', async ({ account }) => {
    await published(account, { name: 'one', tags: ['a', 'b'] })
    await published(account, { name: 'two', tags: ['b'] })
    await published(account, { name: 'odd', tags: ['100%', "o'clock", 'B'] })
    const names = async (query: string) =>
      (await account.get(`/v1/views?${query}`)).body.items.map(({ name }: { name: string }) => name).toSorted()
    expect(await names('name=two')).toEqual(['two'])
    expect(await names('name=tw')).toEqual([])
    expect(await names('tag=b')).toEqual(['one', 'two'])
    expect(await names('tag=a&tag=b')).toEqual(['one'])
    expect(await names('tag=c')).toEqual([])
    expect(await names('tag=B')).toEqual(['odd'])
    expect(await names("tag=100%25&tag=o'clock")).toEqual(['odd'])
    expect(await names('tag=100_')).toEqual([])
  })

  test('200 pages newest first, and counts the endpoints that use a view', async ({ account }) => {
    const { id } = await published(account, { name: 'used' })
    control().clock.advance(1)
    await published(account, { name: 'idle' })
    const { body: endpoint } = await account.post('/v1/endpoints', { region: newRegion() })
    await account.post(`/v1/endpoints/${endpoint.id}/views`, { view_id: id })
    const answer = await account.get('/v1/views?limit=1')
    expect(answer).toMatchObject({ status: 200, body: { items: [{ name: 'idle' }], total: 2, limit: 1, next_offset: 1 } })
    expect((await account.get('/v1/views')).body.items).toMatchObject([
      { name: 'idle', usage_count: 0 },
      { name: 'used', usage_count: 1 },
    ])
  })

  test('422 names each invalid parameter', async ({ account }) => {
    expect(await account.get('/v1/views?status=gone&limit=500')).toMatchObject({
      status: 422,
      body: {
        errors: expect.arrayContaining([expect.objectContaining({ path: 'status' }), expect.objectContaining({ path: 'limit' })]),
      },
    })
  })
})

describe('GET /v1/views/{id}', () => {
  test('200 has all versions of the view and the endpoints of this one', async ({ account }) => {
    const first = await published(account)
    const { body: second } = await account.post(`/v1/views/${first.id}/versions`)
    const { body: endpoint } = await account.post('/v1/endpoints', { region: 'loc', name: 'checkout' })
    const { body: binding } = await account.post(`/v1/endpoints/${endpoint.id}/views`, { view_id: first.id, is_required: true })
    const answer = await account.as('metrics').get(`/v1/views/${first.id}`)
    expect(answer).toMatchObject({
      status: 200,
      body: {
        id: first.id,
        versions: [
          { id: second.id, version: 2, status: 'draft', published_at: null },
          { id: first.id, version: 1, status: 'published', published_at: first.published_at },
        ],
        endpoints: [
          {
            id: endpoint.id,
            endpoint_name: 'checkout',
            region: 'loc',
            binding_id: binding.id,
            is_required: true,
            canary_start_ts: null,
          },
        ],
      },
    })
    expect(answer.body).not.toHaveProperty('usage_count')
    expect((await account.get(`/v1/views/${second.id}`)).body.endpoints).toEqual([])
  })
})

describe('PATCH /v1/views/{id}', () => {
  test('200 changes a draft', async ({ account }) => {
    const { id } = await made(account, { tags: ['old'] })
    const change = {
      description: 'new',
      tags: ['a'],
      definition: { columns: [{ name: 'n', type: 'DOUBLE', path: '$.n', cast_failures: 'dlq' }] },
    }
    const changed = { ...change, name: 'events', format: 'json', status: 'draft' }
    expect(await account.patch(`/v1/views/${id}`, change)).toMatchObject({ status: 200, body: changed })
    expect(await account.get('/v1/views?status=all&tag=a')).toMatchObject({ body: { total: 1 } })
    expect(await account.get('/v1/views?status=all&tag=old')).toMatchObject({ body: { total: 0 } })
    expect(await account.patch(`/v1/views/${id}`, {})).toMatchObject({ status: 200, body: changed })
  })

  test('422 for a published view, a bad definition, and an unknown field', async ({ account }) => {
    const { id } = await made(account)
    const path = `/v1/views/${id}`
    expect(await account.patch(path, { name: 'other' })).toMatchObject({ status: 422, body: { errors: [{ path: 'name' }] } })
    const bad = { columns: [{ name: 'c', type: 'NUMBER', path: '$.a' }] }
    expect(await account.patch(path, { definition: bad })).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'definition.columns.0.type' }] },
    })
    await account.post(`${path}/publish`)
    expect(await account.patch(path, { description: 'x' })).toMatchObject({ status: 422 })
    expect(await account.patch(path, { definition })).toMatchObject({ status: 422 })
  })
})

describe('DELETE /v1/views/{id}', () => {
  test('204 for a draft, then 404; 422 if published or archived', async ({ account }) => {
    const draft = await made(account, { name: 'draft' })
    expect(await account.delete(`/v1/views/${draft.id}`)).toMatchObject({ status: 204 })
    expect(await account.delete(`/v1/views/${draft.id}`)).toMatchObject({ status: 404 })
    const { id } = await published(account)
    expect(await account.delete(`/v1/views/${id}`)).toMatchObject({ status: 422, body: { error: 'validation_error' } })
    await account.post(`/v1/views/${id}/archive`)
    expect(await account.delete(`/v1/views/${id}`)).toMatchObject({ status: 422 })
  })
})

describe('POST /v1/views/{id}/publish', () => {
  test('reads no body: an empty one is fine, and one with fields is refused', async ({ account }) => {
    const path = `/v1/views/${(await made(account)).id}/publish`
    expect(await account.post(path, { force: true })).toMatchObject({
      status: 422,
      body: { detail: expect.stringContaining('no body') },
    })
    expect(await account.post(path, {})).toMatchObject({ status: 200 })
  })

  test('200 once, then 422', async ({ account }) => {
    const { id } = await made(account)
    const answer = await account.post(`/v1/views/${id}/publish`)
    expect(answer).toMatchObject({ status: 200, body: { status: 'published', published_at: expect.any(String) } })
    expect(await account.post(`/v1/views/${id}/publish`)).toMatchObject({ status: 422 })
  })

  test('200 with warnings about names, as when it was created and changed', async ({ account }) => {
    const reserved = { columns: [{ name: 'at', type: 'TIMESTAMP', path: '$.at' }] }
    const warnings = [{ path: 'definition.columns.0.name', code: 'reserved_word', message: expect.stringContaining('BigQuery') }]
    const { id, ...created } = await made(account, { definition: reserved })
    expect(created.warnings).toEqual(warnings)
    expect(await account.patch(`/v1/views/${id}`, { definition: reserved })).toMatchObject({ status: 200, body: { warnings } })
    expect(await account.patch(`/v1/views/${id}`, { tags: ['a'] })).toMatchObject({ status: 200, body: { warnings: [] } })
    expect(await account.post(`/v1/views/${id}/publish`)).toMatchObject({ status: 200, body: { warnings } })
  })

  test('200 with a warning if lists hold NULLs that the version before the choice leaves out', async ({ account }) => {
    const skus = { columns: [{ name: 'skus', type: 'VARCHAR[]', path: '$.items[*].sku' }] }
    const first = await published(account, { definition: skus })
    expect(first).toMatchObject({ definition: { ...skus, lists: 'aligned' }, warnings: [] })
    const older = { definition: JSON.stringify(skus) }
    await control().store.db.updateTable('views').set(older).where('id', '=', first.id).execute()
    expect(await account.get(`/v1/views/${first.id}`)).toMatchObject({ body: { definition: skus } })
    const publishNext = async (change?: object) => {
      const { body } = await account.post(`/v1/views/${first.id}/versions`, { copy_from_version: 1 })
      if (change !== undefined) await account.patch(`/v1/views/${body.id}`, change)
      return (await account.post(`/v1/views/${body.id}/publish`)).body
    }
    expect(await publishNext()).toMatchObject({
      definition: { ...skus, lists: 'aligned' },
      warnings: [{ path: 'definition.lists', code: 'aligned_lists', message: expect.stringContaining('version 1') }],
    })
    expect(await publishNext({ definition: skus })).toMatchObject({ definition: { lists: 'aligned' }, warnings: [] })
    const packed = { ...skus, lists: 'packed' }
    expect(await publishNext({ definition: packed })).toMatchObject({ definition: packed, warnings: [] })
  })

  test('422 for a draft with the name of the folders, which was allowed when it was created', async ({ account }) => {
    const { id } = await made(account)
    const taken = { columns: [{ name: 'Dt', type: 'DATE', path: '$.dt' }] }
    await control()
      .store.db.updateTable('views')
      .set({ definition: JSON.stringify(taken) })
      .where('id', '=', id)
      .execute()
    const errors = [{ path: 'definition.columns.0.name', message: expect.stringContaining('(dt=2026-11-20)') }]
    expect(await account.post(`/v1/views/${id}/publish`)).toMatchObject({ status: 422, body: { errors } })
    expect(await account.post('/v1/views', { name: 'x', definition: taken })).toMatchObject({ status: 422, body: { errors } })
    expect(await account.post('/v1/views/preview', { definition: taken, samples: ['{}'] })).toMatchObject({
      ...{ status: 422, body: { errors } },
    })
    expect(await account.get(`/v1/views/${id}`)).toMatchObject({ status: 200, body: { definition: taken } })
  })

  test('422 for text as a condition, which published versions may have', async ({ account }) => {
    const columns = [
      { name: 'state', type: 'VARCHAR', path: '$.state' },
      { name: 'amount', type: 'DOUBLE', path: '$.amount' },
    ]
    const loose = { columns, filters: [{ condition: 'amount > 1 AND state' }] }
    const { id } = await published(account)
    const older = { definition: JSON.stringify(loose) }
    await control().store.db.updateTable('views').set(older).where('id', '=', id).execute()
    const message = expect.stringMatching(/^uses "state", which is text, as a condition: compare it/)
    const excerpt = `amount > 1 AND state\n${' '.repeat(15)}^`
    const refused = { status: 422, body: { errors: [{ path: 'definition.filters.0.condition', message, excerpt }] } }
    expect(await account.post('/v1/views', { name: 'x', definition: loose })).toMatchObject(refused)
    expect(await account.post('/v1/views/preview', { definition: loose, samples: ['{}'] })).toMatchObject(refused)
    const { body: next } = await account.post(`/v1/views/${id}/versions`, { copy_from_version: 1 })
    expect(await account.patch(`/v1/views/${next.id}`, { definition: loose })).toMatchObject(refused)
    expect(await account.post(`/v1/views/${next.id}/publish`)).toMatchObject(refused)
    expect(await account.get(`/v1/views/${id}`)).toMatchObject({ status: 200, body: { definition: loose } })
  })

  test('one of concurrent publishing and deleting succeeds', async ({ account }) => {
    for (let round = 0; round < 10; round += 1) {
      const { id } = await made(account, { name: `round_${round}` })
      const both = [account.post(`/v1/views/${id}/publish`), account.delete(`/v1/views/${id}`)]
      const [publication, deletion] = (await Promise.all(both)).map(({ status }) => status)
      expect([
        [200, 422],
        [404, 204],
      ]).toContainEqual([publication, deletion])
    }
  })

  test('one of ten concurrent requests succeeds', async ({ account }) => {
    const { id } = await made(account)
    const all = await Promise.all(Array.from({ length: 10 }, () => account.post(`/v1/views/${id}/publish`)))
    expect(all.map(({ status }) => status).toSorted()).toEqual([200, ...Array(9).fill(422)])
  })
})

describe('POST /v1/views/{id}/versions', () => {
  test('201 copies the latest version, or the given one', async ({ account }) => {
    const first = await published(account, { description: 'first', tags: ['t'] })
    const path = `/v1/views/${first.id}/versions`
    const second = await account.post(path)
    expect(second).toMatchObject({
      status: 201,
      body: { name: 'events', version: 2, status: 'draft', definition, description: 'first', tags: ['t'], published_at: null },
    })
    expect(second.body.id).not.toBe(first.id)
    const other = { columns: [{ name: 'n', type: 'DOUBLE', path: '$.n' }] }
    await account.patch(`/v1/views/${second.body.id}`, { definition: other })
    expect(await account.post(path, {})).toMatchObject({ status: 201, body: { version: 3, definition: other } })
    expect(
      await account.post(`/v1/views/${second.body.id}/versions`, { copy_from_version: 1, description: 'again' }),
    ).toMatchObject({
      status: 201,
      body: { version: 4, definition, description: 'again' },
    })
  })

  test('201 numbers ten concurrent versions differently', async ({ account }) => {
    const { id } = await published(account)
    const all = await Promise.all(Array.from({ length: 10 }, () => account.post(`/v1/views/${id}/versions`)))
    expect(all.map(({ body }) => body.version).toSorted((a, b) => a - b)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  })

  test('422 for a version that does not exist, and a body that is no object', async ({ account }) => {
    const { id } = await published(account)
    const path = `/v1/views/${id}/versions`
    expect(await account.post(path, 'null')).toMatchObject({ status: 422, body: { detail: expect.stringContaining('null') } })
    for (const copy_from_version of [9, 0, 'one']) {
      expect(await account.post(path, { copy_from_version })).toMatchObject({
        status: 422,
        body: { errors: [{ path: 'copy_from_version' }] },
      })
    }
  })
})

describe('POST /v1/views/{id}/archive', () => {
  test('200 detaches the view everywhere, and prevents attaching it again', async ({ account }) => {
    const { id } = await published(account)
    const endpoints = []
    for (const region of ['loc', 'abc']) endpoints.push((await account.post('/v1/endpoints', { region })).body)
    for (const endpoint of endpoints) await account.post(`/v1/endpoints/${endpoint.id}/views`, { view_id: id })
    expect(await account.post(`/v1/views/${id}/archive`)).toMatchObject({ status: 200, body: { status: 'archived' } })
    for (const endpoint of endpoints) {
      const { body } = await account.get(`/v1/endpoints/${endpoint.id}/views`)
      expect(body.items).toMatchObject([{ status: 'detached', deactivated_at: expect.any(String) }])
    }
    const again = await account.post(`/v1/endpoints/${endpoints[0].id}/views`, { view_id: id })
    expect(again).toMatchObject({ status: 422, body: { errors: [{ path: 'view_id' }] } })
  })

  test('422 unless it is published; nothing changes an archived one', async ({ account }) => {
    const { id } = await made(account)
    const path = `/v1/views/${id}`
    const refused = (status: string) => ({ status: 422, body: { detail: expect.stringContaining(`this version is ${status}`) } })
    expect(await account.post(`${path}/archive`)).toMatchObject(refused('draft'))
    await account.post(`${path}/publish`)
    await account.post(`${path}/archive`)
    for (const verb of ['archive', 'publish']) expect(await account.post(`${path}/${verb}`)).toMatchObject(refused('archived'))
    expect(await account.patch(path, { description: 'x' })).toMatchObject({ status: 422 })
  })
})
