import { connect } from 'node:net'
import { describe, expect } from 'vitest'
import { controlLimits } from '#control/limits.ts'
import { KiB } from '#lib/bytes.ts'
import { newId } from '#model/id.ts'
import { newControl, newRegion, type TestAccount, testWithAccount, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { RawClient } from '../support/raw-http.ts'
import { TestNode } from '../support/test-node.ts'

const control = useControl()
const test = testWithAccount(control)

const problemType = 'application/problem+json'

/** Sends raw bytes, then one more every `dripMs`. Returns everything received until the other side closes. */
function raw(url: string, text: string, dripMs?: number): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let received = ''
    const drip = dripMs === undefined ? undefined : setInterval(() => socket.write('a'), dripMs)
    const socket = connect(Number(port), hostname, () => socket.write(text))
    socket.setEncoding('utf8')
    socket.on('data', (part) => (received += part))
    socket.on('close', () => {
      clearInterval(drip)
      resolve(received)
    })
    // A byte sent after the connection was closed.
    socket.on('error', (error) => (received === '' ? reject(error) : resolve(received)))
  })
}

async function authorized(account: TestAccount): Promise<Record<string, string>> {
  const { body } = await control().call('POST', '/v1/token/exchange', { api_key: account.api_key, scope: 'admin' })
  return { authorization: `Bearer ${body.access_token}` }
}

describe('unrouted requests', () => {
  test.each(['/errors/none', '/v1', '/v1/nothing', '/v2/endpoints', '/v1/%zz', `/v1/views/${'x'.repeat(500)}`])(
    '404 at %s',
    async (path) => {
      const answer = await control().call('GET', path)
      expect(answer).toMatchObject({ status: 404, body: { error: 'not_found', status: 404, title: 'Not Found' } })
      expect(answer.headers.get('content-type')).toBe(problemType)
    },
  )

  test('405 with Allow on every path for every other method, whatever the form of the path', async () => {
    const { body } = await control().call('GET', '/openapi/openapi.json')
    const described = Object.entries(body.paths as Record<string, Record<string, unknown>>).map(
      ([path, operations]) => [path.replace(/\{[^}]+\}/g, newId()), Object.keys(operations)] as const,
    )
    const pages = ['/', '/healthz', '/readyz', '/metrics', '/errors', '/errors/not_found', '/openapi/openapi.json'] as const
    const read = pages.map((path) => [path, ['get']] as const)
    const escaped = ['/%76%31/views', ['get', 'post']] as const
    await using client = await RawClient.connect(control().url)
    for (const [path, operations] of [...described, ...read, escaped]) {
      const allowed = [...operations.map((name) => name.toUpperCase()), ...(operations.includes('get') ? ['HEAD'] : [])].sort()
      const others = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'PURGE']
      for (const method of others.filter((name) => !allowed.includes(name))) {
        const body = method === 'QUERY' ? '\r\n' : 'Content-Type: text/xml\r\nContent-Length: 2\r\n\r\n<>'
        await client.send(`${method} ${path} HTTP/1.1\r\nHost: inlet.test\r\n${body}`)
        const { status, headers, json } = await client.answer()
        expect([status, headers['allow']?.split(', ').sort(), json['error']], `${method} ${path}`).toEqual([
          405,
          allowed,
          'method_not_allowed',
        ])
      }
    }
  })

  test.each(['//', '//v1/views', '//a:b:c/', '//[/', '//x/v1/views', '/v1//views', '*'])(
    '404 for the target %s',
    async (target) => {
      await using client = await RawClient.connect(control().url)
      await client.send(`PUT ${target} HTTP/1.1\r\nHost: inlet.test\r\n\r\n`)
      expect(await client.answer()).toMatchObject({ status: 404, json: { error: 'not_found' } })
    },
  )

  test('405 with Allow for an absolute target, as it is sent to a proxy', async () => {
    await using client = await RawClient.connect(control().url)
    await client.send('PUT http://inlet.test/v1/token/exchange?a=b HTTP/1.1\r\nHost: inlet.test\r\n\r\n')
    expect(await client.answer()).toMatchObject({ status: 405, headers: { allow: 'POST' } })
  })

  test('405 with Allow for CONNECT, and the connection ends', async () => {
    const answer = await raw(control().url, 'CONNECT inlet.test:80 HTTP/1.1\r\nHost: inlet.test:80\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 405 .*\r\nAllow: GET, HEAD, POST, PATCH, DELETE\r\n/s)
    expect(answer).toContain('"error":"method_not_allowed"')
  })

  test('406 for a client that does not accept JSON', async () => {
    const headers = await authorized(await control().newAccount())
    const accepting = (accept: string) => control().call('GET', '/v1/endpoints', undefined, { ...headers, accept })
    for (const accept of ['text/html', 'application/json;q=0', 'image/*, text/*;q=0.5']) {
      expect(await accepting(accept)).toMatchObject({ status: 406, body: { error: 'not_acceptable' } })
    }
    for (const accept of [
      '*/*',
      'text/html, application/*;q=0.1',
      'application/json; charset=utf-8',
      'application/problem+json',
    ]) {
      expect(await accepting(accept)).toMatchObject({ status: 200 })
    }
  })
})

describe('pages', () => {
  const get = (path: string, accept: string) => fetch(control().url + path, { headers: { accept }, redirect: 'manual' })

  test('/ is the console, and lists the addresses for a client that wants JSON', async () => {
    const page = await get('/', 'text/html')
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const json = await get('/', 'application/json')
    expect(json.headers.get('content-type')).toContain('application/json')
    const addresses = (await json.json()) as Record<string, string>
    for (const name of ['description', 'reference', 'errors']) {
      const { pathname } = new URL(addresses[name] ?? '')
      expect((await get(pathname, '*/*')).status, name).toBe(200)
    }
  })

  test('screens of the console load only its own files, which never change', async () => {
    const pages = await Promise.all(['/', '/sign-in', '/me', '/in/some-account/endpoints'].map((path) => get(path, 'text/html')))
    const nonces = pages.map((page) => /'nonce-([^']+)'/.exec(page.headers.get('content-security-policy') ?? '')?.[1])
    expect(new Set(nonces).size).toBe(pages.length)
    const [html = ''] = await Promise.all(pages.map((page) => page.text()))
    expect(html).toContain(nonces[0])
    const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path)
    expect(files.length).toBeGreaterThan(2)
    for (const path of files) {
      const file = await get(path, '*/*')
      const kept = path.includes('/assets/') ? /immutable/ : /max-age=300/
      expect([file.status, file.headers.get('cache-control')], path).toEqual([200, expect.stringMatching(kept)])
    }
  })

  test('the type of an error is the address of its page', async () => {
    const { body } = await control().call('GET', '/v1/endpoints')
    const { origin, pathname } = new URL(body.type)
    expect([origin, pathname]).toEqual(['http://inlet.test', '/errors/unauthorized'])
    const page = await get(pathname, 'text/html')
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[^']+';/)
    expect(await page.text()).toContain('What to do')
    expect(await (await get(`${pathname}?from=log`, 'application/json')).json()).toMatchObject({
      error: 'unauthorized',
      status: 401,
    })
    for (const path of ['/errors', '/errors/']) expect((await get(path, 'text/html')).status).toBe(200)
  })
})

describe('request bodies', () => {
  test.each(['{', '{"name":}', 'null', '[]', '7', '""', '{"__proto__": {"name": "x"}}', '\u0000', ''])(
    '422 for %j',
    async (text) => {
      const headers = await authorized(await control().newAccount())
      const answer = await control().call('POST', '/v1/destinations', text, headers)
      expect(answer).toMatchObject({ status: 422, body: { error: 'validation_error', errors: expect.any(Array) } })
      expect(answer.body.errors.length).toBeGreaterThan(0)
    },
  )

  test('422 for bytes that are not UTF-8', async () => {
    const headers = { ...(await authorized(await control().newAccount())), 'content-type': 'application/json' }
    const body = new Uint8Array([0x22, 0xff, 0x22])
    const response = await fetch(`${control().url}/v1/destinations`, { method: 'POST', headers, body })
    expect(response.status).toBe(422)
    expect(await response.json()).toMatchObject({ detail: 'the body must be UTF-8' })
  })

  test('422 for a body with too many values, fields or levels', async ({ account }) => {
    const post = (body: unknown) => account.post('/v1/endpoints', body)
    const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`field${index}`, 1]))
    expect((await post({ region: 'loc', output_formats: new Array(10_001).fill(1) })).body.detail).toContain('too many parts')
    expect((await post({ region: 'loc', ...fields(5_001) })).body.detail).toContain('too many fields')
    expect((await post('['.repeat(100_000))).body.detail).toContain('nested too deep')
  })

  test('413 for a body above the limit', async () => {
    const headers = await authorized(await control().newAccount())
    const answer = await control().call(
      'POST',
      '/v1/destinations',
      `{"name":"${'x'.repeat(controlLimits.bodyBytesMax)}"}`,
      headers,
    )
    expect(answer).toMatchObject({ status: 413, body: { error: 'payload_too_large' } })
  })

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/xml'])('415 for %s', async (type) => {
    const headers = { ...(await authorized(await control().newAccount())), 'content-type': type }
    expect(await control().call('POST', '/v1/destinations', 'a=b', headers)).toMatchObject({
      status: 415,
      body: { error: 'unsupported_media_type' },
    })
  })

  test('an operation without a body accepts an empty one with the content type of JSON', async ({ account }) => {
    const headers = { ...(await authorized(account)), 'content-type': 'application/json' }
    expect(await control().call('POST', `/v1/keys/${account.key_id}/revoke`, '', headers)).toMatchObject({ status: 200 })
  })

  test.each(['\u0000', '\u0007', '\u007f', '\ud800'])('422 names each text with %j', async (odd) => {
    const account = await control().newAccount()
    const paths = async (path: string, body?: unknown) => {
      const { status, body: answer } = body === undefined ? await account.get(path) : await account.post(path, body)
      expect({ status, error: answer.error }).toEqual({ status: 422, error: 'validation_error' })
      return answer.errors.map((error: { path: string }) => error.path).toSorted()
    }
    const text = `a${odd}b`
    expect(await paths('/v1/keys', { name: text, scopes: ['ingest'] })).toEqual(['name'])
    expect(await paths('/v1/destinations', { name: text, bucket: text, prefix: text, region: text, role_arn: text })).toEqual([
      'bucket',
      'name',
      'prefix',
      'region',
      'role_arn',
    ])
    const column = { name: text, type: 'VARCHAR', path: '$.a' }
    const definition = { columns: [column], filters: [{ condition: 'a', description: text }] }
    expect(await paths('/v1/views', { name: 'v', description: text, tags: ['fine', text], definition })).toEqual([
      'definition.columns.0.name',
      'definition.filters.0.description',
      'description',
      'tags.1',
    ])
    if (odd.isWellFormed()) {
      const query = encodeURIComponent(text)
      expect(await paths(`/v1/views?name=${query}&tag=${query}`)).toEqual(['name', 'tag.0'])
    }
  })

  test('a description may have tabs and line breaks', async () => {
    const definition = { columns: [{ name: 'a', type: 'VARCHAR', path: '$.a' }] }
    const description = 'one\n\ttwo\r\n'
    const answer = await (await control().newAccount()).post('/v1/views', { name: 'v', description, definition })
    expect(answer).toMatchObject({ status: 201, body: { description } })
  })
})

describe('limits', () => {
  test('429 with Retry-After for a key above its limit; other keys are not affected', async () => {
    await using own = await newControl({ environment: { INLET_API_REQUESTS_PER_MINUTE: '3' } })
    const [busy, calm] = [await own.newAccount(), await own.newAccount()]
    const statuses = []
    for (let call = 0; call < 4; call += 1) statuses.push((await busy.get('/v1/endpoints')).status)
    expect(statuses).toEqual([200, 200, 200, 429])
    const answer = await busy.as('metrics').get('/v1/views')
    expect(answer).toMatchObject({ status: 429, body: { error: 'too_many_requests', retry: true } })
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await calm.get('/v1/endpoints')).toMatchObject({ status: 200 })
  })

  test('an error response is small, however many problems a request has', async () => {
    const account = await control().newAccount(['admin'])
    const unknown = Object.fromEntries(Array.from({ length: 4_900 }, (_, index) => [`k${index}`, 1]))
    const many = await account.post('/v1/destinations', unknown)
    expect(many).toMatchObject({ status: 422, body: { error: 'validation_error' } })
    expect(many.body.errors).toHaveLength(100)
    expect(many.body.detail).toMatch(/\(and 4902 more\)$/)
    const long = await account.post('/v1/destinations', { ['x'.repeat(900_000)]: 1 })
    expect(long.status).toBe(422)
    for (const { body } of [many, long]) expect(JSON.stringify(body).length).toBeLessThan(64 * KiB)
  })

  test('429 with Retry-After for an address above its limit, with or without credentials; health checks are exempt', async () => {
    await using own = await newControl({ environment: { INLET_ADDRESS_REQUESTS_PER_MINUTE: '4' } })
    const account = await own.newAccount(['admin'])
    const statuses = []
    for (let call = 0; call < 3; call += 1) statuses.push((await account.as('nobody').get('/v1/endpoints')).status)
    const answer = await account.get('/v1/endpoints')
    expect(statuses).toEqual([401, 401, 401])
    expect(answer).toMatchObject({ status: 429, body: { error: 'too_many_requests', retry: true } })
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await own.call('GET', '/healthz')).toMatchObject({ status: 200 })
  })

  test.each(['/v1/endpoints', '/%76%31/endpoints', '/v%31/endpoints?x=/', 'http://inlet.test/v1/endpoints', '/v1', '/nothing'])(
    '429 for an address above its limit that requests %s',
    async (target) => {
      await using own = await newControl({ environment: { INLET_ADDRESS_REQUESTS_PER_MINUTE: '2' } })
      const statuses = []
      for (let call = 0; call < 3; call += 1) {
        const answer = await raw(own.url, `GET ${target} HTTP/1.1\r\nHost: inlet.test\r\nConnection: close\r\n\r\n`)
        statuses.push(answer.split(' ')[1])
      }
      expect(statuses.at(-1)).toBe('429')
      expect(new Set(statuses.slice(0, 2)).has('429')).toBe(false)
    },
  )

  test.each<[string, Record<string, string>, number]>([
    ['counts a proxy as the caller unless it is trusted', {}, 429],
    ['counts who calls through a trusted proxy', { INLET_TRUST_PROXY: '127.0.0.0/8, ::1' }, 200],
    ['believes nobody else', { INLET_TRUST_PROXY: '10.0.0.1' }, 429],
  ])('%s', async (_, environment, last) => {
    await using own = await newControl({ environment: { ...environment, INLET_EXCHANGE_REQUESTS_PER_MINUTE: '2' } })
    const { api_key } = await own.newAccount(['metrics'])
    const exchange = (address: string) =>
      own.call('POST', '/v1/token/exchange', { api_key, scope: 'metrics' }, { 'x-forwarded-for': address })
    const statuses = []
    for (const address of ['192.0.2.1', '192.0.2.2', '2001:db8::1']) statuses.push((await exchange(address)).status)
    expect(statuses.at(-1)).toBe(last)
    if (last === 200) {
      expect((await exchange('2001:db8::2')).status).toBe(200)
      expect((await exchange('2001:db8::3')).status).toBe(429)
    }
  })

  test.each([
    ['headers', 'GET /v1/endpoints HTTP/1.1\r\nHost: x\r\nX-Slow: a'],
    ['body', 'POST /v1/token/exchange HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{"api'],
  ])('408 cuts off who sends its %s byte by byte', async (_, text) => {
    await using own = await newControl({ environment: { INLET_REQUEST_TIMEOUT_SECONDS: '1' } })
    const startedAt = performance.now()
    const answer = await raw(own.url, text, 200)
    expect(answer).toMatch(/^HTTP\/1\.1 408 [\s\S]*application\/problem\+json[\s\S]*"error":"request_timeout"/)
    expect(performance.now() - startedAt).toBeLessThan(5_000)
    expect(await own.call('GET', '/healthz')).toMatchObject({ status: 200 })
  })

  test('431 for headers that are too large', async () => {
    const answer = await raw(control().url, `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(70_000)}\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1\.1 431 .*\r\n[\s\S]*application\/problem\+json[\s\S]*"error":"headers_too_large"/)
  })

  test('rejects input that is not HTTP and closes the connection', async () => {
    expect(await raw(control().url, 'nonsense\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 [\s\S]*"error":"bad_request"/)
  })

  test.each([
    ['no Host', 'GET /healthz HTTP/1.1\r\n\r\n', 400, 'bad_request'],
    ['two Hosts', 'GET /healthz HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n', 400, 'bad_request'],
    ['two lengths', 'POST /v1/keys HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}', 400, 'bad_request'],
    [
      'a length beside chunks',
      'POST /v1/keys HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      400,
      'bad_request',
    ],
    ['a broken chunk', 'POST /v1/keys HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 400, 'bad_request'],
    ['a header without a colon', 'GET / HTTP/1.1\r\nHost: x\r\nodd\r\n\r\n', 400, 'bad_request'],
    [
      'another expectation',
      'POST /v1/keys HTTP/1.1\r\nHost: x\r\nExpect: more\r\nContent-Length: 0\r\n\r\n',
      417,
      'expectation_failed',
    ],
  ])('malformed HTTP, %s: a problem at both listeners', async (_, text, status, code) => {
    for (const url of [control().url, control().app.nodeApiUrl]) {
      const answer = await raw(
        url,
        text
          .replace('Host: x\r\n', 'Host: x\r\nConnection: close\r\n')
          .replace('1.1\r\n\r\n', '1.1\r\nConnection: close\r\n\r\n'),
      )
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*application/problem\\+json[^]*"error":"${code}"`))
    }
  })
})

describe('every response', () => {
  test('has a unique request id and security headers', async () => {
    const [one, two] = [await control().call('GET', '/healthz'), await control().call('GET', '/v1/nothing')]
    expect(one.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(two.headers.get('x-request-id')).not.toBe(one.headers.get('x-request-id'))
    expect(two.headers.get('x-content-type-options')).toBe('nosniff')
    expect(two.headers.get('content-security-policy')).toContain("default-src 'none'")
  })
})

describe('health', () => {
  test('GET /healthz, /readyz', async () => {
    for (const path of ['/healthz', '/readyz'])
      expect(await control().call('GET', path)).toMatchObject({ status: 200, body: { status: 'ok' } })
  })

  test('while the database cannot be read, GET /readyz is 503 and GET /healthz is 200', async () => {
    await using own = await newControl()
    await own.store.db.schema.dropTable('epoch').execute()
    const answer = await own.call('GET', '/readyz')
    expect(answer).toMatchObject({
      status: 503,
      body: { error: 'unavailable', retry: true, reasons: ['the database cannot be read'] },
    })
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(await own.call('GET', '/healthz')).toMatchObject({ status: 200 })
  })

  test('GET /metrics has request metrics by route, never by id', async ({ account }) => {
    await account.get(`/v1/views/${account.account_id}`)
    const { status, headers, body } = await control().call('GET', '/metrics')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toContain('text/plain')
    expect(body).toContain('route="/v1/views/:id",status="404"')
    expect(body).not.toContain(account.account_id)
  })

  test('GET /metrics has how long event loops were held: its own, and those of delivery processes', async () => {
    const node = await TestNode.register(control(), newRegion())
    await node.heartbeat({}, { event_loop_delay_ms: 1_234_500 })
    const { body } = await control().call('GET', '/metrics')
    expect(body).toMatch(/^inlet_event_loop_delay_max_seconds\{process="control"\} [\d.]+$/m)
    expect(body).toContain(`inlet_delivery_event_loop_delay_max_seconds{node_id="${node.id}",process="control"} 1234.5\n`)
  })

  test('GET /metrics has the memory of control, of its workers, and of the delivery processes of nodes', async () => {
    const node = await TestNode.register(control(), newRegion())
    const counts = { heap_used_bytes: 3, heap_total_bytes: 4, external_bytes: 5, array_buffers_bytes: 6 }
    const workers = { workers: 2, workers_resident_bytes: 7 }
    await node.heartbeat({}, { memory: { resident_bytes: 1, resident_peak_bytes: 2, ...counts, ...workers } })
    const account = await control().newAccount()
    const preview = { definition: { columns: [{ name: 'n', type: 'INTEGER', path: '$.n' }] }, samples: ['{"n":1}'] }
    expect(await account.post('/v1/views/preview', preview)).toMatchObject({ status: 200 })
    const { body } = await control().call('GET', '/metrics')
    expect(body).toMatch(/^process_resident_memory_bytes\{process="control"\} [1-9]/m)
    expect(body).toMatch(/^inlet_array_buffers_bytes\{process="control"\} [1-9]/m)
    expect(body).toMatch(/^inlet_workers\{kind="preview",process="control"\} [12]$/m)
    // A process that runs DuckDB takes far more than 10 MB.
    expect(body).toMatch(/^inlet_workers_resident_memory_bytes\{kind="preview",process="control"\} [1-9]\d{7,}$/m)
    expect(body).toMatch(/^inlet_workers\{kind="query",process="control"\} 0$/m)
    const names = [
      'resident_memory',
      'resident_memory_peak',
      'heap_size_used',
      'heap_size_total',
      'external_memory',
      'array_buffers',
    ]
    for (const [index, name] of names.entries())
      expect(body).toContain(`inlet_delivery_${name}_bytes{node_id="${node.id}",process="control"} ${index + 1}\n`)
    expect(body).toContain(`inlet_delivery_workers{node_id="${node.id}",process="control"} 2\n`)
    expect(body).toContain(`inlet_delivery_workers_resident_memory_bytes{node_id="${node.id}",process="control"} 7\n`)
  })

  test('GET /metrics has the delivery lag in sum, and by endpoint and account only with the secret', async () => {
    const token = 'a-secret-of-the-operator'
    await using own = await newControl({ environment: { INLET_METRICS_TOKEN: token } })
    const account = await own.newAccount()
    const { body: endpoint } = await account.post('/v1/endpoints', { region: 'loc' })
    const node = await TestNode.register(own, 'loc')
    const failing_view = { view_id: newId(), since: '2026-11-20T08:00:00.000Z' }
    await node.heartbeat({}, { lag: [aLag(endpoint.id, { undelivered_segments: 2, undelivered_bytes: 900, failing_view })] })
    const day = new Date().toISOString().slice(0, 10)
    const sent = { account_id: account.account_id, day, bytes: 700, records: 9, records_per_second: 4 }
    await node.call('POST', 'usage', { node_id: node.id, run: 'a', accounts: [sent] })
    const asked = await own.call('GET', '/metrics', undefined, { authorization: `Bearer ${token}` })
    for (const line of ['accepted_today_bytes', 'records_per_second'])
      expect(asked.body).toMatch(new RegExp(`inlet_account_${line}\\{account_id="${account.account_id}",.*\\} [47]`))
    expect(asked.body).toContain('inlet_undelivered_bytes{process="control"} 900\n')
    expect(asked.body).toContain('inlet_logs_held_by_views{process="control"} 1\n')
    expect(asked.body).toMatch(new RegExp(`inlet_endpoint_undelivered_segments\\{endpoint_id="${endpoint.id}",.*\\} 2\\n`))
    expect(await own.call('GET', '/metrics')).toMatchObject({ status: 401, body: { error: 'unauthorized' } })
    expect(await own.call('GET', '/metrics', undefined, { authorization: 'Bearer another' })).toMatchObject({ status: 401 })
    const open = await control().call('GET', '/metrics')
    expect(open.body).toContain('inlet_undelivered_bytes{process="control"} ')
    expect(open.body).not.toMatch(/inlet_(endpoint|account)_/)
  })
})

test('ids may be in upper case, and are returned in lower case', async () => {
  const account = await control().newAccount()
  const upper = (id: string) => id.toUpperCase()
  const role_arn = 'arn:aws:iam::123456789012:role/ingest'
  const { body: lake } = await account.post('/v1/destinations', { name: 'lake', bucket: 'lake', region: 'eu', role_arn })
  const made = await account.post('/v1/endpoints', { region: 'loc', destination_id: upper(lake.id) })
  expect(made).toMatchObject({ status: 201, body: { destination_id: lake.id } })
  const endpoint = `/v1/endpoints/${upper(made.body.id)}`
  expect(await account.get(endpoint)).toMatchObject({ status: 200, body: { id: made.body.id } })
  const definition = { columns: [{ name: 'a', type: 'VARCHAR', path: '$.a' }] }
  const { body: view } = await account.post('/v1/views', { name: 'events', definition })
  expect(await account.post(`/v1/views/${upper(view.id)}/publish`)).toMatchObject({ status: 200, body: { id: view.id } })
  const attached = await account.post(`${endpoint}/views`, { view_id: upper(view.id) })
  expect(attached).toMatchObject({ status: 201, body: { view_id: view.id, endpoint_id: made.body.id } })
  const files = await account.get(`/v1/views/${upper(view.id)}/dlq-files?endpoint_id=${upper(made.body.id)}`)
  expect(files).toMatchObject({ status: 200, body: { view_id: view.id } })
  const job = await account.post(`/v1/views/${upper(view.id)}/backfill`, { endpoint_id: upper(made.body.id) })
  expect(job).toMatchObject({ status: 202, body: { view_id: view.id, endpoint_id: made.body.id } })
  for (const filter of [`view_id=${upper(view.id)}`, `endpoint_id=${upper(made.body.id)}`])
    expect(await account.get(`/v1/jobs?${filter}`)).toMatchObject({ body: { total: 1, items: [{ id: job.body.id }] } })
  expect(await account.delete(`${endpoint}/views/${upper(attached.body.id)}`)).toMatchObject({ status: 204 })
})

describe('500', () => {
  test('does not reveal its cause', async () => {
    const own = await newControl()
    const account = await own.newAccount()
    await own.store.db.schema.dropTable('endpoint_lags').execute()
    const answer = await account.get('/v1/endpoints')
    await account.post('/v1/endpoints', { region: 'loc' })
    const failed = await account.get('/v1/endpoints')
    await own[Symbol.asyncDispose]()
    expect(answer.status).toBe(200)
    expect(failed).toMatchObject({ status: 500, body: { error: 'internal_error', retry: true } })
    expect(JSON.stringify(failed.body)).not.toMatch(/endpoint_lags|sqlite|table|select/i)
  })
})
