import { describe, expect, test } from 'vitest'
import { ApiError, type ClientOptions, ConnectionError, createClient, InletError, TimeoutError } from '#client/index.ts'
import { newId } from '#model/id.ts'
import { newRegion, operatorToken, useControl } from '../support/control.ts'
import { ScriptedProxy } from '../support/scripted-proxy.ts'
import { aCommit, TestNode } from '../support/test-node.ts'

const control = useControl()

async function newClient(options: Partial<ClientOptions> = {}, scopes?: ('admin' | 'metrics' | 'query' | 'ingest')[]) {
  const account = await control().newAccount(scopes)
  return { account, inlet: createClient({ url: control().url, apiKey: account.api_key, ...options }) }
}

/** A client behind a proxy that has exchanged its key already. */
async function newProxied(options: Partial<ClientOptions> = {}) {
  const proxy = await ScriptedProxy.start(control().url)
  const { inlet } = await newClient({ url: proxy.url, ...options })
  await inlet.getQuotas()
  proxy.seen.length = 0
  return { inlet, proxy }
}

const unavailable = (headers: Record<string, string> = {}) => ({
  status: 503,
  headers,
  body: {
    type: 'x',
    title: 'Service Unavailable',
    status: 503,
    error: 'unavailable',
    detail: 'the database is away',
    retry: true,
  },
})

describe('operations', () => {
  test('ids of the path, then the body, then options', async () => {
    const { inlet } = await newClient()
    const region = newRegion()
    const endpoint = await inlet.createEndpoint({ region, name: 'meters' })
    expect(await inlet.getEndpoint(endpoint.id)).toMatchObject({ id: endpoint.id, name: 'meters', region })
    const changed = await inlet.changeEndpoint(endpoint.id, { segment_max_age_seconds: 60 }, { timeoutMs: 10_000 })
    expect(changed.segment_max_age_seconds).toBe(60)
    expect(await inlet.listBindings(endpoint.id)).toEqual({ items: [] })
    expect(await inlet.deleteEndpoint(endpoint.id)).toBeUndefined()
  })

  test('an address with a path, such as that of a proxy', async () => {
    const { account } = await newClient()
    const asked: string[] = []
    const inlet = createClient({
      url: 'https://inlet.test/control?x#y',
      apiKey: account.api_key,
      fetch: async (url, init) => {
        asked.push(url)
        return fetch(url.replace('https://inlet.test/control', control().url), init)
      },
    })
    await inlet.listViews({ tag: ['a b', 'c&d'], name: undefined })
    expect(asked).toEqual([
      'https://inlet.test/control/v1/token/exchange',
      'https://inlet.test/control/v1/views?tag=a+b&tag=c%26d',
    ])
  })

  test('an id cannot name another operation', async () => {
    const { inlet } = await newClient()
    for (const id of ['', '.', '..']) expect(() => inlet.getEndpoint(id)).toThrow('getEndpoint: id must be an id')
    await expect(inlet.getEndpoint('../keys')).rejects.toMatchObject({ code: 'not_found' })
    await expect(inlet.getEndpoint('$&')).rejects.toMatchObject({ code: 'not_found' })
  })

  test('the operator has a token of its own', async () => {
    const operator = createClient({ url: control().url, operatorToken })
    expect((await operator.listAccounts({ limit: 1 })).items).toHaveLength(1)
    expect(() => createClient({ url: 'inlet.example.com' })).toThrow('url must be an address')
    await expect(operator.listEndpoints()).rejects.toThrow('pass `apiKey`')
    await expect((await newClient()).inlet.listNodes()).rejects.toThrow('pass `operatorToken`')
  })
})

describe('tokens', () => {
  test('one exchange serves many calls at once', async () => {
    await using proxy = await ScriptedProxy.start(control().url)
    const { inlet } = await newClient({ url: proxy.url })
    await Promise.all(Array.from({ length: 20 }, () => inlet.getQuotas()))
    expect(proxy.seen.filter((line) => line === 'POST /v1/token/exchange')).toHaveLength(1)
  })

  test('a key without admin uses the scopes that it has', async () => {
    await using proxy = await ScriptedProxy.start(control().url)
    const { inlet } = await newClient({ url: proxy.url }, ['metrics', 'query'])
    await inlet.getQuotas()
    await inlet.listEndpoints()
    await expect(inlet.createEndpoint({ region: 'loc' })).rejects.toMatchObject({ code: 'forbidden', status: 403 })
    await expect(inlet.runQuery({ sql: 'SELECT 1' })).resolves.toMatchObject({ columns: [{}] })
    // Twice in vain for admin: neither is asked for again.
    expect(proxy.seen.filter((line) => line === 'POST /v1/token/exchange')).toHaveLength(3)
  })

  test('a token that has ended is replaced', async () => {
    const { inlet, proxy } = await newProxied()
    await using _ = proxy
    const gone = { type: 'x', title: 'Unauthorized', status: 401, error: 'unauthorized', detail: 'the token has expired' }
    proxy.script({ status: 401, body: gone })
    await inlet.getQuotas()
    expect(proxy.seen).toEqual(['GET /v1/quotas', 'POST /v1/token/exchange', 'GET /v1/quotas'])
  })

  test('a revoked key is refused once, without a loop', async () => {
    const { account, inlet } = await newClient()
    await inlet.revokeKey(account.key_id, { now: 'true' })
    await expect(inlet.getQuotas()).rejects.toMatchObject({ name: 'ApiError', code: 'unauthorized' })
  })
})

describe('errors', () => {
  test('have the code, the fields and the id of the request', async () => {
    const { inlet } = await newClient()
    const error = await inlet.createEndpoint({ region: 'NO' }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toBeInstanceOf(InletError)
    const problem = error as ApiError
    expect(problem).toMatchObject({ status: 422, code: 'validation_error', requestId: expect.stringMatching(/./) })
    expect(problem.fieldError('region')).toMatch(/./)
    expect(problem.fieldError('name')).toBeUndefined()
    await expect(inlet.getEndpoint(newId())).rejects.toMatchObject({ status: 404, code: 'not_found', errors: [] })
  })

  test('a response that is not that of Inlet says so', async () => {
    const { inlet, proxy } = await newProxied({ retriesMax: 0 })
    await using _ = proxy
    proxy.script(
      { status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad Gateway</h1>' },
      { status: 200, headers: { 'content-type': 'text/html' }, body: '<h1>Welcome</h1>' },
      { status: 308, headers: { location: 'https://elsewhere.test/' } },
    )
    await expect(inlet.getQuotas()).rejects.toMatchObject({ status: 502, code: 'unexpected_response' })
    await expect(inlet.getQuotas()).rejects.toThrow('is not JSON')
    await expect(inlet.getQuotas()).rejects.toThrow('redirects to https://elsewhere.test/')
  })
})

describe('attempts', () => {
  test.each(['refuse', 'lose-response', 'cut-response'] as const)('%s: a GET is repeated', async (fault) => {
    const { inlet, proxy } = await newProxied()
    await using _ = proxy
    proxy.script(fault, fault)
    expect((await inlet.getQuotas()).quotas.endpoints.used).toBe(0)
    expect(proxy.seen).toHaveLength(3)
  })

  test('a POST whose response is lost is not repeated; one that reads is', async () => {
    const { inlet, proxy } = await newProxied()
    await using _ = proxy
    proxy.script('lose-response')
    await expect(inlet.createKey({ name: 'lost', scopes: ['ingest'] })).rejects.toBeInstanceOf(ConnectionError)
    proxy.script('lose-response')
    await inlet.runQuery({ sql: 'SELECT 1' })
    const names = (await inlet.listKeys()).items.map(({ name }) => name)
    expect(names.filter((name) => name === 'lost')).toHaveLength(1)
  })

  test('a deletion whose response is lost succeeds', async () => {
    const { inlet, proxy } = await newProxied()
    await using _ = proxy
    const { id } = await inlet.createEndpoint({ region: newRegion() })
    proxy.script('lose-response', {
      status: 404,
      body: { type: 'x', title: 'Not Found', status: 404, error: 'not_found', detail: 'no endpoint has this id' },
    })
    expect(await inlet.deleteEndpoint(id)).toBeUndefined()
    await expect(inlet.deleteEndpoint(newId())).rejects.toMatchObject({ code: 'not_found' })
  })

  test('Retry-After is honoured', async () => {
    const { inlet, proxy } = await newProxied()
    await using _ = proxy
    proxy.script(unavailable({ 'retry-after': '1' }))
    const began = performance.now()
    await inlet.getQuotas()
    expect(performance.now() - began).toBeGreaterThanOrEqual(990)
  })

  test('a wait beyond the timeout is not begun', async () => {
    const { inlet, proxy } = await newProxied()
    await using _ = proxy
    proxy.script(
      unavailable({ 'retry-after': '3600' }),
      unavailable({ 'retry-after': new Date(Date.now() + 3_600_000).toUTCString() }),
    )
    await expect(inlet.getQuotas()).rejects.toMatchObject({ status: 503, retryAfterSeconds: 3600 })
    const error = await inlet.getQuotas().catch((thrown: ApiError) => thrown)
    expect((error as ApiError).retryAfterSeconds).toBeGreaterThan(3500)
  })

  test('a POST refused for its rate is repeated, one above a quota is not', async () => {
    const { inlet, proxy } = await newProxied()
    await using _ = proxy
    const refusal = (error: string) => ({ status: 429, body: { type: 'x', title: 'x', status: 429, error, detail: error } })
    proxy.script(refusal('too_many_requests'))
    await inlet.createKey({ name: 'late', scopes: ['ingest'] })
    proxy.script({ ...refusal('quota_exceeded'), headers: { 'retry-after': '1' } })
    await expect(inlet.createKey({ name: 'none', scopes: ['ingest'] })).rejects.toMatchObject({ code: 'quota_exceeded' })
  })

  test('end after the last one', async () => {
    const { inlet, proxy } = await newProxied({ retriesMax: 1 })
    await using _ = proxy
    proxy.script('refuse', 'refuse')
    await expect(inlet.getQuotas()).rejects.toBeInstanceOf(ConnectionError)
    expect(proxy.seen).toHaveLength(2)
  })

  test('a timeout and a signal end a call, also one that waits for a token', async () => {
    const { inlet, proxy } = await newProxied()
    await using _ = proxy
    proxy.script('hang', 'hang')
    await expect(inlet.getQuotas({ timeoutMs: 50 })).rejects.toBeInstanceOf(TimeoutError)
    const reason = new Error('changed my mind')
    await expect(inlet.getQuotas({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    const controller = new AbortController()
    const call = inlet.getQuotas({ signal: controller.signal })
    controller.abort(reason)
    await expect(call).rejects.toBe(reason)
    const { inlet: fresh } = await newClient({ url: proxy.url })
    await expect(fresh.getQuotas({ timeoutMs: 50 })).rejects.toBeInstanceOf(TimeoutError)
    expect(await inlet.getQuotas()).toMatchObject({ quotas: { endpoints: { used: 0 } } })
  })
})

describe('lists', () => {
  test('iterate over all pages, by offset', async () => {
    const { inlet } = await newClient()
    const region = newRegion()
    const created = []
    for (let index = 0; index < 7; index += 1) created.push((await inlet.createEndpoint({ region, name: `e${index}` })).id)
    const ids = async (limit?: number) => Array.fromAsync(inlet.listEndpoints({ limit }), ({ id }) => id)
    expect(await ids(3)).toEqual(created.toReversed())
    expect(await ids()).toEqual(created.toReversed())
    const pages = await Array.fromAsync(inlet.listEndpoints({ limit: 3 }).pages())
    expect(pages.map(({ items, total }) => [items.length, total])).toEqual([
      [3, 7],
      [3, 7],
      [1, 7],
    ])
    expect((await inlet.listEndpoints({ limit: 2 })).items).toHaveLength(2)
  })

  test('iterate over all pages, by cursor', async () => {
    const { inlet } = await newClient()
    const region = newRegion()
    const endpoint = await inlet.createEndpoint({ region })
    const node = await TestNode.register(control(), region)
    const commits = Array.from({ length: 25 }, (_, seq) => aCommit(node.id, endpoint.id, seq))
    await node.call('POST', 'commits', { commits })
    const seqs = await Array.fromAsync(inlet.listCommits(endpoint.id, { limit: 4 }), ({ seq }) => seq)
    expect(seqs).toEqual(commits.map((_, seq) => seq).toReversed())
    expect(await Array.fromAsync(inlet.listAuditEvents({ limit: 1 }), ({ operation }) => operation)).toContain('createEndpoint')
  })

  test('request nothing until they are used, and no page that is not needed', async () => {
    const { inlet, proxy } = await newProxied()
    await using _ = proxy
    for (const name of ['a', 'b', 'c']) await inlet.createKey({ name, scopes: ['ingest'] })
    proxy.seen.length = 0
    const list = inlet.listKeys({ limit: 1 })
    expect(proxy.seen).toEqual([])
    for await (const { name } of list) {
      expect(name).toBe('c')
      break
    }
    expect(proxy.seen).toEqual(['GET /v1/keys?limit=1'])
  })

  test('throw what a page throws', async () => {
    const { inlet } = await newClient()
    await expect(Array.fromAsync(inlet.listCommits(newId()))).rejects.toMatchObject({ code: 'not_found' })
    await expect(inlet.listCommits(newId())).rejects.toMatchObject({ code: 'not_found' })
  })
})
