/** The operator's accounts: creating, listing, renaming, suspending and resuming them, and what a suspended account can do. */
import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { signInLimits } from '#model/limits.ts'
import { updateAccount } from '#store/accounts/accounts.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import { type ApiClient, clientOf, createAccount, newRegion, operatorToken, useControl } from '../support/control.ts'
import { newLink, newPerson, TestBrowser } from '../support/people.ts'
import { RawClient } from '../support/raw-http.ts'
import { anEndpointWithNode } from '../support/set-up.ts'
import { aCommit, TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const control = useControl()

const operator = (): ApiClient => clientOf(control().call, operatorToken)
const definition = { columns: [{ name: 'event', type: 'VARCHAR', path: '$.event' }] }
const suspended = { status: 403, body: { error: 'account_suspended', detail: expect.stringContaining('operator') } }

const setStatus = async (id: string, status: 'active' | 'suspended') =>
  expect(await operator().patch(`/v1/accounts/${id}`, { status })).toMatchObject({ status: 200, body: { id, status } })

describe('POST /v1/accounts', () => {
  test('201 with a first key of every scope, which is shown once and works', async () => {
    const name = `acme ${newId()}`
    const { status, headers, body } = await operator().post('/v1/accounts', { name })
    expect({ status, body }).toMatchObject({ status: 201, body: { name, status: 'active', first_key: { revoked_at: null } } })
    expect(headers.get('cache-control')).toBe('no-store')
    const { api_key, ...key } = body.first_key
    expect(api_key).toMatch(/^ing_live_[0-9A-Za-z]{32}$/)
    for (const path of ['/v1/accounts', `/v1/accounts/${body.id}`])
      expect(JSON.stringify((await operator().get(path)).body)).not.toContain(api_key)
    const { body: token } = await control().call('POST', '/v1/token/exchange', { api_key, scope: 'admin' })
    const own = clientOf(control().call, token.access_token)
    expect((await own.get('/v1/keys')).body.items).toEqual([key])
    const { body: endpoint } = await own.post('/v1/endpoints', { region: newRegion() })
    expect((await own.get('/v1/endpoints')).body).toMatchObject({ total: 1, items: [{ id: endpoint.id }] })
  })

  test('409 for a name that is taken', async () => {
    const name = `acme ${newId()}`
    expect(await operator().post('/v1/accounts', { name })).toMatchObject({ status: 201 })
    expect(await operator().post('/v1/accounts', { name: ` ${name} ` })).toMatchObject({
      status: 409,
      body: { error: 'conflict' },
    })
  })

  test.each([[{}], [{ name: '' }], [{ name: 'x'.repeat(129) }], [{ name: 'a\nb' }], [{ name: 'acme', status: 'active' }]])(
    '422 for %j',
    async (body) => {
      expect(await operator().post('/v1/accounts', body)).toMatchObject({ status: 422, body: { error: 'validation_error' } })
    },
  )
})

describe('GET /v1/accounts', () => {
  test('200 lists accounts in pages, newest first', async () => {
    const [older, newer] = [await createAccount(control().call), await createAccount(control().call)]
    const { body } = await operator().get('/v1/accounts?limit=1')
    expect(body).toMatchObject({ items: [{ id: newer.account_id }], limit: 1, offset: 0, next_offset: 1 })
    expect((await operator().get('/v1/accounts?limit=1&offset=1')).body.items).toMatchObject([{ id: older.account_id }])
    expect(await operator().get('/v1/accounts?surplus=1')).toMatchObject({ status: 422 })
  })
})

describe('GET and PATCH /v1/accounts/{id}', () => {
  test('200 renames, 409 for a name that is taken, 404 for an unknown account', async () => {
    const [one, two] = [await createAccount(control().call), await createAccount(control().call)]
    const path = `/v1/accounts/${one.account_id}`
    const name = `renamed ${newId()}`
    const renamed = await operator().patch(path, { name })
    expect(renamed).toMatchObject({ status: 200, body: { id: one.account_id, name, status: 'active' } })
    expect(await operator().get(path)).toMatchObject({ status: 200, body: renamed.body })
    expect(await operator().patch(`/v1/accounts/${two.account_id}`, { name })).toMatchObject({ status: 409 })
    for (const body of [{ status: 'deleted' }, { id: newId() }, { name: null }])
      expect(await operator().patch(path, body)).toMatchObject({ status: 422 })
    expect(await operator().get(`/v1/accounts/${newId()}`)).toMatchObject({ status: 404 })
    expect(await operator().patch(`/v1/accounts/${newId()}`, { name: 'x' })).toMatchObject({ status: 404 })
  })
})

describe('POST /v1/accounts/{id}/invitations', () => {
  const linkIn = (url: string) => new URL(url).hash.replace('#link=', '')
  const role = 'owner'

  test('201 with a link for the first owner, which is shown once and is in the trail of the account', async () => {
    const { account_id } = await createAccount(control().call)
    const path = `/v1/accounts/${account_id}/invitations`
    const { status, headers, body } = await operator().post(path, { role, email: null })
    expect({ status, body }).toMatchObject({ status: 201, body: { role, created_by: 'operator' } })
    expect(headers.get('cache-control')).toBe('no-store')
    const owner = new TestBrowser(control(), account_id)
    const answer = await owner.send('POST', '/auth/sign-in/link', { link: linkIn(body.url) })
    expect(answer).toMatchObject({ status: 200 })
    expect(await owner.send('GET', '/v1/session')).toMatchObject({
      body: { person: { is_operator: false }, accounts: [{ account_id, role }] },
    })
    const { body: events } = await owner.send('GET', '/v1/audit-events?operation=createAccountInvitation')
    expect(events.items).toMatchObject([{ actor: 'operator', account_id, resource_id: body.id, address: null }])
    expect(JSON.stringify(events)).not.toContain(linkIn(body.url))
  })

  test('201 with the session of an operator who does not belong to the account; owners see and revoke the invitation', async () => {
    const { account_id } = await createAccount(control().call)
    const person = await newPerson(control(), { is_operator: true })
    const { status, body } = await person.send('POST', `/v1/accounts/${account_id}/invitations`, { role: 'viewer' })
    expect([status, body.created_by]).toEqual([201, `person:${person.person_id}`])
    const owner = await newPerson(control(), { account_id, role })
    expect((await owner.send('GET', '/v1/invitations')).body.items).toMatchObject([{ id: body.id, role: 'viewer' }])
    expect(await owner.send('DELETE', `/v1/invitations/${body.id}`)).toMatchObject({ status: 204 })
    const late = new TestBrowser(control())
    expect(await late.send('POST', '/auth/sign-in/link', { link: linkIn(body.url) })).toMatchObject({ status: 401 })
  })

  test('403 for the owner of an account, also with the ids of another', async () => {
    const [mine, theirs] = [await createAccount(control().call), await createAccount(control().call)]
    const owner = await newPerson(control(), { account_id: mine.account_id, role })
    for (const { account_id } of [mine, theirs])
      expect(await owner.send('POST', `/v1/accounts/${account_id}/invitations`, { role })).toMatchObject({ status: 403 })
  })

  test('404 for an unknown account, 422 for an unknown role, and a suspended account keeps it waiting', async () => {
    expect(await operator().post(`/v1/accounts/${newId()}/invitations`, { role })).toMatchObject({ status: 404 })
    const { account_id } = await createAccount(control().call)
    const path = `/v1/accounts/${account_id}/invitations`
    for (const body of [{}, { role: 'operator' }, { role, email: 'x' }, { role, account_id: newId() }])
      expect(await operator().post(path, body)).toMatchObject({ status: 422 })
    await setStatus(account_id, 'suspended')
    const { body } = await operator().post(path, { role })
    const enter = () => new TestBrowser(control()).send('POST', '/auth/sign-in/link', { link: linkIn(body.url) })
    expect(await enter()).toMatchObject({ status: 403, body: { detail: suspended.body.detail } })
    await setStatus(account_id, 'active')
    expect(await enter()).toMatchObject({ status: 200 })
  })

  test('409 beyond the bound of open invitations', async () => {
    const { account_id } = await createAccount(control().call)
    for (let made = 0; made < signInLimits.invitationsOfAccountMax; made++) await newLink(control(), { account_id, role })
    expect(await operator().post(`/v1/accounts/${account_id}/invitations`, { role })).toMatchObject({ status: 409 })
  })
})

describe('the weight of an account', () => {
  test('200 changes it, and its nodes see it at once', async () => {
    const account = await createAccount(control().call)
    const region = newRegion()
    const { body: endpoint } = await account.post('/v1/endpoints', { region })
    const node = await TestNode.register(control(), region)
    expect((await node.snapshot()).endpoints).toMatchObject([{ id: endpoint.id, account_weight: 1 }])
    const path = `/v1/accounts/${account.account_id}`
    expect(await operator().get(path)).toMatchObject({ status: 200, body: { weight: 1 } })
    const waiting = node.snapshot(20_000)
    expect(await operator().patch(path, { weight: 5 })).toMatchObject({ status: 200, body: { weight: 5, status: 'active' } })
    expect((await waiting).endpoints).toMatchObject([{ id: endpoint.id, account_weight: 5 }])
    for (const weight of [0, 1001, 1.5, null]) expect(await operator().patch(path, { weight })).toMatchObject({ status: 422 })
    expect(await operator().get(path)).toMatchObject({ body: { weight: 5 } })
  })
})

describe('a suspended account', () => {
  type Operations = Record<string, { readonly operationId: string; readonly 'x-scope': string }>

  test('can read everything and change nothing, with old and new tokens', async () => {
    const [account, other] = [await createAccount(control().call), await createAccount(control().call)]
    await setStatus(account.account_id, 'suspended')
    const { body: token } = await control().call('POST', '/v1/token/exchange', { api_key: account.api_key, scope: 'admin' })
    const { body: description } = await control().call('GET', '/openapi/openapi.json')
    const refused: string[] = []
    for (const [template, operations] of Object.entries<Operations>(description.paths)) {
      const path = template.replace(/\{\w+\}/g, newId())
      for (const [method, operation] of Object.entries(operations)) {
        if (!['admin', 'metrics', 'any'].includes(operation['x-scope'])) continue
        for (const client of [account, clientOf(control().call, token.access_token)]) {
          const send = { get: client.get, post: client.post, patch: (at: string) => client.patch(at, {}), delete: client.delete }
          const answer = await send[method as keyof typeof send](path)
          if (method !== 'get' && operation['x-scope'] === 'admin') expect(answer, operation.operationId).toMatchObject(suspended)
          else expect([200, 404, 422], operation.operationId).toContain(answer.status)
        }
        if (method !== 'get' && operation['x-scope'] === 'admin') refused.push(operation.operationId)
      }
    }
    expect(refused.length).toBeGreaterThan(20)
    expect(await account.as('metrics').get('/v1/endpoints')).toMatchObject({ status: 200 })
    expect(await account.as('metrics').post('/v1/keys', {})).toMatchObject({ status: 403, body: { error: 'forbidden' } })
    const samples = ['{"event":"a"}']
    expect(await account.as('ingest').post('/v1/views/preview', { definition, samples })).toMatchObject({ status: 200 })
    expect(await other.post('/v1/views', { name: 'events', definition })).toMatchObject({ status: 201 })

    await setStatus(account.account_id, 'active')
    expect(await account.post('/v1/views', { name: 'events', definition })).toMatchObject({ status: 201 })
  })

  test('is known to its nodes at once; its keys and destinations stay there, and what was delivered is recorded', async () => {
    const account = await createAccount(control().call)
    const { destination: lake, endpoint, node } = await anEndpointWithNode(control(), account)
    const before = await node.snapshot()
    expect(before.endpoints).toMatchObject([{ id: endpoint.id, account_suspended: false }])

    const waiting = node.snapshot(20_000)
    await setStatus(account.account_id, 'suspended')
    const after = await waiting
    expect(after.endpoints).toMatchObject([{ id: endpoint.id, account_suspended: true, destination: { id: lake.id } }])
    expect(after.keys).toEqual(before.keys)
    const commit = aCommit(node.id, endpoint.id, 0)
    expect(await node.call('POST', 'commits', { commits: [commit] })).toMatchObject({ status: 200, body: { new: 1 } })
    expect((await account.get(`/v1/endpoints/${endpoint.id}/commits`)).body.items).toMatchObject([{ id: commit.id }])
  })

  test('has paused endpoints with a reason, also in the filter', async () => {
    const account = await createAccount(control().call)
    const region = newRegion()
    const ids = [
      (await account.post('/v1/endpoints', { region })).body.id,
      (await account.post('/v1/endpoints', { region })).body.id,
    ]
    const [active, paused] = ids
    await account.post(`/v1/endpoints/${paused}/pause`)
    const listed = async (status: string) => {
      const { body } = await account.get(`/v1/endpoints?status=${status}`)
      expect(body.total).toBe(body.items.length)
      return body.items.map(({ id }: { id: string }) => id).toSorted()
    }
    expect([await listed('paused'), await listed('deploying')]).toEqual([[paused], [active]])
    await setStatus(account.account_id, 'suspended')
    expect([await listed('paused'), await listed('deploying')]).toEqual([ids.toSorted(), []])
    expect((await account.get(`/v1/endpoints/${active}`)).body).toMatchObject({
      ...{ status: 'paused', status_reasons: [expect.stringContaining('the account is suspended')] },
    })
    await setStatus(account.account_id, 'active')
    expect([await listed('paused'), await listed('deploying')]).toEqual([[paused], [active]])
  })

  test('is suspended within a second or so if another process did it, such as `inlet accounts suspend`', async () => {
    const account = await createAccount(control().call)
    await inNewEpoch(control().store, (db) => updateAccount(db, account.account_id, { status: 'suspended' }))
    await until('the suspension', async () => (await account.post('/v1/keys', {})).status === 403)
    expect(await account.post('/v1/keys', {})).toMatchObject(suspended)
  })

  test('changes nothing if it is suspended while the body arrives, or by another process just now', async () => {
    const { url, store, call } = control()
    const account = await createAccount(call)
    const { body: token } = await call('POST', '/v1/token/exchange', { api_key: account.api_key, scope: 'admin' })
    const authorization = `Bearer ${token.access_token}`
    const key = JSON.stringify({ name: 'minted', scopes: ['admin'] })
    await using slow = await RawClient.connect(url)
    await slow.send(
      `POST /v1/keys HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n` +
        `Expect: 100-continue\r\nContent-Length: ${key.length}\r\n\r\n`,
    )
    expect(await slow.answer()).toMatchObject({ status: 100 })
    await slow.send(key.slice(0, 5))
    await inNewEpoch(store, (db) => updateAccount(db, account.account_id, { status: 'suspended' }))
    expect(await account.post('/v1/keys', { name: 'minted', scopes: ['admin'] })).toMatchObject(suspended)
    expect(await account.post(`/v1/keys/${account.key_id}/revoke`)).toMatchObject(suspended)
    await slow.send(key.slice(5))
    expect(await slow.answer()).toMatchObject({ status: 403, json: { error: 'account_suspended' } })
    expect((await account.get('/v1/keys')).body.items).toMatchObject([{ revoked_at: null }])
  })
})
