/** A node with a valid credential that reports nonsense: it must not break a response about others. */
import { expect, test } from 'vitest'
import { printNodeCredential } from '#auth/node-credential.ts'
import { controlLimits } from '#control/limits.ts'
import { newId } from '#model/id.ts'
import { reportedCountMax } from '#model/limits.ts'
import { dayOf } from '#model/quota.ts'
import { newRegion, operatorToken, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { RawClient } from '../support/raw-http.ts'
import { aCommit, TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const control = useControl()
const many = reportedCountMax
/** So many of these are above 2^53. */
const times = 40
const largest = Number.MAX_SAFE_INTEGER

const asOperator = (path: string) => control().call('GET', path, undefined, { authorization: `Bearer ${operatorToken}` })

async function aServedEndpoint() {
  const region = newRegion()
  const account = await control().newAccount()
  const { body: endpoint } = await account.post('/v1/endpoints', { name: 'events', region })
  const node = await TestNode.register(control(), region)
  await node.heartbeat()
  return { account, endpoint, node }
}

async function metricsStatus(): Promise<number> {
  const { status } = await fetch(`${control().url}/metrics`, { headers: { authorization: `Bearer ${operatorToken}` } })
  return status
}

test('segments and bytes beyond any disk add up to the largest number', async () => {
  const { account, endpoint, node } = await aServedEndpoint()
  const row = { open_segments: many, undelivered_segments: many, parked_segments: many, undelivered_bytes: many }
  const ids = [endpoint.id, ...Array.from({ length: times }, newId)]
  await node.heartbeat({}, { lag: ids.map((id) => aLag(id, row)) })
  const { body } = await asOperator('/v1/nodes?limit=200')
  expect(body.items.find(({ id }: { id: string }) => id === node.id).segments).toMatchObject({ bytes: largest })
  expect(await account.get(`/v1/endpoints/${endpoint.id}`)).toMatchObject({
    status: 200,
    body: { lag: { undelivered_bytes: many } },
  })
  expect(await metricsStatus()).toBe(200)
  await node.heartbeat()
})

test('bytes of an account beyond any network add up to the largest number', async () => {
  const { account, node } = await aServedEndpoint()
  const { account_id } = account
  const counters = { bytes: many, records: many, records_per_second: many }
  const one = { account_id, day: dayOf(control().clock.now()), ...counters }
  for (let run = 0; run < times; run += 1)
    expect(await node.call('POST', 'usage', { node_id: node.id, run: `run ${run}`, accounts: [one] })).toMatchObject({
      status: 200,
    })
  expect(await account.get('/v1/quotas')).toMatchObject({ status: 200 })
  expect(await metricsStatus()).toBe(200)
})

test('outcomes of a view beyond any segment add up to the largest number', async () => {
  const { account, endpoint, node } = await aServedEndpoint()
  const column = { name: 'event', type: 'VARCHAR' }
  const { body: view } = await account.post('/v1/views', { name: 'v', definition: { columns: [{ ...column, path: '$.event' }] } })
  const quality = {
    columns: [{ ...column, values: many, nulls: many, cast_nulls: many, cast_dlq: many, missing: many, min: null, max: null }],
    sampled_records: many,
    unmapped: [{ path: '$.a', types: ['string'], records: many }],
  }
  const counts = { processed: many, accepted: many, dropped: 0, dlq: 0, failed: 0, cast_nulls: many }
  const view_of = { view_id: view.id, view_name: 'v', view_version: 1 }
  const outcome = { ...view_of, ...counts, errors: { a: many, b: many }, last_error: null, quality }
  const commits = Array.from({ length: times }, (_, seq) => aCommit(node.id, endpoint.id, seq, { views: [outcome as never] }))
  expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200 })
  expect(await account.get(`/v1/views/${view.id}/metrics?detail=columns`)).toMatchObject({
    status: 200,
    body: { aggregated: { all_time: { processed: largest }, last_24h: { processed: largest }, total_error_count_24h: largest } },
  })
})

test.each([
  ['lag', { lag: [aLag(newId(), { undelivered_bytes: many + 1 })] }],
  [
    'segments that end before they begin',
    { lag: [aLag(newId(), { held: [{ first_seq: 9, last_seq: 2, segments: 1, records: 5, bytes: 3 }] })] },
  ],
  ['a name that no database can store', { lag: [], lag_base: '\0', lag_version: '\0' }],
])('a heartbeat with %s is refused, and those of other nodes are recorded', async (_, report) => {
  const { node } = await aServedEndpoint()
  const { node: other } = await aServedEndpoint()
  await other.heartbeat({}, { lag_version: 'a' })
  const beat = ({ id: node_id }: TestNode) => ({ process: 'delivery', node_id, applied_epoch: 1, healthy: true, reasons: [] })
  const others = { ...beat(other), lag: [], lag_base: 'a', lag_version: 'a' }
  // One statement records all that arrive together.
  const answers = await Promise.all(
    Array.from({ length: 8 }, (__, index) =>
      index % 2 === 0 ? other.call('POST', 'heartbeat', others) : node.call('POST', 'heartbeat', { ...beat(node), ...report }),
    ),
  )
  expect(answers.map(({ status }) => status)).toEqual([200, 422, 200, 422, 200, 422, 200, 422])
})

test.each([
  ['announced', (bytes: number) => `Content-Length: ${bytes}`],
  ['of unknown size', () => 'Transfer-Encoding: chunked'],
])('bodies that are %s and never end take a bounded part of the memory, and other nodes are served', async (_, describe) => {
  const { node } = await aServedEndpoint()
  const { node: other } = await aServedEndpoint()
  const credential = printNodeCredential(node.id, node.secret)
  const bytes = controlLimits.heartbeatBodyBytesMax
  const head = `POST /internal/v1/heartbeat HTTP/1.1\r\nHost: c\r\nAuthorization: Bearer ${credential}\r\nContent-Type: application/json\r\n`
  await using clients = new AsyncDisposableStack()
  const begun = Array.from({ length: controlLimits.nodeBodiesBytesMax / bytes + 1 }, async () => {
    const client = clients.use(await RawClient.connect(control().app.nodeApiUrl))
    await client.send(`${head}${describe(bytes)}\r\n\r\n`)
    return client
  })
  // Only one of them is answered.
  const answer = await Promise.any(begun.map(async (client) => (await client).answer()))
  expect(answer).toMatchObject({
    status: 503,
    headers: { 'retry-after': '1' },
    json: { detail: 'this node sends too much at once' },
  })
  await other.heartbeat()
  const isServed = async () => (await node.call('POST', 'jobs/lease', { node_id: node.id, max: 0, held: [] })).status !== 503
  expect(await isServed()).toBe(false)
  for (const client of begun) (await client).socket.destroy()
  await until('connections that ended to give back what they took', isServed)
})
