import { describe, expect } from 'vitest'
import { newNodeSecret, printNodeCredential } from '#auth/node-credential.ts'
import { controlLimits } from '#control/limits.ts'
import { newId } from '#model/id.ts'
import { keyLimits, quotaLimits } from '#model/limits.ts'
import { reportLimits } from '#model/node-protocol.ts'
import { parseUpdates } from '#node/snapshot-sections.ts'
import { insertApiKey, revokeApiKey } from '#store/accounts/api-keys.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import {
  clientOf,
  createAccount,
  newControl,
  newRegion,
  nodeToken,
  operatorToken,
  testWithAccount,
  useControl,
} from '../support/control.ts'
import { newDatabase } from '../support/databases.ts'
import { aLag } from '../support/lags.ts'
import { aDestination, aPublishedView } from '../support/set-up.ts'
import { everyKind, TestNode } from '../support/test-node.ts'

const control = useControl()
const test = testWithAccount(control)

const definition = { columns: [{ name: 'event', type: 'VARCHAR', path: '$.event' }] }

describe('the node API', () => {
  test('is reachable only on its own listener, and nothing else is reachable there', async () => {
    const authorization = `Bearer ${nodeToken}`
    for (const [method, path] of [
      ['POST', 'register'],
      ['POST', 'jobs/lease'],
      ['GET', 'committed-seqs'],
      ['GET', 'other'],
    ] as const) {
      const answer = await fetch(`${control().url}/internal/v1/${path}`, { method, headers: { authorization } })
      expect(answer.status, path).toBe(404)
    }
    for (const path of ['/v1/endpoints', '/healthz', '/metrics', '/openapi/openapi.json', '/internal/v1/other'])
      expect((await fetch(control().app.nodeApiUrl + path, { headers: { authorization } })).status, path).toBe(404)
  })
})

describe('the credential of a node', () => {
  test.each([
    ['POST', 'join'],
    ['POST', 'register'],
    ['POST', 'snapshot'],
    ['POST', 'snapshot/check'],
    ['GET', 'committed-seqs?node_id=x'],
    ['POST', 'heartbeat'],
    ['GET', 'heartbeat?node_id=x'],
    ['POST', 'usage'],
    ['POST', 'key-use'],
    ['POST', 'series'],
    ['POST', 'commits'],
    ['POST', 'commits/lookup'],
    ['POST', 'commits/delivered'],
    ['GET', 'certificate'],
    ['GET', 'destinations/x'],
    ['POST', 'jobs/lease'],
    ['POST', 'jobs/report'],
    ['POST', 'scrub/endpoints'],
    ['POST', 'scrub/commits'],
    ['POST', 'scrub/known'],
  ])('401 without it: %s %s', async (method, path) => {
    const account = await control().newAccount()
    const { body } = await control().call('POST', '/v1/token/exchange', { api_key: account.api_key, scope: 'admin' })
    const node = await TestNode.register(control(), newRegion())
    const stranger = printNodeCredential(node.id, newNodeSecret())
    const wrong = ['wrong', body.access_token, operatorToken, stranger, printNodeCredential(newId(), node.secret), node.secret]
    // The join secret opens nothing but the way in.
    if (path !== 'join') wrong.push(nodeToken)
    for (const authorization of ['', ...wrong.map((token) => `Bearer ${token}`)]) {
      const answer = await control().call(method, `/internal/v1/${path}`, method === 'POST' ? {} : undefined, { authorization })
      expect(answer, authorization).toMatchObject({ status: 401, body: { error: 'unauthorized' } })
    }
  })

  test('is rejected by the management API, as the join secret is', async () => {
    const node = await TestNode.register(control(), newRegion())
    for (const token of [nodeToken, printNodeCredential(node.id, node.secret)])
      expect(await clientOf(control().call, token).get('/v1/endpoints')).toMatchObject({ status: 401 })
  })
})

describe('POST /internal/v1/register', () => {
  const place = (region: string) => ({ region, ipv4: [], ipv6: [], ingest_address: 'node.example:443' })

  test('200 updates the addresses; 403 for another region, which the node has to join', async () => {
    const node = await TestNode.register(control(), newRegion())
    expect(await node.call('POST', 'register', place(node.region))).toMatchObject({
      status: 200,
      body: { epoch: expect.any(Number) },
    })
    expect(await node.call('POST', 'register', place('mov'))).toMatchObject({ status: 403, body: { error: 'forbidden' } })
    expect((await node.snapshot()).region).toBe(node.region)
    expect(await node.join(place('mov'))).toMatchObject({ status: 200 })
    expect((await node.snapshot()).region).toBe('mov')
  })

  test('422 for invalid addresses', async () => {
    const node = await TestNode.register(control(), newRegion())
    for (const wrong of [
      { ipv4: ['localhost'], ipv6: ['127.0.0.1'] },
      { ipv4: ['0.0.0.0'] },
      { ipv4: ['192.0.2.1', '224.0.0.1'] },
      { ipv6: ['::'] },
      { ipv6: ['ff02::1'] },
      { ipv6: ['::ffff:192.0.2.1'] },
      { ipv4: Array(65).fill('192.0.2.1') },
    ]) {
      expect(await node.call('POST', 'register', { ...place(node.region), ...wrong })).toMatchObject({ status: 422 })
      expect(await node.join({ ...place(node.region), ...wrong })).toMatchObject({ status: 422 })
    }
    const unspecified = await node.call('POST', 'register', { ...place(node.region), ipv4: ['0.0.0.0'] })
    expect(unspecified.body.errors).toEqual([
      { path: 'ipv4.0', message: expect.stringContaining('must be an address that clients can connect to') },
    ])
    expect(await node.join({ secret: 'short' })).toMatchObject({ status: 422 })
  })
})

describe('POST /internal/v1/heartbeat', () => {
  test('200: a node that leaves gets no new clients, and may stop at once where no DNS is managed', async () => {
    const account = await createAccount(control().call)
    const region = newRegion()
    const { body: endpoint } = await account.post('/v1/endpoints', { region })
    const [leaving, staying] = [await TestNode.register(control(), region), await TestNode.register(control(), region)]
    await staying.registerAgain({ ipv4: ['127.0.0.2'] })
    for (const node of [leaving, staying]) await node.heartbeat()
    const read = async () => (await account.get(`/v1/endpoints/${endpoint.id}`)).body
    expect((await read()).dns_ipv4.toSorted()).toEqual(['127.0.0.1', '127.0.0.2'])
    const { epoch } = await leaving.snapshot()
    const beat = { process: 'ingest', node_id: leaving.id, applied_epoch: epoch, healthy: true, reasons: [] }
    const more = { disk_full: false, leaving: true, blocked: [] }
    expect(await leaving.call('POST', 'heartbeat', { ...beat, ...more })).toMatchObject({
      status: 200,
      body: { may_stop_in_seconds: 0 },
    })
    expect(await read()).toMatchObject({ dns_ipv4: ['127.0.0.2'] })
    expect((await read()).status_reasons).toContain(`node ${leaving.id} is shutting down`)
    await leaving.heartbeat()
    expect((await read()).dns_ipv4).toHaveLength(2)
  })

  test('200 for twenty thousand logs of unknown endpoints, with a reason each; 422 for more', async () => {
    const node = await TestNode.register(control(), newRegion())
    const lag = Array.from({ length: reportLimits.logsMax }, () => aLag(newId(), { blocked_by: 'x'.repeat(1_000) }))
    await node.heartbeat({}, { lag })
    const heartbeat = { process: 'delivery', node_id: node.id, applied_epoch: 0, healthy: true, reasons: [] }
    const more = { ...heartbeat, lag: [...lag, aLag(newId())] }
    expect(await node.call('POST', 'heartbeat', more)).toMatchObject({ status: 422 })
    await node.heartbeat()
  })

  test('422 for too many reasons or addresses, which are not looked at, and for long reasons', async () => {
    const node = await TestNode.register(control(), newRegion())
    const many = Array<number>(100_000).fill(1)
    const heartbeat = { node_id: node.id, applied_epoch: 0, healthy: true, reasons: many }
    for (const more of [
      { process: 'delivery', lag: [] },
      { process: 'ingest', disk_full: false, blocked: [] },
    ]) {
      const answer = await node.call('POST', 'heartbeat', { ...heartbeat, ...more })
      expect(answer).toMatchObject({ status: 422, body: { errors: [{ path: 'reasons' }] } })
      expect(answer.body.errors).toHaveLength(1)
    }
    const long = 'x'.repeat(1_001)
    const process = { process: 'delivery', node_id: node.id, applied_epoch: 0, healthy: false }
    for (const wrong of [
      { reasons: [long], lag: [] },
      { reasons: [], lag: [aLag(newId(), { blocked_by: long })] },
    ])
      expect(await node.call('POST', 'heartbeat', { ...process, ...wrong })).toMatchObject({ status: 422 })
    const addresses = { region: node.region, ipv4: many.slice(0, 2_000), ipv6: [], ingest_address: 'a:1' }
    expect((await node.call('POST', 'register', addresses)).body.errors).toHaveLength(1)
  })

  test('422 for an unknown process', async () => {
    const node = await TestNode.register(control(), newRegion())
    expect(await node.call('POST', 'heartbeat', { process: 'other', node_id: node.id })).toMatchObject({ status: 422 })
  })
})

describe('POST /internal/v1/usage', () => {
  test('200 counts what nodes accepted, for their account, and returns what all of them did', async () => {
    const account = await createAccount(control().call)
    const region = newRegion()
    await account.post('/v1/endpoints', { region })
    const [one, two] = [await TestNode.register(control(), region), await TestNode.register(control(), region)]
    await one.heartbeat()
    const report = async (node: TestNode, bytes: number) => {
      const day = new Date().toISOString().slice(0, 10)
      const used = { account_id: account.account_id, day, bytes, records: bytes, records_per_second: 4 }
      const { body } = await node.call('POST', 'usage', { node_id: node.id, run: 'a', accounts: [used] })
      return { nodes: body.healthy_nodes, bytes: body.accounts[0].bytes }
    }
    await two.snapshot()
    expect(await report(one, 100)).toEqual({ nodes: 1, bytes: 100 })
    expect(await report(two, 11)).toEqual({ nodes: 1, bytes: 111 })
    await two.heartbeat()
    expect(await report(one, 200)).toEqual({ nodes: 2, bytes: 211 })
    expect((await account.get('/v1/quotas')).body.quotas).toMatchObject({
      ...{ bytes_per_day: { used: 211 }, records_per_second: { used: 8 } },
    })
  })

  test('403 for another node, 422 for other reports', async () => {
    const node = await TestNode.register(control(), newRegion())
    const report = { node_id: node.id, run: 'a', accounts: [] }
    expect(await node.call('POST', 'usage', report)).toMatchObject({ status: 200, body: { healthy_nodes: 1, accounts: [] } })
    expect(await node.call('POST', 'usage', { ...report, node_id: newId() })).toMatchObject({ status: 403 })
    for (const wrong of [{ run: '' }, { accounts: [{ bytes: -1 }] }])
      expect(await node.call('POST', 'usage', { ...report, ...wrong })).toMatchObject({ status: 422 })
  })
})

describe('POST /internal/v1/key-use', () => {
  test('200 records the minute for keys of the region of the node, and for no others', async () => {
    const [account, foreign] = [await createAccount(control().call), await createAccount(control().call)]
    const [region, elsewhere] = [newRegion(), newRegion()]
    await account.post('/v1/endpoints', { region })
    await foreign.post('/v1/endpoints', { region: elsewhere })
    const keyOf = async (owner: typeof account) => (await owner.post('/v1/keys', { name: 'device', scopes: ['ingest'] })).body.id
    const [own, other] = [await keyOf(account), await keyOf(foreign)]
    const lastUse = async (owner: typeof account, key: string) =>
      (await owner.get('/v1/keys')).body.items.find(({ id }: { id: string }) => id === key).last_used_at
    expect(await lastUse(account, own)).toBeNull()
    const node = await TestNode.register(control(), region)
    await node.snapshot()
    const report = { node_id: node.id, keys: [own, other, newId()] }
    expect(await node.call('POST', 'key-use', report)).toMatchObject({ status: 200, body: { recorded: 1 } })
    expect(await lastUse(account, own)).toMatch(/^20.*T\d\d:\d\d:00\.000Z$/)
    expect(await lastUse(foreign, other)).toBeNull()
  })

  test('403 for another node, 422 for other reports', async () => {
    const node = await TestNode.register(control(), newRegion())
    expect(await node.call('POST', 'key-use', { node_id: newId(), keys: [] })).toMatchObject({ status: 403 })
    for (const keys of ['all', ['all'], Array.from({ length: keyLimits.reportedMax + 1 }, newId)])
      expect(await node.call('POST', 'key-use', { node_id: node.id, keys })).toMatchObject({ status: 422 })
  })
})

describe('GET /internal/v1/heartbeat', () => {
  test('200 has the age of the last heartbeat, null before the first; 403 for another node', async () => {
    const node = await TestNode.register(control(), newRegion())
    const ask = (id = node.id) => node.call('GET', `heartbeat?node_id=${id}`)
    expect(await ask()).toMatchObject({ status: 200, body: { seconds_ago: null } })
    await node.heartbeat()
    control().clock.advance(5_000)
    const { body } = await ask()
    expect(Math.floor(body.seconds_ago)).toBe(5)
    expect(await ask(newId())).toMatchObject({ status: 403 })
  })
})

describe('GET /internal/v1/destinations/{id}', () => {
  test('200 has what delivery needs to write there, and the account', async ({ account }) => {
    const region = newRegion()
    const node = await TestNode.register(control(), region)
    await account.post('/v1/endpoints', { region })
    const { id, external_id } = await aDestination(account, { prefix: 'p' })
    const { status, body } = await node.call('GET', `destinations/${id}`)
    expect([status, body]).toEqual([
      200,
      {
        account_id: expect.any(String),
        destination: {
          ...{ id, external_id, bucket: 'lake', prefix: 'p', region: 'eu-central-1', kms_key_arn: null, path_style: false },
          ...{ encryption: 'sse-s3', checksums: 'standard', allowed_buckets: [] },
          role_arn: 'arn:aws:iam::123456789012:role/ingest',
        },
      },
    ])
  })

  test('404 for an unknown destination', async () => {
    const node = await TestNode.register(control(), newRegion())
    expect(await node.call('GET', `destinations/${newId()}`)).toMatchObject({ status: 404, body: { error: 'not_found' } })
  })
})

describe('POST /internal/v1/snapshot', () => {
  test('200 has everything that a node of the region needs, and nothing of another region', async ({ account }) => {
    const region = newRegion()
    const destination = await aDestination(account, { prefix: 'p' })
    const view = await aPublishedView(account, 'events', definition)
    const { body: endpoint } = await account.post('/v1/endpoints', {
      region,
      destination_id: destination.id,
      segment_max_age_seconds: 2,
    })
    await account.post('/v1/endpoints', { region: newRegion() })
    const { body: binding } = await account.post(`/v1/endpoints/${endpoint.id}/views`, { view_id: view.id, is_required: true })
    const node = await TestNode.register(control(), region)
    const snapshot = await node.snapshot()
    const { id, bucket, prefix, region: bucketRegion, role_arn, external_id, kms_key_arn, path_style } = destination
    const headers = { encryption: 'sse-s3', checksums: 'standard' }
    expect(snapshot.endpoints).toEqual([
      {
        ...{
          id: endpoint.id,
          account_id: account.account_id,
          account_suspended: false,
          account_weight: 1,
          account_quotas: {
            bytes_per_day: quotaLimits.bytes_per_day.default,
            records_per_second: quotaLimits.records_per_second.default,
          },
          ingest_host: null,
          desired_state: 'active',
        },
        ...{
          segment_bytes: 67_108_864,
          segment_max_age_seconds: 2,
          output_formats: ['parquet_views', 'parquet'],
          mqtt_config: null,
          kept_headers: [],
          kept_fields: [],
          copies: 1,
        },
        destination: {
          id,
          bucket,
          prefix,
          region: bucketRegion,
          role_arn,
          external_id,
          kms_key_arn,
          path_style,
          ...headers,
          allowed_buckets: [],
        },
        views: [
          {
            binding_id: binding.id,
            view_id: view.id,
            name: 'events',
            version: 1,
            definition,
            is_required: true,
            activated_at: binding.activated_at,
            deactivated_at: null,
            canary_start_ts: null,
          },
        ],
        committed_seq: -1,
      },
    ])
    expect(snapshot.token_issuer).toBe('http://inlet.test')
    expect(snapshot.jwks.keys).toHaveLength(1)
    expect(snapshot.keys).toContainEqual(
      expect.objectContaining({ id: account.key_id, scopes: ['ingest', 'metrics', 'query', 'admin'] }),
    )
  })

  test('a key is sent where its account has an endpoint; a revoked one while a token may be valid', async ({ account }) => {
    const region = newRegion()
    const node = await TestNode.register(control(), region)
    const keys = async () => (await node.snapshot()).keys.map(({ id }) => id)
    expect(await keys()).toEqual([])
    await account.post('/v1/endpoints', { region })
    expect(await keys()).toEqual([account.key_id])
    const { body } = await account.post(`/v1/keys/${account.key_id}/revoke`)
    expect(await keys()).toEqual([])
    const tokens_until = new Date(Date.parse(body.revoked_at) + 15 * 60_000).toISOString()
    expect((await node.snapshot()).revoked_keys).toEqual([{ id: account.key_id, tokens_until, name: 'test' }])
    await account.post(`/v1/keys/${account.key_id}/revoke?now=true`)
    expect((await node.snapshot()).revoked_keys).toEqual([{ id: account.key_id, tokens_until: null }])
  })

  test('a node of an older release ends the access of every revoked key', async ({ account }) => {
    const region = newRegion()
    const node = await TestNode.register(control(), region)
    await account.post('/v1/endpoints', { region })
    await account.post(`/v1/keys/${account.key_id}/revoke`)
    const { body } = await node.askSnapshot()
    const sections = body
      .trim()
      .split('\n')
      .map((line: string) => JSON.parse(line))
    expect(sections.flatMap(({ revoked_keys = [] }) => revoked_keys)).toEqual([account.key_id])
  })

  test('an update has only the changed sections', async ({ account }) => {
    const region = newRegion()
    const node = await TestNode.register(control(), region)
    const { body: endpoint } = await account.post('/v1/endpoints', { region })
    const view = await aPublishedView(account, 'events', definition)
    await account.post(`/v1/endpoints/${endpoint.id}/views`, { view_id: view.id })
    await node.snapshot()
    const changed = async () => (await node.update())?.sections.map(({ name }) => name)
    expect(await changed()).toBeUndefined()
    await account.post(`/v1/endpoints/${endpoint.id}/pause`)
    expect(await changed()).toEqual([`endpoints/${endpoint.id.slice(-2)}`])
    const { body: key } = await account.post('/v1/keys', { name: 'k', scopes: ['ingest'] })
    expect(await changed()).toEqual([`keys/${key.id.slice(-2)}`])
  })

  test('a process learns whether it has the newest sections of its kinds', async ({ account }) => {
    const region = newRegion()
    const node = await TestNode.register(control(), region)
    const { body: endpoint } = await account.post('/v1/endpoints', { region })
    expect(await node.isCurrent()).toBe(false)
    await node.snapshot()
    expect(await node.isCurrent()).toBe(true)
    await account.post('/v1/endpoints', { region: newRegion() })
    expect(await node.isCurrent()).toBe(true)
    await account.post(`/v1/endpoints/${endpoint.id}/pause`)
    expect(await node.isCurrent()).toBe(false)
    await node.snapshot()
    expect(await node.isCurrent()).toBe(true)
    expect(await node.call('POST', 'snapshot/check', {})).toMatchObject({ status: 422 })
  })

  test('a process may name its sections by their digest; 409 for one that control does not know', async ({ account }) => {
    const region = newRegion()
    const node = await TestNode.register(control(), region)
    const { body: endpoint } = await account.post('/v1/endpoints', { region })
    const { epoch } = await node.snapshot()
    const first = node.digest
    const ask = (digest: string) =>
      node.call('POST', 'snapshot', { node_id: node.id, epoch, kinds: everyKind, digest, wait_ms: 0 })
    expect(await ask(first)).toMatchObject({ status: 204 })
    for (const what of ['pause', 'resume']) {
      await account.post(`/v1/endpoints/${endpoint.id}/${what}`)
      const { status, body } = await ask(first)
      expect([status, parseUpdates(Buffer.from(body))[0]?.sections.map(({ name }) => name)]).toEqual([
        200,
        [`endpoints/${endpoint.id.slice(-2)}`],
      ])
    }
    expect(await ask('of another control')).toMatchObject({ status: 409 })
    await node.snapshot()
    expect(await ask(node.digest)).toMatchObject({ status: 204 })
  })

  test('a process receives the kinds that it requests', async ({ account }) => {
    const region = newRegion()
    const node = await TestNode.register(control(), region)
    await account.post('/v1/endpoints', { region })
    const { body } = await node.askSnapshot(0, ['endpoints', 'views'])
    const lines: string[] = body.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).kind)).toEqual(['endpoints', 'end'])
  })

  test('a moved node receives the sections of its new region, and the names of those to remove', async ({ account }) => {
    const [from, to] = [newRegion(), newRegion()]
    const node = await TestNode.register(control(), from)
    const { body: old } = await account.post('/v1/endpoints', { region: from })
    await node.snapshot()
    await node.join({ region: to })
    expect((await node.update())?.end.removed).toContain(`endpoints/${old.id.slice(-2)}`)
    expect(await node.snapshot()).toMatchObject({ region: to, endpoints: [], keys: [] })
  })

  test('a node that moves is sent a section also if one change made it the newest in both regions', async () => {
    const [everywhere, elsewhere] = [await control().newAccount(), await control().newAccount()]
    const [from, to] = [newRegion(), newRegion()]
    for (const region of [from, to]) await everywhere.post('/v1/endpoints', { region })
    await elsewhere.post('/v1/endpoints', { region: to })
    const idOfSection = () => `${newId().slice(0, -2)}ab`
    const keys = [elsewhere, everywhere].map(({ account_id }) => ({ account_id, id: idOfSection() }))
    for (const { account_id, id } of keys) {
      const hash = id.replaceAll('-', '').padEnd(64, '0')
      const key = { id, account_id, name: 'k', prefix: 'k', hash, scopes: [], endpoint_ids: null, origins: null }
      await inNewEpoch(control().store, (db) => insertApiKey(db, key, Date.now()))
    }
    const node = await TestNode.register(control(), from)
    await node.snapshot()
    await node.join({ region: to })
    expect((await node.snapshot()).keys.map(({ id }) => id)).toEqual(expect.arrayContaining(keys.map(({ id }) => id)))
  })

  test.each([
    { epoch: -2 },
    { wait_ms: 60_001 },
    { wait_ms: undefined },
    { kinds: [] },
    { kinds: ['secrets'] },
    { have: { 'a name that is too long': 'v' } },
    { have: { 'keys/00': 'v'.repeat(65) } },
    { have: undefined },
    { digest: 'as well' },
  ])('422 for %j', async (wrong) => {
    const node = await TestNode.register(control(), newRegion())
    const request = { node_id: node.id, epoch: -1, kinds: ['keys'], have: {}, wait_ms: 0, ...wrong }
    expect(await node.call('POST', 'snapshot', request)).toMatchObject({ status: 422 })
  })

  test('204 if nothing changed in time; 200 at once for unknown versions, as after a restored backup', async ({ account }) => {
    const region = newRegion()
    const node = await TestNode.register(control(), region)
    await account.post('/v1/endpoints', { region })
    const { epoch } = await node.snapshot()
    expect(await node.askSnapshot(20)).toMatchObject({ status: 204 })
    // The id of no key ends like that.
    const have = { 'keys/zz': 'of-a-lost-change', installation: 'of-a-lost-change' }
    const request = { node_id: node.id, epoch: epoch + 1_000, kinds: ['installation', 'keys'], have, wait_ms: 20_000 }
    const { status, body } = await node.call('POST', 'snapshot', request)
    expect(status).toBe(200)
    expect(body).toContain('"removed":["keys/zz"]')
  })

  test('200 at once for an epoch that control has not reached, as after a restored copy of the same sections', async () => {
    const node = await TestNode.register(control(), newRegion())
    const { epoch } = await node.snapshot()
    const request = { node_id: node.id, kinds: ['endpoints'], have: {}, wait_ms: 20_000 }
    const { status, body } = await node.call('POST', 'snapshot', { ...request, epoch: epoch + 1_000 })
    expect(status).toBe(200)
    expect(JSON.parse(body)).toMatchObject({ kind: 'end', removed: [] })
    expect(JSON.parse(body).epoch).toBeLessThan(epoch + 1_000)
  })

  test('another base URL of control changes the version of every section', async () => {
    await using database = await newDatabase()
    const first = await newControl({ database })
    const node = await TestNode.register(first, 'loc')
    expect((await node.snapshot()).token_issuer).toBe('http://inlet.test')
    await first[Symbol.asyncDispose]()
    await using second = await newControl({ database, environment: { INLET_BASE_URL: 'http://elsewhere.test' } })
    expect((await node.at(second).snapshot()).token_issuer).toBe('http://elsewhere.test')
  })
})

describe('the epoch', () => {
  test('does not change with what no node needs', async () => {
    await using own = await newControl()
    const owner = await own.newAccount()
    const node = await TestNode.register(own, 'loc')
    const { epoch } = await node.snapshot()
    const { id } = await aDestination(owner)
    await owner.post(`/v1/destinations/${id}/validate`)
    await aPublishedView(owner)
    await owner.post('/v1/endpoints', { region: 'NO' })
    expect((await node.snapshot()).epoch).toBe(epoch)
  })
})

describe('the long poll', () => {
  test('wakes at once when this process changes something', async () => {
    const owner = await control().newAccount()
    const region = newRegion()
    const node = await TestNode.register(control(), region)
    const { epoch } = await node.snapshot()
    const started = performance.now()
    const [update] = await Promise.all([node.update(30_000), owner.post('/v1/endpoints', { region })])
    expect(update?.end.epoch).toBeGreaterThan(epoch)
    expect(performance.now() - started).toBeLessThan(2_000)
  })

  test('ignores changes of other regions, and of kinds that the process does not request', async () => {
    const owner = await control().newAccount()
    const region = newRegion()
    const node = await TestNode.register(control(), region)
    await owner.post('/v1/endpoints', { region })
    await node.snapshot()
    const polled = node.askSnapshot(30_000, ['endpoints', 'views'])
    const { body: elsewhere } = await owner.post('/v1/endpoints', { region: newRegion() })
    await owner.post('/v1/keys', { name: 'k', scopes: ['ingest'] })
    const { body: endpoint } = await owner.post('/v1/endpoints', { region })
    const { status, body } = await polled
    expect(status).toBe(200)
    // One time in 256, the section is also that of the endpoint before.
    expect(body).toContain(endpoint.id)
    expect(body).not.toContain(elsewhere.id)
  })

  test('wakes when another process changes something', async () => {
    const { store, clock, newAccount } = control()
    const owner = await newAccount()
    const { account_id, key_id } = owner
    const region = newRegion()
    await owner.post('/v1/endpoints', { region })
    const node = await TestNode.register(control(), region)
    const { keys } = await node.snapshot()
    expect(keys.map(({ id }) => id)).toContain(key_id)
    const polled = node.snapshot(30_000)
    await inNewEpoch(store, (db) => revokeApiKey(db, account_id, key_id, { at: clock.now(), endsAccess: true }))
    expect((await polled).keys.map(({ id }) => id)).not.toContain(key_id)
  })

  test('ends at once when control stops', async () => {
    const own = await newControl()
    const node = await TestNode.register(own, 'loc')
    await node.snapshot()
    const polled = node.askSnapshot(60_000)
    await node.askSnapshot()
    const started = performance.now()
    await own[Symbol.asyncDispose]()
    expect(performance.now() - started).toBeLessThan(2_000)
    expect(await polled).toMatchObject({ status: 204 })
  })

  test('503 for more of one node than it needs, so that others find room', async () => {
    const [node, other] = [await TestNode.register(control(), newRegion()), await TestNode.register(control(), newRegion())]
    await node.snapshot()
    await other.snapshot()
    const polls = Array.from({ length: controlLimits.snapshotWaitersPerNode + 1 }, () => node.askSnapshot(1_000))
    expect(await other.askSnapshot(10)).toMatchObject({ status: 204 })
    const statuses = (await Promise.all(polls)).map(({ status }) => status).toSorted((a, b) => a - b)
    expect(statuses).toEqual([...Array.from({ length: controlLimits.snapshotWaitersPerNode }, () => 204), 503])
    expect(await node.askSnapshot(10)).toMatchObject({ status: 204 })
  })

  test('serves two hundred polls at once', async () => {
    const owner = await control().newAccount()
    const region = newRegion()
    const nodes = await Promise.all(Array.from({ length: 40 }, () => TestNode.register(control(), region)))
    for (const node of nodes) await node.snapshot()
    const polls = nodes.flatMap((node) => Array.from({ length: 5 }, () => node.askSnapshot(30_000)))
    const change = owner.post('/v1/endpoints', { region })
    const answers = await Promise.all(polls)
    await change
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  })
})
