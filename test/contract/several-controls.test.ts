/** Two control processes on one Postgres: each request may go to either of them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { currentEpoch } from '#store/cluster/epoch.ts'
import { type ControlOptions, clientOf, newControl, newRegion, operatorToken, type TestControl } from '../support/control.ts'
import { newDatabase, postgresUrl } from '../support/databases.ts'
import { IngestNode } from '../support/ingest-node.ts'
import { TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

/** Time for a change by one control process to reach the other. Normally it takes a quarter of it. */
const spreadMsMax = 2_000

/** Starts two control processes at once on a new database. */
async function newPair(environment: ControlOptions['environment'] = {}) {
  const database = await newDatabase('postgres')
  const [one, other] = await Promise.all([newControl({ database, environment }), newControl({ database, environment })])
  return {
    ...{ one, other, database },
    async [Symbol.asyncDispose]() {
      await Promise.all([one[Symbol.asyncDispose](), other[Symbol.asyncDispose]()])
      await database[Symbol.asyncDispose]()
    },
  }
}

const isLeader = async (control: TestControl) =>
  /^inlet_control_leader\{[^}]*\} 1$/m.test((await control.call('GET', '/metrics')).body as string)

describe.skipIf(postgresUrl === undefined)('two control processes (skipped without INLET_TEST_POSTGRES)', () => {
  let pair: Awaited<ReturnType<typeof newPair>> | undefined
  beforeAll(async () => {
    pair = await newPair()
  })
  afterAll(() => pair?.[Symbol.asyncDispose]())

  test('that start together on an empty database create one account, and one of them leads', async () => {
    const { one, other } = must(pair, 'two control processes')
    expect([one, other].filter(({ bootstrapped }) => bootstrapped !== undefined)).toHaveLength(1)
    expect(await one.store.db.selectFrom('accounts').selectAll().execute()).toHaveLength(1)
    expect(await one.store.db.selectFrom('signing_keys').selectAll().execute()).toHaveLength(1)
    expect((await Promise.all([isLeader(one), isLeader(other)])).toSorted()).toEqual([false, true])
  })

  test('a change made at one reaches a node that waits at the other', async () => {
    const { one, other } = must(pair, 'two control processes')
    const [account, region] = [await one.newAccount(), newRegion()]
    const node = await TestNode.register(other, region)
    await node.snapshot()
    for (let changes = 1; changes <= 3; changes += 1) {
      const changedAt = performance.now()
      const { body } = await account.post('/v1/endpoints', { region })
      const { endpoints } = await node.snapshot(10_000)
      expect(performance.now() - changedAt).toBeLessThan(spreadMsMax)
      expect(endpoints.map(({ id }) => id)).toContain(body.id)
    }
  })

  test('a node that has a change from one already is served by the other, which has not read it yet', async () => {
    const { one, other } = must(pair, 'two control processes')
    const [account, region] = [await one.newAccount(), newRegion()]
    const node = await TestNode.register(one, region)
    for (let changes = 1; changes <= 5; changes += 1) {
      await account.post('/v1/endpoints', { region })
      await node.at(one).snapshot()
      expect(await node.at(other).askSnapshot()).toMatchObject({ status: 204 })
    }
  })

  test('a node applies a change made at one and reports so to the other, and the first knows, within two seconds', async () => {
    const { one, other } = must(pair, 'two control processes')
    const [account, region] = [await one.newAccount(), newRegion()]
    const environment = { INLET_REGION: region }
    await using _node = await IngestNode.start({ controlUrl: other.app.nodeApiUrl, snapshot: undefined, environment })
    const operator = clientOf(one.call, operatorToken)
    const appliedEpoch = async (): Promise<number> => {
      const { body } = await operator.get('/v1/nodes')
      return body.items.find((node: { region: string }) => node.region === region)?.ingest?.applied_epoch ?? -1
    }
    await until('the node has a configuration', async () => (await appliedEpoch()) >= 0)
    for (let changes = 1; changes <= 3; changes += 1) {
      expect(await account.post('/v1/endpoints', { region })).toMatchObject({ status: 201 })
      const epoch = await currentEpoch(one.store.db)
      await until('the node has applied the change', async () => (await appliedEpoch()) >= epoch, spreadMsMax)
    }
  })

  test('a key whose access is ended at one opens nothing at the other after two seconds', async () => {
    const { one, other } = must(pair, 'two control processes')
    const account = await one.newAccount(['admin'])
    const key = await account.post('/v1/keys', { name: 'short', scopes: ['metrics'] })
    const { body } = await other.call('POST', '/v1/token/exchange', { api_key: key.body.api_key, scope: 'metrics' })
    const headers = { authorization: `Bearer ${body.access_token}` }
    expect(await other.call('GET', '/v1/views', undefined, headers)).toMatchObject({ status: 200 })
    await account.post(`/v1/keys/${key.body.id}/revoke?now=true`)
    const isRefused = async () => (await other.call('GET', '/v1/views', undefined, headers)).status === 401
    await until('the token is refused', isRefused, spreadMsMax)
  })
})

describe.skipIf(postgresUrl === undefined)('rate limits of two control processes (skipped without INLET_TEST_POSTGRES)', () => {
  test('hold for both together, and the one that refuses knows how long', async () => {
    await using pair = await newPair({ INLET_API_REQUESTS_PER_MINUTE: '40', INLET_EXCHANGE_REQUESTS_PER_MINUTE: '100' })
    const account = await pair.one.newAccount(['admin'])
    const { body } = await pair.one.call('POST', '/v1/token/exchange', { api_key: account.api_key, scope: 'admin' })
    const headers = { authorization: `Bearer ${body.access_token}` }
    const answers = await Promise.all(
      Array.from({ length: 120 }, (_, index) =>
        (index % 3 === 0 ? pair.one : pair.other).call('GET', '/v1/endpoints', undefined, headers),
      ),
    )
    const admitted = answers.filter(({ status }) => status === 200).length
    expect(admitted).toBeLessThanOrEqual(40)
    expect(admitted).toBeGreaterThan(30)
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(120 - admitted)
    for (const { headers } of refused) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  })
})

describe.skipIf(postgresUrl === undefined)('the control process that leads (skipped without INLET_TEST_POSTGRES)', () => {
  test('is replaced when it stops, and the other one does its work', async () => {
    await using database = await newDatabase('postgres')
    const first = await newControl({ database })
    await using second = await newControl({ database })
    expect([await isLeader(first), await isLeader(second)]).toEqual([true, false])
    const [account, region] = [await second.newAccount(), newRegion()]
    await first[Symbol.asyncDispose]()
    const { body } = await account.post('/v1/endpoints', { region })
    expect(await account.delete(`/v1/endpoints/${body.id}`)).toMatchObject({ status: 204 })
    await until('the drained endpoint is removed', async () => (await account.get(`/v1/endpoints/${body.id}`)).status === 404)
    expect(await isLeader(second)).toBe(true)
  })
})
