/** When a deleted endpoint is removed, by the reports of its nodes: test nodes say what they hold. */
import { describe, expect } from 'vitest'
import {
  clientOf,
  newControl,
  newRegion,
  type TestAccount,
  type TestControl,
  testWithAccount,
  useControl,
} from '../support/control.ts'
import { newDatabase } from '../support/databases.ts'
import { aLag, closedLag } from '../support/lags.ts'
import { TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const control = useControl()
const test = testWithAccount(control)

const nothing = { undelivered_segments: 0, undelivered_bytes: 0 }
const daysMs = 86_400_000

async function made(account: TestAccount, more: object = {}) {
  const { body } = await account.post('/v1/endpoints', { region: newRegion(), ...more })
  return body
}

/** Returns the account with a new token: for another control process, or after the clock was advanced. */
async function signIn({ call }: TestControl, account: TestAccount): Promise<TestAccount> {
  const { body } = await call('POST', '/v1/token/exchange', { api_key: account.api_key, scope: 'admin' })
  return { ...account, ...clientOf(call, body.access_token) }
}

async function reasonsFor(account: TestAccount, id: string): Promise<readonly string[]> {
  const { status, body } = await account.get(`/v1/endpoints/${id}`)
  expect({ status, is: body.status }).toEqual({ status: 200, is: 'draining' })
  expect(body.status_reasons[0]).toBe('the endpoint is being deleted')
  return body.status_reasons.slice(1)
}

const isGone = (account: TestAccount, id: string) => async () => (await account.get(`/v1/endpoints/${id}`)).status === 404

/** Resolves when every drain that began before was checked: a later one has ended. */
async function drainsChecked(control: TestControl, account: TestAccount): Promise<void> {
  const { id, region } = await made(account)
  const node = await TestNode.register(control, region)
  await node.snapshot()
  await account.delete(`/v1/endpoints/${id}`)
  await node.heartbeat({}, { lag: [closedLag(id)] })
  await until('the end of a later drain', isGone(account, id))
}

describe('a deleted endpoint', () => {
  test('stays until its open segment is delivered, whatever its age was changed to and however long that takes', async () => {
    await using own = await newControl()
    let account = await own.newAccount()
    const { id, region } = await made(account, { segment_max_age_seconds: 3600 })
    const node = await TestNode.register(own, region)
    const open = aLag(id, { ...nothing, open_segments: 1, undelivered_bytes: 900 })
    await node.heartbeat({}, { lag: [open] })
    await account.patch(`/v1/endpoints/${id}`, { segment_max_age_seconds: 1 })
    await account.delete(`/v1/endpoints/${id}`)
    await node.heartbeat({}, { lag: [open] })
    own.clock.advance(30 * daysMs)
    account = await signIn(own, account)
    await node.heartbeat({}, { lag: [open] })
    await drainsChecked(own, account)
    expect(await reasonsFor(account, id)).toEqual([expect.stringContaining('1 segment (1 open; 900 bytes)')])
    await node.heartbeat({}, { lag: [{ ...closedLag(id), undelivered_segments: 1 }] })
    expect(await reasonsFor(account, id)).toEqual([expect.stringContaining('1 to deliver')])
    await node.heartbeat({}, { lag: [closedLag(id)] })
    await until('the end of the endpoint', isGone(account, id))
  })

  test('waits for a node that is away, through a restart of control, and names it', async () => {
    await using database = await newDatabase()
    const first = await newControl({ database })
    const account = await first.newAccount()
    const { id, region } = await made(account)
    const [away, present] = [await TestNode.register(first, region), await TestNode.register(first, region)]
    await away.heartbeat()
    await account.delete(`/v1/endpoints/${id}`)
    await present.heartbeat({}, { lag: [closedLag(id)] })
    expect(await reasonsFor(account, id)).toEqual([`node ${away.id} has not applied the deletion yet`])
    await first[Symbol.asyncDispose]()

    await using second = await newControl({ database })
    second.clock.advance(3 * daysMs)
    const owner = await signIn(second, account)
    await present.at(second).heartbeat({}, { lag: [closedLag(id)] })
    await drainsChecked(second, owner)
    expect(await reasonsFor(owner, id)).toEqual([
      expect.stringMatching(new RegExp(`^delivery of node ${away.id} has not sent a heartbeat since .*\\?force=true`)),
    ])
    // It comes back with data, registers again, and delivers.
    await away.at(second).registerAgain()
    await away.heartbeat({}, { lag: [aLag(id, { undelivered_segments: 4, closed: true })] })
    expect(await reasonsFor(owner, id)).toEqual([expect.stringContaining('4 to deliver')])
    await away.heartbeat({}, { lag: [closedLag(id)] })
    await until('the end of the endpoint', isGone(owner, id))
  })

  test('waits for a node that received it and sent no heartbeat, and not for one that never received it', async ({ account }) => {
    const region = newRegion()
    const old = await TestNode.register(control(), region)
    await old.heartbeat()
    const { id } = await made(account, { region })
    const silent = await TestNode.register(control(), region)
    await silent.snapshot()
    await account.delete(`/v1/endpoints/${id}`)
    await drainsChecked(control(), account)
    expect(await reasonsFor(account, id)).toEqual([expect.stringContaining(`node ${silent.id}`)])
    await silent.heartbeat({}, { lag: [closedLag(id)] })
    await until('the end of the endpoint', isGone(account, id))
  })

  test('waits for parked and quarantined segments, and says what to do', async ({ account }) => {
    const { id, region } = await made(account)
    const node = await TestNode.register(control(), region)
    await node.heartbeat()
    await account.delete(`/v1/endpoints/${id}`)
    await node.heartbeat({}, { lag: [{ ...closedLag(id), parked_segments: 2, quarantined_segments: 1 }] })
    await drainsChecked(control(), account)
    expect(await reasonsFor(account, id)).toEqual([expect.stringMatching(/2 parked, 1 quarantined.*`inlet segments list`/)])
  })
})

describe('DELETE /v1/endpoints/{id}?force=true', () => {
  test('200 removes a draining endpoint and says what it abandons; nodes go on reporting it', async ({ account }) => {
    const { id, region } = await made(account)
    const [lost, clean] = [await TestNode.register(control(), region), await TestNode.register(control(), region)]
    const held = { open_segments: 1, parked_segments: 3, quarantined_segments: 4 }
    await lost.heartbeat({}, { lag: [aLag(id, { ...held, undelivered_segments: 2, undelivered_bytes: 900 })] })
    await clean.heartbeat()
    await account.delete(`/v1/endpoints/${id}`)
    await clean.heartbeat({}, { lag: [closedLag(id)] })
    expect(await account.as('metrics').delete(`/v1/endpoints/${id}?force=true`)).toMatchObject({ status: 403 })
    const { status, body } = await account.delete(`/v1/endpoints/${id}?force=true`)
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        abandoned: [
          {
            ...{ node_id: lost.id, region, reported_at: expect.stringMatching(/Z$/), ...held, sealed_segments: 2, bytes: 900 },
            ...{ is_current: false, note: expect.stringMatching(/still open at .*Z: data that the node accepted since/) },
          },
        ],
      },
    })
    expect(await account.get(`/v1/endpoints/${id}`)).toMatchObject({ status: 404 })
    expect(await account.delete(`/v1/endpoints/${id}?force=true`)).toMatchObject({ status: 404 })
    const rows = await control().store.db.selectFrom('endpoint_lags').select(['node_id', 'parked_segments']).execute()
    expect(rows).toContainEqual({ node_id: lost.id, parked_segments: 3 })
  })

  test('200 removes an active endpoint; every node that had it may hold data', async ({ account }) => {
    const { id, region } = await made(account)
    const node = await TestNode.register(control(), region)
    await node.heartbeat()
    expect(await account.delete(`/v1/endpoints/${id}?force=true`)).toMatchObject({
      status: 200,
      body: { abandoned: [{ node_id: node.id, open_segments: 0, bytes: 0 }] },
    })
    expect((await node.snapshot()).endpoints).toEqual([])
    const unused = await made(account)
    expect(await account.delete(`/v1/endpoints/${unused.id}?force=true`)).toMatchObject({ status: 200, body: { abandoned: [] } })
  })

  test('200 says of each node whether its report is complete, so that 0 is not read as nothing', async () => {
    await using own = await newControl()
    const owner = await own.newAccount()
    const { id, region } = await made(owner)
    const node = await TestNode.register(own, region)
    await node.heartbeat({}, { lag: [closedLag(id)] })
    own.clock.advance(3_600_000)
    const account = await signIn(own, owner)
    const reporting = await TestNode.register(own, region)
    await reporting.heartbeat({}, { lag: [aLag(id, { undelivered_segments: 2, closed: true })] })
    const { body } = await account.delete(`/v1/endpoints/${id}?force=true`)
    const byNode = (one: { node_id: string }) => (one.node_id === node.id ? 0 : 1)
    const silent = expect.stringMatching(/silent since .*Z: its disk may hold other/)
    expect(body.abandoned.toSorted((a: never, b: never) => byNode(a) - byNode(b))).toMatchObject([
      { node_id: node.id, sealed_segments: 0, is_current: false, note: silent },
      { node_id: reporting.id, sealed_segments: 2, is_current: true, note: null },
    ])
  })

  test('422 for anything but true and false', async ({ account }) => {
    const { id } = await made(account)
    expect(await account.delete(`/v1/endpoints/${id}?force=yes`)).toMatchObject({ status: 422 })
    expect(await account.delete(`/v1/endpoints/${id}?forced=true`)).toMatchObject({ status: 422 })
    expect(await account.delete(`/v1/endpoints/${id}?force=false`)).toMatchObject({ status: 204 })
  })
})
