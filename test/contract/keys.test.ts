import { describe, expect } from 'vitest'
import { must } from '#lib/assert.ts'
import { newId } from '#model/id.ts'
import { keyLimits } from '#model/limits.ts'
import { type ApiClient, clientOf, newRegion, operatorToken, testWithAccount, useControl } from '../support/control.ts'
import { TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const control = useControl()
const test = testWithAccount(control)

describe('POST /v1/keys', () => {
  test('201 returns the key once, and the key works', async ({ account }) => {
    const answer = await account.post('/v1/keys', { name: 'sensors', scopes: ['ingest'] })
    const key = { name: 'sensors', scopes: ['ingest'], endpoint_ids: null, revoked_at: null }
    expect(answer).toMatchObject({ status: 201, body: key })
    expect(answer.body.api_key).toMatch(/^ing_live_[0-9A-Za-z]{32}$/)
    expect(answer.body.api_key.startsWith(answer.body.prefix)).toBe(true)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(await control().call('POST', '/v1/token/exchange', { api_key: answer.body.api_key })).toMatchObject({ status: 200 })
    expect(JSON.stringify((await account.get('/v1/keys')).body)).not.toContain(answer.body.api_key)
  })

  test('422 names each invalid field', async ({ account }) => {
    const answer = await account.post('/v1/keys', { name: '', scopes: ['ingest', 'ingest'], secret: 'mine' })
    expect(answer.status).toBe(422)
    expect(answer.body.errors.map(({ path }: { path: string }) => path)).toEqual(['name', 'scopes', 'secret'])
  })
})

describe('a public key', () => {
  const page = 'https://app.example.com'
  const body = { name: 'shop', scopes: ['ingest'], endpoint_ids: [newId()], public: true, origins: [page] }

  test('422 unless it is for ingest, one endpoint and origins; and while the operator forbids it', async ({ account }) => {
    const pathsOf = async (change: object) => {
      const { status, body: problem } = await account.post('/v1/keys', { ...body, ...change })
      expect(status).toBe(422)
      return problem.errors.map(({ path }: { path: string }) => path)
    }
    expect(await pathsOf({ scopes: ['ingest', 'metrics'] })).toEqual(['scopes'])
    expect(await pathsOf({ endpoint_ids: null })).toEqual(['endpoint_ids'])
    expect(await pathsOf({ endpoint_ids: [newId(), newId()] })).toEqual(['endpoint_ids'])
    expect(await pathsOf({ origins: null })).toEqual(['origins'])
    expect(await pathsOf({ public: false })).toEqual(['origins'])
    expect(await pathsOf({ origins: ['https://app.example.com/shop'] })).toEqual(['origins.0'])
    expect(await pathsOf({})).toEqual(['public'])
  })
})

describe('GET /v1/keys', () => {
  test('200 includes revoked keys', async ({ account }) => {
    const { body: key } = await account.post('/v1/keys', { name: 'gone', scopes: ['metrics'] })
    await account.post(`/v1/keys/${key.id}/revoke`)
    const { status, body } = await account.get('/v1/keys')
    expect(status).toBe(200)
    expect(body).toMatchObject({ total: 2, next_offset: null, items: [{}, {}] })
    expect(await account.get('/v1/keys?limit=1')).toMatchObject({ status: 200, body: { total: 2, next_offset: 1, items: [{}] } })
    expect(body.items.find(({ id }: { id: string }) => id === key.id).revoked_at).toMatch(/Z$/)
  })
})

describe('POST /v1/keys/{id}/revoke', () => {
  test('200 is permanent and idempotent', async ({ account }) => {
    const { body: key } = await account.post('/v1/keys', { name: 'k', scopes: ['admin'] })
    const first = await account.post(`/v1/keys/${key.id}/revoke`)
    expect(first).toMatchObject({ status: 200, body: { id: key.id, revoked_at: expect.stringMatching(/Z$/) } })
    control().clock.advance(1_000)
    // Control notes on its own when every node has applied the revocation.
    const { revocation: _, ...revoked } = first.body
    expect(await account.post(`/v1/keys/${key.id}/revoke`)).toMatchObject({ status: 200, body: revoked })
    const ended = await account.post(`/v1/keys/${key.id}/revoke?now=true`)
    expect(ended.body).toMatchObject({ ...revoked, access_ended_at: expect.stringMatching(/Z$/) })
    control().clock.advance(1_000)
    for (const again of ['', '?now=true'])
      expect(await account.post(`/v1/keys/${key.id}/revoke${again}`)).toMatchObject({
        status: 200,
        body: { ...revoked, access_ended_at: ended.body.access_ended_at },
      })
    expect(await control().call('POST', '/v1/token/exchange', { api_key: key.api_key })).toMatchObject({ status: 401 })
  })

  test('422 for anything but true and false, and for a body', async ({ account }) => {
    const path = `/v1/keys/${account.key_id}/revoke`
    expect(await account.post(`${path}?now=yes`)).toMatchObject({ status: 422, body: { errors: [{ path: 'now' }] } })
    const withBody = await account.post(path, { now: true })
    expect(withBody).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'now', message: expect.stringContaining('no body') }] },
    })
  })
})

describe('the progress of a revocation', () => {
  test('names the nodes that may still accept the key, until each has applied it', async ({ account }) => {
    const region = newRegion()
    const { body: endpoint } = await account.post('/v1/endpoints', { region })
    const { body: key } = await account.post('/v1/keys', { name: 'till', scopes: ['ingest'] })
    const nodes = await Promise.all([1, 2, 3].map(() => TestNode.register(control(), region)))
    const elsewhere = await TestNode.register(control(), newRegion())
    for (const node of [...nodes, elsewhere]) await node.heartbeat()
    const revocation = async () => {
      const { items } = (await account.get('/v1/keys')).body
      return items.find(({ id }: { id: string }) => id === key.id).revocation
    }
    expect(await revocation()).toBeNull()

    const { body: revoked } = await account.post(`/v1/keys/${key.id}/revoke`)
    expect(revoked.revocation).toMatchObject({ applied_nodes: 0, nodes: 3, applied_at: null })
    const [one, two, three] = nodes
    await one?.heartbeat()
    control().clock.advance(40_000)
    await two?.heartbeat()
    const late = await revocation()
    expect(late.summary).toMatch(new RegExp(`^applied on 2 of 3 nodes; node ${three?.id} has been out of reach for \\d+ s$`))
    expect(late).toMatchObject({
      applied_nodes: 2,
      waiting: [{ node_id: three?.id, region, out_of_reach_seconds: expect.any(Number) }],
    })
    // It is back, with the configuration of before.
    const { epoch } = must(three, 'the third node').current
    await three?.call('POST', 'heartbeat', beatOf(three.id, epoch))
    expect((await revocation()).summary).toBe(`applied on 2 of 3 nodes; node ${three?.id} has not applied it yet`)
    await three?.heartbeat()
    await until('the note', async () => (await revocation()).applied_at !== null, 20_000)
    expect(await revocation()).toMatchObject({ applied_nodes: 3, nodes: 3, waiting: [] })
    const { items } = (await account.get('/v1/audit-events?operation=applyRevocation')).body
    expect(items).toMatchObject([{ actor: 'inlet', resource_id: key.id, resource_name: 'till' }])

    // To end what it opened is another change.
    const { body: ended } = await account.post(`/v1/keys/${key.id}/revoke?now=true`)
    expect(ended.revocation).toMatchObject({ applied_nodes: 0, nodes: 3, applied_at: null })
    await clientOf(control().call, operatorToken).delete(`/v1/nodes/${three?.id}?force=true`)
    for (const node of [one, two]) await node?.heartbeat()
    await until('the note', async () => (await revocation()).applied_at !== null, 20_000)
    expect(await revocation()).toMatchObject({ nodes: 2 })
    expect(endpoint.region).toBe(region)
  })
})

function beatOf(node_id: string, applied_epoch: number) {
  return { process: 'ingest', node_id, applied_epoch, healthy: true, reasons: [], disk_full: false, blocked: [] }
}

describe('a key that is limited to endpoints', () => {
  async function limitedKey(scopes: readonly string[]) {
    const account = await control().newAccount()
    const region = newRegion()
    const [own, other] = [
      (await account.post('/v1/endpoints', { region })).body.id as string,
      (await account.post('/v1/endpoints', { region })).body.id as string,
    ]
    const { body: key } = await account.post('/v1/keys', { name: 'device', scopes, endpoint_ids: [own.toUpperCase()] })
    const exchange = async (scope: string) => {
      const { body } = await control().call('POST', '/v1/token/exchange', { api_key: key.api_key, scope })
      return clientOf(control().call, body.access_token)
    }
    return { account, own, other, key, exchange }
  }

  test('201 and in the list', async () => {
    const { account, own, key } = await limitedKey(['ingest'])
    expect(key).toMatchObject({ endpoint_ids: [own] })
    const { body } = await account.get('/v1/keys')
    expect(body.items).toContainEqual(expect.objectContaining({ id: key.id, endpoint_ids: [own] }))
  })

  test('422 for an endpoint of nobody, none, one twice, too many, or with the scope admin', async () => {
    const { account, own } = await limitedKey(['ingest'])
    const wrong = [[newId()], [], [own, own], Array.from({ length: keyLimits.endpointsMax + 1 }, newId), ['all'], 'all']
    for (const endpoint_ids of wrong) {
      const answer = await account.post('/v1/keys', { name: 'x', scopes: ['ingest'], endpoint_ids })
      expect(answer).toMatchObject({ status: 422, body: { errors: [{ path: expect.stringContaining('endpoint_ids') }] } })
    }
    expect(await account.post('/v1/keys', { name: 'x', scopes: ['ingest', 'admin'], endpoint_ids: [own] })).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'endpoint_ids', message: expect.stringContaining('admin') }] },
    })
  })

  test('reads what is below its endpoints, and the list of them', async () => {
    const { own, other, exchange } = await limitedKey(['ingest', 'metrics'])
    const metrics = await exchange('metrics')
    for (const path of ['', '/commits', '/views'])
      expect(await metrics.get(`/v1/endpoints/${own.toUpperCase()}${path}`)).toMatchObject({ status: 200 })
    for (const status of ['all', 'failed', 'active', 'paused']) {
      const { body } = await metrics.get(`/v1/endpoints?status=${status}`)
      expect(body.items.map(({ id }: { id: string }) => id)).toEqual(body.total === 0 ? [] : [own])
    }
    expect((await metrics.get('/v1/endpoints')).body).toMatchObject({ total: 1 })
    for (const path of ['', '/commits', '/views'])
      expect(await metrics.get(`/v1/endpoints/${other}${path}`)).toMatchObject({ status: 403, body: { error: 'forbidden' } })
    const ingest = await exchange('ingest')
    expect(await ingest.get(`/v1/endpoints/${own}/views`)).toMatchObject({ status: 200 })
    expect(await ingest.get(`/v1/endpoints/${own}`)).toMatchObject({ status: 403 })
  })

  test('every other operation refuses its tokens', async () => {
    const { own, exchange } = await limitedKey(['ingest', 'metrics'])
    const { body: description } = await control().call('GET', '/openapi/openapi.json')
    const metrics: Readonly<Record<string, ApiClient['patch']>> = { ...(await exchange('metrics')) }
    for (const [template, methods] of Object.entries<Record<string, object>>(description.paths)) {
      if (template.startsWith('/v1/endpoints') || template === '/v1/token/exchange') continue
      const path = template.replaceAll(/\{\w+\}/g, own)
      for (const method of Object.keys(methods)) {
        const send = must(metrics[method], method)
        const { status } = await send(path, {})
        // 401: operations for sessions of the console.
        expect([401, 403], `${method} ${path}`).toContain(status)
      }
    }
  })
})
