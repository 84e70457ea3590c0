/** The operator's view of the nodes, over all accounts. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { newId } from '#model/id.ts'
import { clientOf, newControl, newRegion, operatorToken, type TestControl, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { TestNode } from '../support/test-node.ts'

const control = useControl()

const operatorOf = ({ call }: TestControl) => clientOf(call, operatorToken)

const totals = { open_segments: 0, sealed_segments: 0, parked_segments: 0, quarantined_segments: 0, bytes: 0 }

describe('the operator token', () => {
  test('is created at the first start if it is not set', async () => {
    await using own = await newControl({ environment: { INLET_OPERATOR_TOKEN: '' } })
    const path = join(own.directory, 'operator-token')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const created = clientOf(own.call, readFileSync(path, 'utf8').trim())
    expect(await created.get('/v1/nodes')).toMatchObject({ status: 200 })
    expect(await operatorOf(own).get('/v1/nodes')).toMatchObject({ status: 401 })
  })

  test('opens nothing else, and is limited per minute', async () => {
    await using own = await newControl({ environment: { INLET_API_REQUESTS_PER_MINUTE: '2' } })
    const operator = operatorOf(own)
    expect(await operator.get('/v1/endpoints')).toMatchObject({ status: 401 })
    expect(await operator.get('/v1/nodes')).toMatchObject({ status: 200, body: { items: [], total: 0 } })
    expect(await operator.get('/v1/nodes')).toMatchObject({ status: 200 })
    expect(await operator.get('/v1/nodes')).toMatchObject({ status: 429 })
  })
})

describe('GET /v1/nodes', () => {
  test('200 has every node with its health, its reasons and what is on its disk', async () => {
    await using own = await newControl()
    const operator = operatorOf(own)
    const account = await own.newAccount()
    const region = newRegion()
    const [well, ill, silent] = [
      await TestNode.register(own, region),
      await TestNode.register(own, region),
      await TestNode.register(own, region),
    ]
    const { body: endpoint } = await account.post('/v1/endpoints', { region })
    await well.heartbeat({}, { lag: [aLag(endpoint.id, { open_segments: 1 }), aLag(newId(), { parked_segments: 2 })] })
    const reason = 'the budget is used up'
    await ill.heartbeat({
      ...{ healthy: false, reasons: [reason], disk_full: true },
      blocked: [{ endpoint_id: newId(), reason: 'EIO' }],
    })
    const { status, body } = await operator.get('/v1/nodes')
    expect({ status, total: body.total }).toEqual({ status: 200, total: 3 })
    const find = (node: TestNode) => body.items.find(({ id }: { id: string }) => id === node.id)
    const { epoch } = await well.snapshot()
    expect(find(well)).toMatchObject({
      ...{ region, ipv4: ['127.0.0.1'], ipv6: ['::1'], ingest_address: '127.0.0.1:9999', healthy: true },
      delivery: { healthy: true, reasons: [], applied_epoch: epoch, last_seen_at: expect.stringMatching(/Z$/) },
      segments: { ...totals, open_segments: 1, sealed_segments: 2, parked_segments: 2, bytes: 18 },
      unowned: { ...totals, sealed_segments: 1, parked_segments: 2, bytes: 9 },
      blocked_logs: 0,
    })
    expect(find(ill)).toMatchObject({ healthy: false, ingest: { reasons: [reason] }, segments: totals, blocked_logs: 1 })
    expect(find(silent)).toMatchObject({ healthy: false, ingest: null, delivery: null, segments: totals })
    own.clock.advance(8_000)
    expect((await operator.get('/v1/nodes')).body.items.map(({ healthy }: { healthy: boolean }) => healthy)).not.toContain(true)
    expect(await operator.get('/v1/nodes?limit=2&offset=2')).toMatchObject({ body: { items: [{}], total: 3, next_offset: null } })
  })
})

describe('what the scrub of a node found', () => {
  test('is in the status of the endpoint, at the node, and in the metrics, until the node no longer reports it', async () => {
    await using own = await newControl()
    const operator = operatorOf(own)
    const account = await own.newAccount()
    const region = newRegion()
    const node = await TestNode.register(own, region)
    const { body: endpoint } = await account.post('/v1/endpoints', { region })
    const nothing = { undelivered_segments: 0, undelivered_bytes: 0 }
    const scrub_finding = 'lake/x.parquet is not in the bucket'
    const scrub = { findings: 2, completed_at: '2026-11-20T08:00:00.000Z', files: 7, read_bytes: 900 }
    await node.heartbeat({}, { scrub, lag: [aLag(endpoint.id, { ...nothing, scrub_findings: 2, scrub_finding })] })
    const readStatus = async () => (await account.get(`/v1/endpoints/${endpoint.id}`)).body.status_reasons
    expect(await readStatus()).toContainEqual(
      `the scrub found 2 damaged files: ${scrub_finding}; inlet scrub on node ${node.id} lists all and says what to do`,
    )
    expect((await account.get('/v1/endpoints')).body.items[0].status_reasons).toEqual(await readStatus())
    expect((await operator.get('/v1/nodes')).body.items).toMatchObject([{ id: node.id, scrub_findings: 2 }])
    expect((await operator.get(`/v1/nodes/${node.id}/segments`)).body.items).toMatchObject([{ scrub_findings: 2, scrub_finding }])
    const metrics = await (await fetch(`${own.url}/metrics`, { headers: { authorization: `Bearer ${operatorToken}` } })).text()
    for (const line of [
      'inlet_scrub_findings{process="control"} 2',
      `inlet_delivery_scrub_files{node_id="${node.id}",process="control"} 7`,
    ])
      expect(metrics).toContain(line)
    await node.heartbeat({}, { scrub: { ...scrub, findings: 0 }, lag: [] })
    expect(await readStatus()).not.toContainEqual(expect.stringContaining('scrub'))
    expect((await operator.get('/v1/nodes')).body.items).toMatchObject([{ scrub_findings: 0 }])
  })
})

describe('PATCH /v1/nodes/{id}', () => {
  test('200 names a node, until another name or none is given', async () => {
    const operator = operatorOf(control())
    const node = await TestNode.register(control(), newRegion())
    const [name, other] = [`fra ${node.id.slice(0, 6)}`, `par ${node.id.slice(0, 6)}`]
    const named = await operator.patch(`/v1/nodes/${node.id}`, { name: ` ${name} ` })
    expect(named).toMatchObject({ status: 200, body: { id: node.id, name, healthy: false } })
    await node.registerAgain()
    expect((await operator.get('/v1/nodes')).body.items).toContainEqual(expect.objectContaining({ id: node.id, name }))
    const { body } = await operator.get('/v1/installation/audit-events?limit=1')
    expect(body.items).toMatchObject([{ operation: 'changeNode', resource_id: node.id, resource_name: name }])
    for (const given of [other, null])
      expect(await operator.patch(`/v1/nodes/${node.id}`, { name: given })).toMatchObject({ status: 200, body: { name: given } })
  })

  test('404 for an unknown node, 409 for a name that another has, 422 for a name that is none', async () => {
    const operator = operatorOf(control())
    const [node, other] = [await TestNode.register(control(), newRegion()), await TestNode.register(control(), newRegion())]
    const name = `fra ${node.id.slice(0, 6)}`
    await operator.patch(`/v1/nodes/${node.id}`, { name })
    expect(await operator.patch(`/v1/nodes/${other.id}`, { name })).toMatchObject({ status: 409 })
    expect(await operator.patch(`/v1/nodes/${newId()}`, { name })).toMatchObject({ status: 404 })
    for (const wrong of [' ', 'a'.repeat(65), 'a\nb', newId(), 7, undefined])
      expect(await operator.patch(`/v1/nodes/${other.id}`, { name: wrong })).toMatchObject({ status: 422 })
  })
})

describe('GET /v1/nodes/{id}/segments', () => {
  test('404 for an unknown node', async () => {
    expect(await operatorOf(control()).get(`/v1/nodes/${newId()}/segments`)).toMatchObject({ status: 404 })
  })

  test('200 has the logs of active, paused, draining, deleted and unknown endpoints, and those that are blocked', async () => {
    const operator = operatorOf(control())
    const account = await control().newAccount()
    const region = newRegion()
    const [active, paused, draining, deleted] = await Promise.all(
      ['active', 'paused', 'draining', 'deleted'].map(
        async (name) => (await account.post('/v1/endpoints', { region, name })).body.id,
      ),
    )
    const unknown = newId()
    const node = await TestNode.register(control(), region)
    const oldest_sealed_at = '2026-11-20T08:00:00.000Z'
    const lag = [active, paused, draining, deleted, unknown].map((id) => aLag(must(id, 'an id'), { oldest_sealed_at }))
    const blocked = [
      { endpoint_id: active, reason: 'EIO' },
      { endpoint_id: must(lag[4], 'a lag').endpoint_id.replace(/^./, (digit) => (digit === 'a' ? 'b' : 'a')), reason: 'EACCES' },
    ]
    await node.heartbeat({ blocked }, { lag })
    await account.post(`/v1/endpoints/${paused}/pause`)
    await account.delete(`/v1/endpoints/${draining}`)
    await account.delete(`/v1/endpoints/${deleted}?force=true`)
    const path = `/v1/nodes/${node.id}/segments`
    const { status, body } = await operator.get(path)
    expect(status).toBe(200)
    const owners = new Map(body.items.map((log: { endpoint_id: string; owner: string }) => [log.endpoint_id, log.owner]))
    expect(owners).toEqual(
      new Map([
        ...([
          [active, 'active'],
          [paused, 'paused'],
          [draining, 'draining'],
          [deleted, 'deleted'],
          [unknown, 'unknown'],
          [blocked[1]?.endpoint_id, 'unknown'],
        ] as const),
      ]),
    )
    expect(body.items.find(({ endpoint_id }: { endpoint_id: string }) => endpoint_id === active)).toEqual({
      ...{ ...totals, sealed_segments: 1, bytes: 9 },
      ...{ endpoint_id: active, endpoint_name: 'active', account_id: account.account_id, owner: 'active' },
      ...{ records: null, first_segment_seq: null },
      ...{ oldest_sealed_at, blocked_by: null, append_blocked_by: 'EIO', closed: false },
      ...{ scrub_findings: 0, scrub_finding: null },
    })
    expect(await operator.get(`${path}?owner=deleted`)).toMatchObject({
      body: { total: 1, items: [{ endpoint_id: deleted, endpoint_name: 'deleted' }] },
    })
    expect(await operator.get(`${path}?owner=unknown`)).toMatchObject({
      body: { total: 2, items: [{ account_id: null, endpoint_name: null }, {}] },
    })
    expect(await operator.get(`${path}?owner=active`)).toMatchObject({ body: { total: 1, items: [{ endpoint_id: active }] } })
    expect(await operator.get(`${path}?limit=4&offset=4`)).toMatchObject({
      body: { total: 6, next_offset: null, items: [{}, {}] },
    })
    expect(await operator.get(`${path}?owner=nobody`)).toMatchObject({ status: 422 })
  })
})
