import { describe, expect } from 'vitest'
import { newId } from '#model/id.ts'
import { clientOf, newControl, newRegion, type TestAccount, testWithAccount, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { aDestination } from '../support/set-up.ts'
import { TestNode } from '../support/test-node.ts'

const control = useControl()
const test = testWithAccount(control)

async function made(account: TestAccount, more: object = {}) {
  const { status, body } = await account.post('/v1/endpoints', { region: 'loc', ...more })
  expect(status).toBe(201)
  return body
}

const label = /^[a-z][a-z0-9]{11}$/
const mqtt = { enabled: true, max_connections: 1000, keepalive_max_s: 300, qos_max: 1 }

describe('POST /v1/endpoints', () => {
  test('201 is deploying, with defaults', async ({ account }) => {
    const region = newRegion()
    expect(await account.post('/v1/endpoints', { region })).toMatchObject({
      status: 201,
      body: {
        region,
        status: 'deploying',
        destination_id: null,
        destination_name: null,
        destination_status: null,
        dns_ipv4: [],
        dns_ipv6: [],
        segment_bytes: 67_108_864,
        segment_max_age_seconds: 60,
        output_formats: ['parquet_views', 'parquet'],
        mqtt_config: null,
        compaction: null,
        kept_headers: [],
        kept_fields: [],
      },
    })
  })

  test('201 with all settings', async ({ account }) => {
    const { id: destination_id } = await aDestination(account)
    const given = {
      region: 'loc',
      destination_id,
      segment_bytes: 8_000_000,
      segment_max_age_seconds: 1,
      output_formats: ['segments'],
      mqtt_config: { enabled: true, max_connections: 1, keepalive_max_s: 10, qos_max: 0 },
      compaction: { period: 'hour', except_views: ['debug'], remove_after_hours: 8760 },
      kept_headers: ['stripe-signature'],
      kept_fields: ['key_name', 'address'],
    }
    const answer = await account.post('/v1/endpoints', given)
    expect(answer).toMatchObject({ status: 201, body: { ...given, destination_name: 'lake', destination_status: 'pending' } })
  })

  test('201 fills in defaults of mqtt_config', async () => {
    expect(await made(await control().newAccount(), { mqtt_config: {} })).toMatchObject({ mqtt_config: mqtt })
  })

  test('201 keeps the names of headers in lower case', async ({ account }) => {
    const { id } = await made(account, { kept_headers: ['X-Hub-Signature-256', 'X-GitHub-Event'] })
    const kept_headers = ['x-hub-signature-256', 'x-github-event']
    expect(await account.get(`/v1/endpoints/${id}`)).toMatchObject({ body: { kept_headers } })
    const one = await account.patch(`/v1/endpoints/${id}`, { kept_headers: ['X-Event'] })
    expect(one).toMatchObject({ status: 200, body: { kept_headers: ['x-event'] } })
    expect(await account.patch(`/v1/endpoints/${id}`, { name: 'github' })).toMatchObject({ body: { kept_headers: ['x-event'] } })
    expect(await account.patch(`/v1/endpoints/${id}`, { kept_headers: null })).toMatchObject({ body: { kept_headers: [] } })
  })

  test('201 keeps fields of the sender, which PATCH replaces, and null forgets', async ({ account }) => {
    const { id } = await made(account, { kept_fields: ['address', 'key_name'] })
    const path = `/v1/endpoints/${id}`
    expect(await account.get(path)).toMatchObject({ body: { kept_fields: ['address', 'key_name'] } })
    const masked = { status: 200, body: { kept_fields: ['address_masked'] } }
    expect(await account.patch(path, { kept_fields: ['address_masked'] })).toMatchObject(masked)
    expect(await account.patch(path, { name: 'masked' })).toMatchObject(masked)
    expect(await account.patch(path, { kept_fields: null })).toMatchObject({ status: 200, body: { kept_fields: [] } })
    expect(await account.patch(path, { kept_fields: ['key_name'] })).toMatchObject({ body: { kept_fields: ['key_name'] } })
    expect(await account.patch(path, { kept_fields: [] })).toMatchObject({ status: 200, body: { kept_fields: [] } })
  })

  test.each(['Authorization', 'proxy-authorization', 'X-API-Key', 'Cookie'])('422 for %s as a header to keep', async (name) => {
    const answer = await (await control().newAccount()).post('/v1/endpoints', { region: 'loc', kept_headers: ['x-a', name] })
    const message = expect.stringContaining(`must not be ${name.toLowerCase()}: this header has keys or sessions`)
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ path: 'kept_headers.1', message }] } })
  })

  test('201 with a name; 409 if another endpoint of the account has it, and none once that is deleted', async ({ account }) => {
    const { id } = await made(account, { name: ' checkout ' })
    expect(await account.get(`/v1/endpoints/${id}`)).toMatchObject({ body: { name: 'checkout' } })
    const taken = { status: 409, body: { error: 'conflict' } }
    expect(await account.post('/v1/endpoints', { region: 'loc', name: 'checkout' })).toMatchObject(taken)
    const { id: other } = await made(account, { name: 'orders' })
    expect(await account.patch(`/v1/endpoints/${other}`, { name: 'checkout' })).toMatchObject(taken)
    expect(await account.patch(`/v1/endpoints/${id}`, { name: null })).toMatchObject({
      ...{ status: 200, body: { name: expect.stringMatching(label) } },
    })
    expect(await account.patch(`/v1/endpoints/${other}`, { name: 'checkout' })).toMatchObject({ body: { name: 'checkout' } })
    expect(await made(await control().newAccount(), { name: 'checkout' })).toMatchObject({ name: 'checkout' })
    expect(await account.delete(`/v1/endpoints/${other}?force=true`)).toMatchObject({ status: 200 })
    expect(await made(account, { name: 'checkout' })).toMatchObject({ name: 'checkout' })
  })

  test('201 without a name has its label, which null restores unless another endpoint has taken it', async ({ account }) => {
    const { id, name } = await made(account)
    expect(name).toMatch(label)
    const path = `/v1/endpoints/${id}`
    const taken = { status: 409, body: { error: 'conflict' } }
    expect(await account.post('/v1/endpoints', { region: 'loc', name })).toMatchObject(taken)
    expect(await account.patch(path, { name: 'checkout' })).toMatchObject({ status: 200, body: { name: 'checkout' } })
    expect(await account.patch(path, { name: null })).toMatchObject({ status: 200, body: { name } })
    await account.patch(path, { name: 'checkout' })
    expect(await made(account, { name })).toMatchObject({ name })
    expect(await account.patch(path, { name: null })).toMatchObject(taken)
    expect(await account.get(path)).toMatchObject({ body: { name: 'checkout' } })
  })

  test('201 has a host of its own under the base domain', async () => {
    await using own = await newControl({ environment: { INLET_BASE_DOMAIN: 'ingest.example' } })
    const account = await own.newAccount()
    const [one, two] = [await made(account), await made(account)]
    expect(one.ingest_host).toMatch(/^[a-z][a-z0-9]+\.loc\.ingest\.example$/)
    expect(one.ingest_host).not.toBe(two.ingest_host)
  })

  test.each([
    [{}, 'region'],
    [{ region: 'LOC' }, 'region'],
    [{ region: 'loc', segment_bytes: 7_999_999 }, 'segment_bytes'],
    [{ region: 'loc', segment_bytes: 1_000_000_001 }, 'segment_bytes'],
    [{ region: 'loc', segment_max_age_seconds: 0 }, 'segment_max_age_seconds'],
    [{ region: 'loc', segment_max_age_seconds: 3601 }, 'segment_max_age_seconds'],
    [{ region: 'loc', name: ' ' }, 'name'],
    [{ region: 'loc', name: 'a\u202eb' }, 'name'],
    [{ region: 'loc', name: 'a\u0085b' }, 'name'],
    [{ region: 'loc', output_formats: [] }, 'output_formats'],
    [{ region: 'loc', output_formats: ['csv'] }, 'output_formats.0'],
    [{ region: 'loc', output_formats: ['parquet', 'parquet'] }, 'output_formats'],
    [{ region: 'loc', destination_id: 'x' }, 'destination_id'],
    [{ region: 'loc', destination_id: newId() }, 'destination_id'],
    [{ region: 'loc', mqtt_config: { max_connections: 0 } }, 'mqtt_config.max_connections'],
    [{ region: 'loc', mqtt_config: { qos_max: 2 } }, 'mqtt_config.qos_max'],
    [{ region: 'loc', mqtt_config: { keepalive_max_s: 9 } }, 'mqtt_config.keepalive_max_s'],
    [{ region: 'loc', kept_headers: ['x a'] }, 'kept_headers.0'],
    [{ region: 'loc', kept_headers: ['x-a:'] }, 'kept_headers.0'],
    [{ region: 'loc', kept_headers: [''] }, 'kept_headers.0'],
    [{ region: 'loc', kept_headers: ['a'.repeat(65)] }, 'kept_headers.0'],
    [{ region: 'loc', kept_headers: ['x-a', 'X-A'] }, 'kept_headers'],
    [{ region: 'loc', kept_headers: Array.from({ length: 17 }, (_, n) => `x-${n}`) }, 'kept_headers'],
    [{ region: 'loc', kept_fields: ['client_id'] }, 'kept_fields.0'],
    [{ region: 'loc', kept_fields: ['key_name', 'key_name'] }, 'kept_fields'],
    [{ region: 'loc', kept_fields: ['address', 'address_masked'] }, 'kept_fields'],
    [{ region: 'loc', kept_fields: 'address' }, 'kept_fields'],
    [{ region: 'loc', segmentBytes: 1 }, 'segmentBytes'],
  ])('422 for %j names %s', async (body, path) => {
    const answer = await (await control().newAccount()).post('/v1/endpoints', body)
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ path }] } })
  })
})

describe('GET /v1/endpoints', () => {
  test('200 for any token, newest first', async ({ account }) => {
    const ids = [(await made(account)).id, (await made(account)).id, (await made(account)).id]
    for (const scope of ['admin', 'metrics', 'ingest'] as const) {
      const { status, body } = await account.as(scope).get('/v1/endpoints?limit=2')
      expect({ status, total: body.total, next_offset: body.next_offset }).toEqual({ status: 200, total: 3, next_offset: 2 })
      const rest = await account.as(scope).get('/v1/endpoints?offset=2')
      expect([...body.items, ...rest.body.items].map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
      expect(rest.body.next_offset).toBeNull()
    }
  })

  test('200 filters by the computed status, and pages the result', async ({ account }) => {
    for (let index = 0; index < 3; index += 1) await made(account, { region: newRegion() })
    expect(await account.get('/v1/endpoints?status=deploying&limit=2')).toMatchObject({
      status: 200,
      body: { total: 3, next_offset: 2, items: [{ status: 'deploying' }, { status: 'deploying' }] },
    })
    expect(await account.get('/v1/endpoints?status=active')).toMatchObject({ body: { total: 0, items: [], next_offset: null } })
    expect(await account.get('/v1/endpoints?status=all')).toMatchObject({ body: { total: 3 } })
  })

  test('200 finds a name in each of its Unicode forms, which is one name', async ({ account }) => {
    const { id, name } = await made(account, { name: 'caf\u00e9' })
    expect(await account.post('/v1/endpoints', { region: 'loc', name: 'cafe\u0301' })).toMatchObject({ status: 409 })
    expect(await account.get('/v1/endpoints?name=cafe%CC%81')).toMatchObject({ body: { items: [{ id, name }] } })
  })

  test('200 filters by name, given or not, with any status', async () => {
    const [account, other] = [await control().newAccount(), await control().newAccount()]
    const [given, label] = [await made(account, { name: 'checkout', region: newRegion() }), await made(account)]
    await made(other, { name: 'checkout' })
    const ids = async (query: string) =>
      (await account.as('metrics').get(`/v1/endpoints?${query}`)).body.items.map(({ id }: { id: string }) => id)
    expect(await ids('name=checkout')).toEqual([given.id])
    expect(await ids(`name=${label.name}&limit=1`)).toEqual([label.id])
    expect(await ids('name=checkout&status=deploying')).toEqual([given.id])
    expect(await ids('name=checkout&status=paused')).toEqual([])
    expect(await ids(`name=${label.name.slice(1)}&status=deploying`)).toEqual([])
    expect(await account.get('/v1/endpoints?name=nobody')).toMatchObject({ status: 200, body: { total: 0, items: [] } })
  })

  test('422 for an unknown status', async ({ account }) => {
    expect(await account.get('/v1/endpoints?status=broken')).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'status' }] },
    })
  })
})

describe('GET /v1/regions', () => {
  test('200 lists the regions that have nodes, for any token', async ({ account }) => {
    const region = newRegion()
    await TestNode.register(control(), region)
    for (const scope of ['admin', 'metrics', 'ingest'] as const) {
      const { status, body } = await account.as(scope).get('/v1/regions')
      expect([status, body.items]).toEqual([200, expect.arrayContaining([{ region }])])
    }
    // The answer to a region without nodes says where there are some.
    const { status_reasons } = await made(account, { region: newRegion() })
    expect(status_reasons).toEqual([expect.stringMatching(`^no node serves region ...; regions with nodes: .*${region}`)])
  })
})

describe('PATCH /v1/endpoints/{id}', () => {
  test('200 changes the given settings, and null restores a default', async ({ account }) => {
    const { id } = await made(account, { segment_bytes: 8_000_000, segment_max_age_seconds: 5, mqtt_config: {} })
    const { id: destination_id } = await aDestination(account)
    const path = `/v1/endpoints/${id}`
    expect(await account.patch(path, { destination_id, output_formats: ['segments'] })).toMatchObject({
      status: 200,
      body: {
        destination_id,
        destination_name: 'lake',
        output_formats: ['segments'],
        segment_bytes: 8_000_000,
        mqtt_config: mqtt,
      },
    })
    const nulls = { destination_id: null, segment_bytes: null, segment_max_age_seconds: null, mqtt_config: null }
    expect(await account.patch(path, nulls)).toMatchObject({
      status: 200,
      body: { destination_id: null, segment_bytes: 67_108_864, segment_max_age_seconds: 60, mqtt_config: null },
    })
    expect(await account.get(path)).toMatchObject({ body: { output_formats: ['segments'] } })
    expect(await account.patch(path, {})).toMatchObject({ status: 200 })
  })

  test('200 replaces compaction, with defaults, and null turns it off; 422 for what is out of bounds', async ({ account }) => {
    const path = `/v1/endpoints/${(await made(account)).id}`
    const patch = async (compaction: unknown) => account.patch(path, { compaction })
    expect(await patch({ period: 'day', except_views: ['a'], remove_after_hours: 1 })).toMatchObject({ status: 200 })
    const compaction = { period: 'hour', except_views: [], remove_after_hours: null }
    expect(await patch({ period: 'hour' })).toMatchObject({ status: 200, body: { compaction } })
    for (const [field, wrong] of [
      ['period', {}],
      ['period', { period: 'week' }],
      ['remove_after_hours', { period: 'day', remove_after_hours: 0 }],
      ['remove_after_hours', { period: 'day', remove_after_hours: 8_761 }],
      ['except_views', { period: 'day', except_views: ['a', 'a'] }],
      ['except_views.0', { period: 'day', except_views: ['A'] }],
    ] as const)
      expect(await patch(wrong)).toMatchObject({ status: 422, body: { errors: [{ path: `compaction.${field}` }] } })
    expect(await account.get(path)).toMatchObject({ body: { compaction } })
    expect(await patch(null)).toMatchObject({ status: 200, body: { compaction: null } })
  })

  test('200 merges mqtt_config: fields that are left out keep their values, and null restores a default', async ({ account }) => {
    const { id } = await made(account)
    const patched = async (mqtt_config: object | null) => {
      const { status, body } = await account.patch(`/v1/endpoints/${id}`, { mqtt_config })
      expect(status).toBe(200)
      return body.mqtt_config
    }
    expect(await patched({ max_connections: 5 })).toEqual({ ...mqtt, max_connections: 5 })
    expect(await patched({ qos_max: 0, enabled: false })).toEqual({ ...mqtt, max_connections: 5, qos_max: 0, enabled: false })
    expect(await patched({})).toEqual({ ...mqtt, max_connections: 5, qos_max: 0, enabled: false })
    expect(await patched({ max_connections: null, enabled: null })).toEqual({ ...mqtt, qos_max: 0 })
    expect(await patched(null)).toBeNull()
    expect(await patched({})).toEqual(mqtt)
  })

  test('422 for another region and an unknown destination', async ({ account }) => {
    const { id } = await made(account)
    const path = `/v1/endpoints/${id}`
    expect(await account.patch(path, { region: 'xyz' })).toMatchObject({ status: 422, body: { errors: [{ path: 'region' }] } })
    expect(await account.patch(path, { destination_id: newId() })).toMatchObject({ status: 422 })
  })
})

describe('GET /v1/endpoints by status', () => {
  test('the filter by status returns exactly the endpoints with that status', async () => {
    await using own = await newControl()
    const account = await own.newAccount()
    const { id: valid } = await aDestination(account, { name: 'valid' })
    await account.post(`/v1/destinations/${valid}/validate`)
    const { id: pending } = await aDestination(account, { name: 'pending' })
    const failed = await made(account, { region: 'non', destination_id: valid })
    own.clock.advance(301_000)
    const wellNode = await TestNode.register(own, 'wel')
    const illNode = await TestNode.register(own, 'ill')
    const [active, unvalidated, unbound, blocked, late, lagging] = [
      await made(account, { region: 'wel', destination_id: valid }),
      await made(account, { region: 'wel', destination_id: pending }),
      await made(account, { region: 'wel' }),
      await made(account, { region: 'wel', destination_id: valid }),
      await made(account, { region: 'wel', destination_id: valid }),
      await made(account, { region: 'wel', destination_id: valid }),
    ]
    const served = await made(account, { region: 'ill', destination_id: valid })
    const [paused, draining] = [await made(account, { region: 'wel' }), await made(account, { region: 'wel' })]
    const sealedAt = (secondsAgo: number) => new Date(own.clock.now() - secondsAgo * 1000).toISOString()
    await wellNode.heartbeat(
      {},
      {
        lag: [
          aLag(blocked.id, { blocked_by: 'a view fails' }),
          aLag(late.id, { oldest_sealed_at: sealedAt(400) }),
          aLag(lagging.id, { oldest_sealed_at: sealedAt(100) }),
        ],
      },
    )
    await illNode.heartbeat()
    await illNode.heartbeat({ healthy: false, reasons: ['the disk is full'] })
    const deploying = await made(account, { region: 'new', destination_id: valid })
    await account.post(`/v1/endpoints/${paused.id}/pause`)
    await account.delete(`/v1/endpoints/${draining.id}`)

    const ids = async (status: string) => {
      const { body } = await account.get(`/v1/endpoints?status=${status}&limit=200`)
      expect(body.items.map((item: { status: string }) => item.status)).toEqual(body.items.map(() => status))
      expect(body.total).toBe(body.items.length)
      return body.items.map(({ id }: { id: string }) => id).toSorted()
    }
    const sorted = (...endpoints: readonly { id: string }[]) => endpoints.map(({ id }) => id).toSorted()
    expect(await ids('active')).toEqual(sorted(active, lagging))
    expect(await ids('degraded')).toEqual(sorted(unvalidated, unbound, blocked, late, served))
    expect(await ids('deploying')).toEqual(sorted(deploying))
    expect(await ids('failed')).toEqual(sorted(failed))
    expect(await ids('paused')).toEqual(sorted(paused))
    expect(await ids('draining')).toEqual(sorted(draining))
  })
})

describe('the status of an endpoint', () => {
  async function served() {
    const account = await control().newAccount()
    const region = newRegion()
    const { id: destination_id } = await aDestination(account)
    await account.post(`/v1/destinations/${destination_id}/validate`)
    const endpoint = await made(account, { region, destination_id })
    const node = await TestNode.register(control(), region)
    const read = async () => (await account.get(`/v1/endpoints/${endpoint.id}`)).body
    return { account, region, endpoint, node, read }
  }

  test('deploying until a healthy node has applied its epoch; then active, with the addresses of the node', async () => {
    const { endpoint, node, read } = await served()
    expect(await read()).toMatchObject({ status: 'deploying', dns_ipv4: [] })
    await node.heartbeat({ applied_epoch: 0 })
    expect(await read()).toMatchObject({
      status: 'deploying',
      dns_ipv4: [],
      status_reasons: [expect.stringContaining('does not know')],
    })
    await node.heartbeat()
    expect(await read()).toMatchObject({
      status: 'active',
      status_reasons: [],
      dns_ipv4: ['127.0.0.1'],
      dns_ipv6: ['::1'],
      ingest_host: '127.0.0.1:9999',
      ingest_url: `http://127.0.0.1:9999/v1/ingest?endpoint=${endpoint.id}`,
    })
  })

  test('degraded if its log cannot be written to on a node that is healthy, and listed as such', async () => {
    const { account, endpoint, node, read } = await served()
    const reason = '000000000007-abcdefghij.open cannot be read (EIO)'
    await node.heartbeat({ blocked: [{ endpoint_id: endpoint.id, reason }] })
    expect(await read()).toMatchObject({
      status: 'degraded',
      status_reasons: [`node ${node.id}: ${reason}`],
      dns_ipv4: ['127.0.0.1'],
    })
    expect(await account.get('/v1/endpoints?status=degraded')).toMatchObject({ body: { items: [{ id: endpoint.id }] } })
    await node.heartbeat()
    expect(await read()).toMatchObject({ status: 'active' })
  })

  test('degraded while a node that is gone last reported data, and listed as such', async () => {
    await using own = await newControl()
    const account = await own.newAccount()
    const { id: destination_id } = await aDestination(account)
    await account.post(`/v1/destinations/${destination_id}/validate`)
    const { id, region } = await made(account, { destination_id })
    const [lost, present] = [await TestNode.register(own, region), await TestNode.register(own, region)]
    await lost.heartbeat({}, { lag: [aLag(id, { undelivered_segments: 0, open_segments: 1 })] })
    own.clock.advance(3_601_000)
    const { body } = await own.call('POST', '/v1/token/exchange', { api_key: account.api_key, scope: 'admin' })
    const owner = clientOf(own.call, body.access_token)
    await present.heartbeat()
    expect(await owner.get(`/v1/endpoints/${id}`)).toMatchObject({
      body: {
        status: 'degraded',
        status_reasons: [expect.stringMatching(`^node ${lost.id} last reported 1 segment .*: start it again$`)],
        lag: { open_segments: 1 },
      },
    })
    expect(await owner.get('/v1/endpoints?status=degraded')).toMatchObject({ body: { items: [{ id }] } })
  })

  test('names what fills the disk of a node to its owner, and to nobody else', async () => {
    const { account, region, endpoint, node, read } = await served()
    const neighbour = await control().newAccount()
    const { body: theirs } = await neighbour.post('/v1/endpoints', { region })
    const denied = 'access denied to the bucket their-lake'
    const full = { healthy: false, reasons: ['99 bytes wait on disk for delivery; the budget is 9'], disk_full: true }
    await node.heartbeat()
    await node.heartbeat(full, { lag: [aLag(theirs.id, { undelivered_bytes: 90, blocked_by: denied }), aLag(endpoint.id)] })
    expect((await neighbour.get(`/v1/endpoints/${theirs.id}`)).body.status_reasons).toEqual([
      `node ${node.id} is not healthy: ${full.reasons[0]}; most of it is data of endpoint ${theirs.name} (${theirs.id}): ${denied}`,
      denied,
    ])
    const { status_reasons } = await read()
    expect(status_reasons).toEqual([
      `node ${node.id} is not healthy: ${full.reasons[0]}; most of it is data of another account; GET /v1/nodes tells the operator why`,
    ])
    const { body: second } = await account.post('/v1/endpoints', { region })
    await node.heartbeat(full, { lag: [aLag(endpoint.id, { blocked_by: 'access denied to the bucket my-lake' })] })
    expect((await account.get(`/v1/endpoints/${second.id}`)).body.status_reasons[0]).toContain(
      `endpoint ${endpoint.name} (${endpoint.id}): access denied to the bucket my-lake`,
    )
    const listed = JSON.stringify((await neighbour.get('/v1/endpoints')).body)
    expect(listed).not.toContain('my-lake')
  })

  test('reports the delivery lag over all nodes', async () => {
    const { region, endpoint, node, read } = await served()
    const other = await TestNode.register(control(), region, { ipv4: ['127.0.0.2'], ipv6: [] })
    const sealed = (secondsAgo: number) => new Date(Date.now() - secondsAgo * 1000).toISOString()
    const lag = aLag(endpoint.id, { undelivered_segments: 2, undelivered_bytes: 100 })
    expect((await read()).lag).toEqual({
      open_segments: 0,
      undelivered_segments: 0,
      parked_segments: 0,
      quarantined_segments: 0,
      undelivered_bytes: 0,
      oldest_sealed_at: null,
      oldest_age_seconds: null,
    })
    const oldest = sealed(60)
    await node.heartbeat({}, { lag: [{ ...lag, oldest_sealed_at: sealed(30) }] })
    await other.heartbeat({}, { lag: [{ ...lag, oldest_sealed_at: oldest }] })
    const shown = (await read()).lag
    expect(shown).toMatchObject({ undelivered_segments: 4, undelivered_bytes: 200, oldest_sealed_at: oldest })
    const kinds = { open_segments: 1, parked_segments: 2, quarantined_segments: 3 }
    await node.heartbeat({}, { lag: [{ ...lag, ...kinds }] })
    expect((await read()).lag).toMatchObject({ ...kinds, undelivered_segments: 6 })
    expect(shown.oldest_age_seconds).toBeGreaterThanOrEqual(60)
    expect(shown.oldest_age_seconds).toBeLessThan(90)
  })
})
