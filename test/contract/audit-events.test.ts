import { sql } from 'kysely'
import { describe, expect } from 'vitest'
import type { AuditEvent } from '#model/audit-event.ts'
import { newId } from '#model/id.ts'
import { auditLimits } from '#model/limits.ts'
import {
  type ApiClient,
  clientOf,
  createAccount,
  newControl,
  newRegion,
  operatorToken,
  testWithAccount,
  useControl,
} from '../support/control.ts'
import { credentialsOf, newPerson } from '../support/people.ts'
import { aPublishedView } from '../support/set-up.ts'
import { TestNode } from '../support/test-node.ts'

const control = useControl()
const test = testWithAccount(control)
const operator = () => clientOf(control().call, operatorToken)

const eventsOf = async (client: ApiClient, query = ''): Promise<readonly AuditEvent[]> => {
  const { status, body } = await client.get(`/v1/audit-events?limit=200${query}`)
  expect(status).toBe(200)
  return body.items
}
const operations = (events: readonly AuditEvent[]) => events.map(({ operation }) => operation)
const key = (name: string) => ({ name, scopes: ['ingest'] })

describe('GET /v1/audit-events', () => {
  test('200 lists changes newest first: who, from where, what, and with what result', async ({ account }) => {
    const { body: made, headers } = await account.post('/v1/keys', key('a name of a key'))
    await account.post(`/v1/keys/${made.id}/revoke`)
    await account.get('/v1/keys')
    const [revoked, created, ...more] = await eventsOf(account)
    expect(more).toEqual([])
    expect(created).toEqual({
      ...{ id: expect.any(String), at: expect.stringMatching(/Z$/), account_id: account.account_id },
      ...{ actor: `key:${account.key_id}`, address: '127.0.0.1', operation: 'createKey', resource_id: made.id },
      ...{ actor_name: expect.any(String), resource_name: 'a name of a key' },
      ...{ result: 'succeeded', status: 201, error: null, request_id: headers.get('x-request-id'), unrecorded: 0 },
    })
    expect(revoked).toMatchObject({ operation: 'revokeKey', resource_id: made.id, status: 200 })
    expect(JSON.stringify([revoked, created])).not.toMatch(/ing_live/)
    await account.post(`/v1/keys/${made.id}/revoke?now=true`)
    expect((await eventsOf(account))[0]).toMatchObject({ operation: 'revokeKeyNow', resource_id: made.id, status: 200 })
  })

  test('200 names what the account has, and nothing that belongs to another', async () => {
    const [account, other] = [await control().newAccount(), await control().newAccount()]
    const { body: endpoint } = await account.post('/v1/endpoints', { name: 'shop', region: newRegion() })
    await other.post(`/v1/endpoints/${endpoint.id}/pause`)
    await other.post(`/v1/keys/${account.key_id}/revoke`)
    expect((await eventsOf(account))[0]).toMatchObject({ resource_id: endpoint.id, resource_name: 'shop' })
    for (const event of await eventsOf(other)) expect(event).toMatchObject({ result: 'failed', resource_name: null })
    const { body } = await operator().get(`/v1/installation/audit-events?account_id=${account.account_id}`)
    expect(body.items[0]).toMatchObject({ resource_name: 'shop', actor_name: expect.any(String) })
  })

  test('200 names bindings, jobs, invitations and people who left, in their own account only', async ({ account }) => {
    const { account_id } = account
    const { body: endpoint } = await account.post('/v1/endpoints', { name: 'shop', region: newRegion() })
    const view = await aPublishedView(account, 'sales')
    await account.post(`/v1/endpoints/${endpoint.id}/views`, { view_id: view.id })
    await account.post(`/v1/views/${view.id}/backfill`, { endpoint_id: endpoint.id })
    const owner = await newPerson(control(), { account_id, role: 'owner' })
    await owner.send('POST', '/v1/invitations', { role: 'viewer' })
    const viewer = await newPerson(control(), { account_id, role: 'viewer' })
    expect(await owner.send('DELETE', `/v1/people/${viewer.person_id}`)).toMatchObject({ status: 204 })
    const names = (events: readonly AuditEvent[]) =>
      events.map(({ operation, actor_name, resource_name }) => [operation, actor_name, resource_name])
    expect(names(await eventsOf(account)).slice(0, 6)).toEqual([
      ['removePerson', 'Ada', 'Ada'],
      ['joinAccount', 'Ada', 'as viewer'],
      ['createInvitation', 'Ada', 'as viewer'],
      ['joinAccount', 'Ada', 'as owner'],
      ['backfillView', expect.any(String), 'backfill of sales v1 on shop'],
      ['attachView', expect.any(String), 'sales v1 on shop'],
    ])
    const other = await control().newAccount()
    await other.delete(`/v1/people/${viewer.person_id}`)
    await other.delete(`/v1/people/${owner.person_id}`)
    for (const event of await eventsOf(other)) expect(event).toMatchObject({ resource_name: null })
  })

  test('200 has what failed: not valid, not found, in conflict, not allowed, suspended', async () => {
    const account = await createAccount(control().call)
    const missing = newId()
    await account.post('/v1/keys', { name: '' })
    await account.post(`/v1/keys/${missing}/revoke`)
    await account.post('/v1/keys/nonsense/revoke')
    await account.as('metrics').post('/v1/keys', key('k'))
    await operator().patch(`/v1/accounts/${account.account_id}`, { status: 'suspended' })
    await account.post('/v1/keys', key('k'))
    await account.patch('/v1/accounts/mine', { status: 'active' })
    expect(
      (await eventsOf(account)).map(({ operation, status, error, resource_id, actor }) => [
        operation,
        status,
        error,
        resource_id,
        actor.slice(0, 4),
      ]),
    ).toEqual([
      ['changeAccount', 403, 'forbidden', null, 'key:'],
      ['createKey', 403, 'account_suspended', null, 'key:'],
      ['changeAccount', 200, null, account.account_id, 'oper'],
      ['createKey', 403, 'forbidden', null, 'key:'],
      ['revokeKey', 404, 'not_found', null, 'key:'],
      ['revokeKey', 404, 'not_found', missing, 'key:'],
      ['createKey', 422, 'validation_error', null, 'key:'],
      ['createAccount', 201, null, account.account_id, 'oper'],
    ])
  })

  test('200 names the revoked key that somebody still tries', async ({ account }) => {
    const { body: made } = await account.post('/v1/keys', { name: 'next', scopes: ['admin'] })
    const { body: token } = await control().call('POST', '/v1/token/exchange', { api_key: made.api_key, scope: 'admin' })
    await account.post(`/v1/keys/${made.id}/revoke?now=true`)
    const thief = clientOf(control().call, token.access_token)
    expect(await thief.post('/v1/keys', key('k'))).toMatchObject({ status: 401 })
    expect((await eventsOf(account))[0]).toMatchObject({
      actor: `key:${made.id}`,
      operation: 'createKey',
      status: 401,
      error: 'unauthorized',
    })
  })

  test('200 in pages, filtered by operation, result and time', async ({ account }) => {
    for (const name of ['1', '2', '', '3']) await account.post('/v1/keys', key(name))
    await account.post('/v1/views', { name: 'v', definition: {} })
    const all = await eventsOf(account)
    expect(operations(all)).toEqual(['createView', ...Array(4).fill('createKey')])
    const paged: AuditEvent[] = []
    for (let before = ''; ; ) {
      const { body } = await account.get(`/v1/audit-events?limit=2${before}`)
      paged.push(...body.items)
      if (body.next_cursor === null) break
      before = `&before=${body.next_cursor}`
    }
    expect(paged).toEqual(all)
    expect(await eventsOf(account, '&operation=createView')).toEqual(all.slice(0, 1))
    expect(await eventsOf(account, '&result=failed')).toEqual(all.filter(({ status }) => status === 422))
    expect(await eventsOf(account, '&result=succeeded&operation=createKey')).toHaveLength(3)
    expect(await eventsOf(account, `&since=${all[2]?.at}`)).toEqual(all.slice(0, 3))
    expect(await eventsOf(account, '&operation=nothing')).toEqual([])
  })

  test('200 has no events of other accounts, and no address of the operator', async () => {
    const [mine, theirs] = [await control().newAccount(), await control().newAccount()]
    await theirs.post('/v1/keys', key('k'))
    await mine.patch(`/v1/accounts/${theirs.account_id}`, { status: 'suspended' })
    expect(operations(await eventsOf(mine))).toEqual(['changeAccount'])
    expect(operations(await eventsOf(theirs))).toEqual(['createKey'])
    await operator().patch(`/v1/accounts/${mine.account_id}`, { name: `renamed ${newId()}` })
    expect((await eventsOf(mine))[0]).toMatchObject({ actor: 'operator', address: null })
  })

  test('422 names the parameter', async ({ account }) => {
    for (const query of ['before=x', 'result=maybe', 'since=soon', 'account_id=x']) {
      expect(await account.get(`/v1/audit-events?${query}`)).toMatchObject({
        status: 422,
        body: { errors: [{ path: query.split('=')[0] }] },
      })
    }
  })
})

describe('GET /v1/installation/audit-events', () => {
  test('200 has the events of every account, and those of nobody', async ({ account }) => {
    await account.post('/v1/keys', key('k'))
    await account.as('nobody').post('/v1/keys', key('k'))
    await clientOf(control().call, 'a guessed token').post('/v1/accounts', { name: 'x' })
    await operator().post('/v1/accounts', { name: '' })
    const { body } = await operator().get('/v1/installation/audit-events?limit=20')
    // Nodes may apply revocations of the tests before in the meantime.
    const called = body.items.filter(({ actor }: AuditEvent) => actor !== 'inlet').slice(0, 4)
    expect(
      called.map((event: AuditEvent) => [event.operation, event.actor.slice(0, 8), event.account_id, event.address]),
    ).toEqual([
      ['createAccount', 'operator', null, '127.0.0.1'],
      ['createAccount', 'unknown', null, '127.0.0.1'],
      ['createKey', 'unknown', null, '127.0.0.1'],
      ['createKey', `key:${account.key_id.slice(0, 4)}`, account.account_id, '127.0.0.1'],
    ])
    const own = await operator().get(`/v1/installation/audit-events?account_id=${account.account_id}`)
    expect(own.body).toMatchObject({ items: [{ operation: 'createKey' }], next_cursor: null })
  })
})

describe('the audit trail', () => {
  type Operations = Record<string, { readonly operationId: string; readonly 'x-scope': string }>

  test('records every operation that may change something', async ({ account }) => {
    const credentials = await credentialsOf(control(), account)
    const { body: description } = await control().call('GET', '/openapi/openapi.json')
    const expected = ['joinAccount']
    for (const [template, methods] of Object.entries<Operations>(description.paths)) {
      for (const [method, { operationId, 'x-scope': scope }] of Object.entries(methods)) {
        // Operations of a person alone belong to no account. A query only reads.
        if (method === 'get' || ['any', 'public', 'person', 'query'].includes(scope)) continue
        const path = template.replace(/\{\w+\}/g, newId())
        // Tokens of the account also for operations of the operator: the trail of the account has them.
        const headers = credentials(scope === 'operator' ? 'admin' : scope)
        await control().call(method.toUpperCase(), path, method === 'delete' ? undefined : {}, headers)
        expected.push(operationId)
      }
    }
    expect(expected.length).toBeGreaterThan(20)
    expect(operations(await eventsOf(account)).toReversed()).toEqual(expected)
  })

  test('a change that cannot be recorded is not made', async () => {
    await using own = await newControl()
    const account = await own.newAccount()
    const node = await TestNode.register(own, newRegion())
    const { delete: revoke, get } = clientOf(own.call, operatorToken)
    await sql`alter table audit_events rename to away`.execute(own.store.db)
    expect(await account.post('/v1/keys', key('k'))).toMatchObject({ status: 500 })
    expect((await account.get('/v1/keys')).body.total).toBe(1)
    expect(await revoke(`/v1/nodes/${node.id}/credential`)).toMatchObject({ status: 500 })
    expect((await get('/v1/nodes')).body.items).toMatchObject([{ credential: 'active' }])
    await sql`alter table away rename to audit_events`.execute(own.store.db)
    expect(await account.post('/v1/keys', key('k'))).toMatchObject({ status: 201 })
    expect((await account.get('/v1/keys')).body.total).toBe(2)
    expect(operations(await eventsOf(account))).toEqual(['createKey'])
  })

  test('records a bounded number of failed calls, and counts the others', async ({ account }) => {
    const calls = auditLimits.failuresBurst + 30
    await Promise.all(Array.from({ length: calls }, () => account.post(`/v1/keys/${newId()}/revoke`)))
    const failed = await eventsOf(account)
    expect(failed.length).toBeLessThan(calls)
    expect(failed.length).toBeGreaterThanOrEqual(auditLimits.failuresBurst)
    await account.post('/v1/keys', key('k'))
    const all = await eventsOf(account)
    expect(all[0]).toMatchObject({ operation: 'createKey', result: 'succeeded' })
    expect(all.reduce((sum, { unrecorded }) => sum + unrecorded, 0)).toBe(calls - failed.length)
    await account.post('/v1/keys', key('k'))
    expect((await eventsOf(account))[0]).toMatchObject({ result: 'succeeded', unrecorded: 0 })
  })

  test('does not record what a rate limit rejects', async () => {
    await using own = await newControl({ environment: { INLET_API_REQUESTS_PER_MINUTE: '3' } })
    const account = await own.newAccount()
    const statuses: number[] = []
    for (let call = 0; call < 6; call += 1) statuses.push((await account.post('/v1/keys', key('k'))).status)
    expect(statuses).toEqual([201, 201, 201, 429, 429, 429])
    const { body } = await clientOf(own.call, operatorToken).get('/v1/installation/audit-events')
    expect(body.items.filter(({ operation }: AuditEvent) => operation === 'createKey')).toHaveLength(3)
  })

  test('says what the first start created', async () => {
    await using own = await newControl()
    const { body } = await clientOf(own.call, operatorToken).get('/v1/installation/audit-events')
    expect(body.items).toEqual([
      expect.objectContaining({
        actor: 'bootstrap',
        operation: 'createAccount',
        resource_id: own.bootstrapped?.account_id,
        address: null,
        status: null,
      }),
    ])
  })
})
