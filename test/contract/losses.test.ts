/** Losses of a removed node: the ledger, and what receipts then say. */
import { describe, expect, test } from 'vitest'
import { newNodeSecret } from '#auth/node-credential.ts'
import { newId } from '#model/id.ts'
import type { EndpointLag } from '#model/node-protocol.ts'
import { removeCommitsBefore } from '#store/commits/commit-retention.ts'
import { clientOf, operatorToken, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { readMarkers } from '../support/read-markers.ts'
import { anEndpointWithNode } from '../support/set-up.ts'
import { aCommit, TestNode } from '../support/test-node.ts'

/** A segment, as heartbeats name it. */
const aHeld = (seq: number, records: number) => ({ first_seq: seq, last_seq: seq, segments: 1, records, bytes: records })

const control = useControl()
const operator = () => clientOf(control().call, operatorToken)
const readAll = () => readMarkers(control().store)
/** Control has read the markers of what the node may not have reported. */
async function remove(id: string) {
  const removed = await operator().delete(`/v1/nodes/${id}?force=true`)
  await readAll()
  return removed
}
const silence = () => control().clock.advance(16_000)

async function inhabited() {
  const account = await control().newAccount()
  const { endpoint, node, region, destination } = await anEndpointWithNode(control(), account, { name: 'checkout' })
  await node.snapshot()
  const receipt = async (seq: number, node_id = node.id) => account.get(`/v1/endpoints/${endpoint.id}/receipts/${node_id}-${seq}`)
  const losses = async (query = '') => (await account.get(`/v1/losses${query}`)).body.items
  const reasons = async (): Promise<string> => (await account.get(`/v1/endpoints/${endpoint.id}`)).body.status_reasons.join()
  const commit = async (...seqs: readonly number[]) => {
    const commits = seqs.map((seq) => aCommit(node.id, endpoint.id, seq, { records_damaged: 0 }))
    expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200 })
  }
  /** Reports an open segment and sealed ones, from one seq to another. */
  const hold = async (first_seq: number, last_seq: number, more: Partial<EndpointLag> = {}) => {
    const segments = { open_segments: 1, undelivered_segments: last_seq - first_seq }
    const counts = { undelivered_bytes: 91_204, records: 285, first_seq, last_seq }
    await node.heartbeat({}, { lag: [aLag(endpoint.id, { ...segments, ...counts, ...more })] })
  }
  return { account, region, destination, endpoint, node, receipt, losses, reasons, commit, hold }
}

describe('GET /v1/losses', () => {
  test('200 has nothing while nodes deliver, and what was held once one is removed', async () => {
    const { account, region, endpoint, node, losses, reasons, hold } = await inhabited()
    await hold(42, 43)
    const name = `fra ${node.id.slice(0, 6)}`
    await operator().patch(`/v1/nodes/${node.id}`, { name })
    expect(await losses()).toEqual([])
    silence()
    const removal = await remove(node.id)
    expect(removal.body).toMatchObject({ losses: 1, logs: [{ records: 285, first_segment_seq: 42 }] })
    const [loss] = await losses()
    expect(loss).toMatchObject({
      ...{ endpoint_id: endpoint.id, endpoint_name: 'checkout', node_id: node.id, node_name: name, region },
      state: 'open',
      ...{ first_segment_seq: 42, last_segment_seq: 43, segments: 2, records: 285, bytes: 91_204, is_node_back: false },
      ...{ recovered: { segments: 0, records: 0, bytes: 0 }, recovered_at: null, confirmed_at: null, confirmed_by: null },
      summary: `up to 285 acknowledged records, as of ${loss.reported_at}, and what was acknowledged later`,
    })
    expect(removal.body.note).toContain(`what it acknowledged after ${loss.reported_at} is not counted, and lost with its disk`)
    expect(Date.parse(loss.recorded_at) - Date.parse(loss.reported_at)).toBeGreaterThanOrEqual(16_000)
    expect(await reasons()).toContain(
      `up to 285 acknowledged records of node ${name} (${node.id}), from segment 42 on, as of ${loss.reported_at}, and what was acknowledged later, were not delivered when it was removed at ${loss.recorded_at}: bring its disk back (inlet node --adopt DIR --join-token TOKEN), or confirm the loss (inlet losses confirm ${loss.id})`,
    )
    const { items } = (await account.get('/v1/audit-events?operation=recordLosses')).body
    expect(items).toMatchObject([{ actor: 'inlet', resource_id: node.id, account_id: account.account_id }])
    const filtered = await Promise.all(
      [`?endpoint_id=${endpoint.id}`, `?endpoint_id=${newId()}`, '?state=open', '?state=recovered', '?state=confirmed'].map(
        losses,
      ),
    )
    expect(filtered.map(({ length }) => length)).toEqual([1, 0, 1, 0, 0])
  })

  test('200 leaves out what was delivered after the last report, and logs without an owner', async () => {
    const { endpoint, node, losses, hold, commit } = await inhabited()
    await hold(1, 3)
    await commit(1, 2)
    const deleted = newId()
    await node.heartbeat(
      {},
      { lag: [aLag(deleted), aLag(endpoint.id, { undelivered_segments: 3, records: 29, first_seq: 1, last_seq: 3 })] },
    )
    expect((await remove(node.id)).body).toMatchObject({ endpoints: 2, losses: 1 })
    expect(await losses()).toMatchObject([{ segments: 1, records: 9 }])
    const whole = await inhabited()
    await whole.hold(0, 1, { records: 20 })
    await whole.commit(0, 1)
    expect((await remove(whole.node.id)).body).toMatchObject({ losses: 0 })
    expect(await whole.losses()).toEqual([])
  })

  test('200 has nothing that is not known for a node of the release before, and calls nothing recovered', async () => {
    const { endpoint, node, losses, reasons, receipt, commit } = await inhabited()
    await node.heartbeat({}, { lag: [aLag(endpoint.id, { undelivered_bytes: 70 })] })
    await remove(node.id)
    expect(await losses()).toMatchObject([
      { first_segment_seq: null, last_segment_seq: null, segments: 1, records: null, bytes: 70 },
    ])
    expect(await reasons()).toContain(`70 bytes of acknowledged records of node ${node.id}, as of `)
    expect((await receipt(5)).body).toMatchObject({ state: 'lost' })
    await node.registerAgain()
    await commit(5, 6)
    const nothing = { segments: 0, records: 0, bytes: 0 }
    expect(await losses()).toMatchObject([{ state: 'open', is_node_back: true, recovered: nothing }])
  })

  test('401, 403, 422; and nothing of another account', async () => {
    const { account, node, hold } = await inhabited()
    await hold(0, 0)
    await remove(node.id)
    expect(await account.as('nobody').get('/v1/losses')).toMatchObject({ status: 401 })
    expect(await account.as('ingest').get('/v1/losses')).toMatchObject({ status: 403 })
    expect(await account.get('/v1/losses?state=perhaps')).toMatchObject({ status: 422 })
    const other = await control().newAccount()
    expect((await other.get('/v1/losses')).body.items).toEqual([])
  })
})

describe('POST /v1/losses/{id}/confirm', () => {
  test('200 ends the reason, is in the audit trail, and changes nothing the second time', async () => {
    const { account, region, destination, node, losses, reasons, receipt, hold } = await inhabited()
    await account.post(`/v1/destinations/${destination.id}/validate`)
    // Another node serves the endpoint: only the loss degrades it.
    const other = await TestNode.register(control(), region)
    await other.heartbeat()
    await hold(0, 0)
    await remove(node.id)
    const [{ id }] = await losses()
    const isDegraded = async () => (await account.get('/v1/endpoints?status=degraded')).body.items.length === 1
    expect(await isDegraded()).toBe(true)
    const confirmed = await account.post(`/v1/losses/${id}/confirm`)
    expect(confirmed).toMatchObject({
      status: 200,
      body: { id, state: 'confirmed', confirmed_by: `key:${account.key_id}`, confirmed_at: expect.stringMatching(/Z$/) },
    })
    expect(await reasons()).not.toContain('confirm')
    control().clock.advance(1_000)
    expect((await account.post(`/v1/losses/${id}/confirm`)).body).toEqual(confirmed.body)
    const { items } = (await account.get('/v1/audit-events?operation=confirmLoss')).body
    expect(items).toMatchObject([{ resource_id: id, result: 'succeeded' }])
    expect((await receipt(0)).body).toMatchObject({ state: 'lost', loss_id: id })
    expect(await isDegraded()).toBe(false)
  })

  test('403, 404', async () => {
    const { account, node, losses, hold } = await inhabited()
    await hold(0, 0)
    await remove(node.id)
    const [{ id }] = await losses()
    expect(await account.as('metrics').post(`/v1/losses/${id}/confirm`)).toMatchObject({ status: 403 })
    expect(await account.post(`/v1/losses/${newId()}/confirm`)).toMatchObject({ status: 404 })
    const other = await control().newAccount()
    expect(await other.post(`/v1/losses/${id}/confirm`)).toMatchObject({ status: 404 })
  })
})

describe('the operator', () => {
  const list = async (query: string) => (await operator().get(`/v1/installation/losses${query}`)).body.items

  test('lists the losses of all accounts, and confirms one for an account that is suspended', async () => {
    const [{ account, node, losses, hold }, other] = [await inhabited(), await inhabited()]
    for (const each of [{ node, hold }, other]) {
      await each.hold(0, 0)
      await remove(each.node.id)
    }
    const [{ id }] = await losses()
    const accounts = (await list('?limit=200')).map(({ account_id }: { readonly account_id: string }) => account_id)
    expect(accounts).toEqual(expect.arrayContaining([account.account_id, other.account.account_id]))
    expect(await list(`?account_id=${account.account_id}`)).toMatchObject([{ id, account_id: account.account_id }])
    expect(await list(`?account_id=${account.account_id}&state=confirmed`)).toEqual([])
    expect(await account.get('/v1/installation/losses')).toMatchObject({ status: 403 })

    await operator().patch(`/v1/accounts/${account.account_id}`, { status: 'suspended' })
    expect(await account.post(`/v1/losses/${id}/confirm`)).toMatchObject({ status: 403 })
    expect(await operator().post(`/v1/installation/losses/${id}/confirm`)).toMatchObject({
      status: 200,
      body: { id, state: 'confirmed', confirmed_by: 'operator' },
    })
    expect(await operator().post(`/v1/installation/losses/${newId()}/confirm`)).toMatchObject({ status: 404 })
    await operator().patch(`/v1/accounts/${account.account_id}`, { status: 'active' })
    const { items } = (await account.get('/v1/audit-events?operation=confirmInstallationLoss')).body
    expect(items).toMatchObject([
      { actor: 'operator', account_id: account.account_id, resource_id: id, result: 'succeeded', address: null },
    ])
  })

  test('has an alarm until somebody confirms, also for an endpoint that is deleted; one deleted by force is confirmed', async () => {
    const unconfirmed = async () =>
      Number(/^inlet_losses_unconfirmed\{?.* (\d+)$/m.exec((await control().call('GET', '/metrics')).body)?.[1])
    const [drained, forced] = [await inhabited(), await inhabited()]
    const before = await unconfirmed()
    for (const each of [drained, forced]) {
      await each.hold(0, 0)
      await remove(each.node.id)
    }
    expect(await unconfirmed()).toBe(before + 2)
    expect(await forced.account.delete(`/v1/endpoints/${forced.endpoint.id}?force=true`)).toMatchObject({ status: 200 })
    expect(await forced.losses()).toMatchObject([{ state: 'confirmed', confirmed_by: `key:${forced.account.key_id}` }])
    expect(await drained.account.delete(`/v1/endpoints/${drained.endpoint.id}`)).toMatchObject({ status: 204 })
    const [{ id }] = await drained.losses('?state=open')
    expect(await unconfirmed()).toBe(before + 1)
    expect(await drained.account.post(`/v1/losses/${id}/confirm`)).toMatchObject({ status: 200 })
    expect(await unconfirmed()).toBe(before)
  })
})

describe('GET /v1/endpoints/{id}/receipts/{receipt_id}', () => {
  test('200 waits, then has the keys', async () => {
    const { node, receipt, hold, commit } = await inhabited()
    await hold(7, 7)
    expect(await receipt(7)).toMatchObject({
      status: 200,
      body: {
        ...{ node_id: node.id, segment_seq: 7, state: 'waiting', commit_id: null, keys: [], loss_id: null },
        reason: expect.stringContaining(`node ${node.id} has not delivered the segment`),
      },
    })
    await commit(7)
    expect((await receipt(7)).body).toMatchObject({
      ...{ state: 'delivered', reason: null, commit_id: expect.stringContaining(node.id) },
      ...{ keys: [expect.stringMatching(/\.parquet$/)], delivered_at: expect.stringMatching(/Z$/) },
    })
  })

  test('200 says which records of a delivered segment were damaged, and what blocks one that waits', async () => {
    const { endpoint, node, receipt, hold } = await inhabited()
    await node.call('POST', 'commits', { commits: [aCommit(node.id, endpoint.id, 0)] })
    expect((await receipt(0)).body.reason).toBe('3 records of the segment or more were lost to damage on the node')
    await hold(1, 2, { blocked_by: 'the bucket lake does not exist' })
    expect((await receipt(1)).body.reason).toMatch(/: the bucket lake does not exist$/)
  })

  test('200 is lost for what a removed node did not deliver, also after its last report', async () => {
    const { node, losses, receipt, hold, commit } = await inhabited()
    await commit(1)
    await hold(2, 3)
    await remove(node.id)
    const [{ id, reported_at }] = await losses()
    expect((await receipt(1)).body).toMatchObject({ state: 'delivered' })
    const included = expect.stringContaining(
      `; the loss counts what was acknowledged by ${reported_at}, and later records of the segment are lost as well`,
    )
    for (const seq of [2, 3]) expect((await receipt(seq)).body).toMatchObject({ state: 'lost', loss_id: id, reason: included })
    // The node may have begun it after its last report. The loss does not include it.
    const later = `; its loss has what was acknowledged by ${reported_at}, and the segment is later`
    expect((await receipt(4)).body).toMatchObject({ state: 'lost', loss_id: null, reason: expect.stringContaining(later) })
    expect(await receipt(1_004)).toMatchObject({ status: 404 })
  })

  test('200 is lost for a segment that the node gave up, once it has reported so', async () => {
    const { node, receipt, hold, commit } = await inhabited()
    await commit(1)
    await hold(2, 4, { parked_segments: 1 })
    await commit(3, 4)
    expect((await receipt(2)).body).toMatchObject({ state: 'waiting' })
    await node.heartbeat({}, { lag: [] })
    // This report may be older than the commits.
    expect((await receipt(2)).body).toMatchObject({ state: 'waiting' })
    control().clock.advance(11_000)
    await hold(5, 5)
    expect((await receipt(2)).body).toMatchObject({ state: 'lost', loss_id: null })
    expect((await receipt(5)).body).toMatchObject({ state: 'waiting' })
    expect((await receipt(6)).body).toMatchObject({ state: 'waiting' })
  })

  test('200 waits for a segment in quarantine, with what has to be done, until it is discarded', async () => {
    const { endpoint, node, receipt, commit } = await inhabited()
    await commit(1, 5)
    const quarantine = (seqs: Partial<EndpointLag>) =>
      node.heartbeat({}, { lag: [aLag(endpoint.id, { undelivered_segments: 0, ...seqs })] })
    control().clock.advance(11_000)
    await quarantine({ quarantined_segments: 1, quarantined_first_seq: 2, quarantined_last_seq: 2 })
    const certain = `^the segment is in quarantine on node ${node.id}, as it reported at \\S+Z, and is not delivered from there: `
    const next = 'the operator finds out why with `inlet segments list` there, and has to `export` its records and `discard` it'
    const reason = expect.stringMatching(`${certain}${next}$`)
    const waiting = { state: 'waiting', commit_id: null, loss_id: null, reason }
    expect((await receipt(2)).body).toMatchObject(waiting)
    expect((await receipt(3)).body).toMatchObject({ state: 'lost' })
    // The highest that is known is in quarantine.
    await quarantine({ quarantined_segments: 1, quarantined_first_seq: 2_000, quarantined_last_seq: 2_000 })
    expect((await receipt(2_000)).body).toMatchObject(waiting)
    await quarantine({ quarantined_segments: 0 })
    expect((await receipt(2)).body).toMatchObject({ state: 'lost' })
  })

  test('200 says that a segment may be in quarantine, if the node does not say whether it is', async () => {
    const { node, receipt, commit, hold } = await inhabited()
    await commit(1, 6)
    control().clock.advance(11_000)
    const quarantine = { quarantined_segments: 2, quarantined_first_seq: 2, quarantined_last_seq: 5 }
    await hold(5, 5, { quarantined_segments: 2, blocked_by: 'no bucket' })
    const unknown = `the segment may be in quarantine on node ${node.id} (2 segments are), as it reported at `
    expect((await receipt(3)).body).toMatchObject({ state: 'waiting', reason: expect.stringContaining(unknown) })
    expect((await receipt(6)).body).toMatchObject({ state: 'delivered', reason: null })
    await hold(4, 7, { ...quarantine, blocked_by: 'no bucket' })
    const among = `the segment may be in quarantine on node ${node.id} (2 of the segments 2 to 5 are), as it reported at `
    const is = `the segment is in quarantine on node ${node.id}, `
    expect((await receipt(3)).body.reason).toContain(among)
    expect((await receipt(4)).body.reason).toMatch(/: no bucket; the segment may be in quarantine/)
    for (const seq of [2, 5]) expect((await receipt(seq)).body).toMatchObject({ reason: expect.stringContaining(is) })
    expect((await receipt(7)).body.reason).not.toContain('quarantine')
    await hold(7, 7, { ...quarantine, quarantined_segments: 4 })
    for (const seq of [3, 4]) expect((await receipt(seq)).body.reason).toContain(is)
  })

  test('200 says of a commit that records of its segment may be in quarantine', async () => {
    const { node, receipt, hold, commit } = await inhabited()
    await commit(1, 2, 3, 4)
    await hold(5, 5, { quarantined_segments: 2, quarantined_first_seq: 1, quarantined_last_seq: 3 })
    const reason = async (seq: number) => (await receipt(seq)).body
    const is = `it may not be all records of the segment: the segment is in quarantine on node ${node.id}, as it reported at `
    for (const seq of [1, 3]) expect(await reason(seq)).toMatchObject({ state: 'delivered', reason: expect.stringContaining(is) })
    expect((await reason(2)).reason).toContain(`may be in quarantine on node ${node.id} (2 of the segments 1 to 3 are)`)
    expect((await reason(4)).reason).toBe(null)
  })

  test('200 is lost for what a removed node had in quarantine, and waits again with its disk', async () => {
    const { endpoint, node, losses, receipt, commit } = await inhabited()
    await commit(1, 3)
    const lag = aLag(endpoint.id, {
      undelivered_segments: 0,
      quarantined_segments: 1,
      quarantined_first_seq: 2,
      quarantined_last_seq: 2,
    })
    await node.heartbeat({}, { lag: [lag] })
    await remove(node.id)
    const [{ id }] = await losses()
    expect((await receipt(2)).body).toMatchObject({ state: 'lost', loss_id: id })
    await node.join()
    await node.heartbeat({}, { lag: [lag] })
    const reason = expect.stringContaining('the segment is in quarantine')
    expect((await receipt(2)).body).toMatchObject({ state: 'waiting', reason })
  })

  test('404 for what was delivered long ago, beside a segment in quarantine that is lost', async () => {
    const { endpoint, node, receipt, commit } = await inhabited()
    await commit(1, 2, 4)
    await removeCommitsBefore(control().store.db, endpoint.id, Number.MAX_SAFE_INTEGER, 100)
    const quarantine = { quarantined_segments: 1, quarantined_first_seq: 3, quarantined_last_seq: 3 }
    const held = { held: [aHeld(5, 10)], records: 10, first_seq: 5, last_seq: 5 }
    await node.heartbeat({}, { lag: [aLag(endpoint.id, { ...held, ...quarantine })] })
    await remove(node.id)
    const states = await Promise.all([2, 3, 5, 6].map(async (seq) => (await receipt(seq)).body))
    expect(states.map(({ state, status }) => state ?? status)).toEqual([404, 'lost', 'lost', 'lost'])
  })

  test('404 for a node that has delivered all, longer ago than commits are kept; it waits for what that may have begun', async () => {
    const { endpoint, node, receipt, commit } = await inhabited()
    await commit(1, 2, 4)
    control().clock.advance(11_000)
    await node.heartbeat()
    await removeCommitsBefore(control().store.db, endpoint.id, Number.MAX_SAFE_INTEGER, 100)
    expect(await receipt(2)).toMatchObject({ status: 404, body: { detail: expect.stringContaining('older than commits') } })
    expect((await receipt(5)).body).toMatchObject({ state: 'waiting' })
  })

  test('404 for what a node delivered long ago that runs on with an adopted log', async () => {
    const { endpoint, node, receipt, commit } = await inhabited()
    await commit(1)
    const secret = newNodeSecret()
    expect((await node.call('POST', 'adopt', { secret })).status).toBe(204)
    node.secret = secret
    control().clock.advance(1_000)
    await node.heartbeat({ leaving: true })
    expect((await receipt(2)).body).toMatchObject({ state: 'lost' })
    control().clock.advance(1_000)
    await node.registerAgain()
    await commit(1_002, 1_003)
    control().clock.advance(11_000)
    await node.heartbeat()
    await removeCommitsBefore(control().store.db, endpoint.id, Number.MAX_SAFE_INTEGER, 100)
    expect((await receipt(1_002)).status).toBe(404)
  })

  test.each(['removed', 'released'])('200 is lost for what a node that was %s had begun after its last report', async (end) => {
    const { node, receipt, hold, commit } = await inhabited()
    await commit(1)
    await hold(2, 3)
    if (end === 'removed') await remove(node.id)
    else {
      await operator().delete(`/v1/nodes/${node.id}/credential?release=true&force=true`)
      await readAll()
      node.secret = newNodeSecret()
    }
    control().clock.advance(1_000)
    await node.join()
    expect((await receipt(4)).body).toMatchObject({ state: 'waiting' })
    await node.heartbeat()
    const states = await Promise.all([1, 3, 4, 1_004].map(async (seq) => (await receipt(seq)).body.state))
    expect(states).toEqual(['delivered', 'lost', 'lost', 'waiting'])
  })

  test('200 is lost for what a forced deletion of the endpoint abandoned', async () => {
    const { account, endpoint, node, receipt, hold } = await inhabited()
    await hold(0, 0)
    await account.delete(`/v1/endpoints/${endpoint.id}?force=true`)
    const lost = { state: 'lost', reason: expect.stringContaining('the endpoint was deleted') }
    expect((await receipt(0)).body).toMatchObject(lost)
    await node.heartbeat()
    expect((await receipt(0)).body).toMatchObject(lost)
  })

  test('404 for a segment that no node can have', async () => {
    const { account, receipt, endpoint, node, hold } = await inhabited()
    await hold(7, 9)
    expect((await receipt(1_009)).body).toMatchObject({ state: 'waiting' })
    expect(await receipt(1_010)).toMatchObject({ status: 404, body: { detail: expect.stringContaining('nothing is known') } })
    const elsewhere = await inhabited()
    await elsewhere.node.heartbeat()
    expect(await receipt(0, elsewhere.node.id)).toMatchObject({ status: 404 })
    const { body: idle } = await account.post('/v1/endpoints', { region: endpoint.region })
    await remove(node.id)
    expect(await account.get(`/v1/endpoints/${idle.id}/receipts/${node.id}-0`)).toMatchObject({ status: 404 })
  })

  test.each(['has segments on both sides of it', 'is of nothing'])(
    '404 for what was delivered longer ago than commits are kept, also by a removed node whose loss %s',
    async (loss) => {
      const { endpoint, node, losses, receipt, hold, commit } = await inhabited()
      await commit(6, 7, 8)
      const held = [aHeld(5, 10), aHeld(9, 10)]
      if (loss !== 'is of nothing') await hold(5, 9, { undelivered_segments: 1, records: 20, held })
      await remove(node.id)
      expect((await receipt(7)).body).toMatchObject({ state: 'delivered' })
      await removeCommitsBefore(control().store.db, endpoint.id, control().clock.now() + 60_000, 10)
      expect(await receipt(7)).toMatchObject({ status: 404, body: { detail: expect.stringContaining('older than commits') } })
      const [open] = await losses()
      expect((await receipt(9)).body).toMatchObject({ state: 'lost', loss_id: open?.id ?? null })
      if (open !== undefined) expect((await receipt(10)).body).toMatchObject({ state: 'lost', loss_id: null })
    },
  )

  test('404 for another endpoint, what is no receipt, an unknown node, and what is older than commits are kept', async () => {
    const { account, receipt, endpoint, commit } = await inhabited()
    await commit(5)
    control().clock.advance(11_000)
    expect(await account.get(`/v1/endpoints/${newId()}/receipts/${newId()}-1`)).toMatchObject({ status: 404 })
    expect(await account.get(`/v1/endpoints/${endpoint.id}/receipts/perhaps`)).toMatchObject({ status: 404 })
    expect(await receipt(1, newId())).toMatchObject({ status: 404 })
    const { node, hold, ...other } = await inhabited()
    await other.commit(5)
    control().clock.advance(11_000)
    await hold(6, 6)
    expect(await other.receipt(4)).toMatchObject({ status: 404, body: { detail: expect.stringContaining('older than commits') } })
    expect(node.id).not.toBe('')
  })
})

describe('a disk that comes back', () => {
  test('makes the loss recovered once its segments are delivered, and receipts wait meanwhile', async () => {
    const { account, node, losses, reasons, receipt, hold, commit } = await inhabited()
    await hold(2, 3, { records: 20 })
    await remove(node.id)
    await node.join()
    expect(await losses()).toMatchObject([{ state: 'open', is_node_back: true }])
    expect(await reasons()).toContain('the node is back, and delivers what it still has')
    expect((await receipt(2)).body).toMatchObject({ state: 'waiting' })
    await hold(2, 4)
    expect((await receipt(4)).body).toMatchObject({ state: 'waiting' })
    await commit(2)
    expect(await losses()).toMatchObject([{ state: 'open', recovered: { segments: 1, records: 10, bytes: 1000 } }])
    await commit(3, 4)
    const [loss] = await losses()
    expect(loss).toMatchObject({ state: 'recovered', recovered: { segments: 2, records: 20 } })
    expect(loss.recovered_at).toMatch(/Z$/)
    expect(await reasons()).not.toContain('confirm')
    expect(await account.post(`/v1/losses/${loss.id}/confirm`)).toMatchObject({ status: 409, body: { error: 'conflict' } })
    expect(await losses()).toMatchObject([{ state: 'recovered', confirmed_at: null }])
    expect((await receipt(3)).body).toMatchObject({ state: 'delivered' })
  })

  test('leaves the loss open if it has not all of it, and a confirmed one is recovered all the same', async () => {
    const { account, node, losses, receipt, hold, commit } = await inhabited()
    await hold(2, 3, { records: 20 })
    await remove(node.id)
    await node.join()
    await commit(3)
    control().clock.advance(11_000)
    await node.heartbeat()
    expect((await receipt(2)).body).toMatchObject({ state: 'lost' })
    const [{ id }] = await losses('?state=open')
    await account.post(`/v1/losses/${id}/confirm`)
    await commit(2)
    expect(await losses()).toMatchObject([{ state: 'recovered', confirmed_by: `key:${account.key_id}` }])
  })
})

describe('a loss is as of', () => {
  const at = (seconds: number) => control().clock.now() + seconds * 1_000
  const iso = (ms: number) => new Date(ms).toISOString()

  test('when the node had counted its logs, however many heartbeats followed', async () => {
    const { endpoint, node, losses, reasons } = await inhabited()
    const counted_at = at(-9)
    const lag = [aLag(endpoint.id, { open_segments: 1, undelivered_segments: 0, records: 0, first_seq: 3, last_seq: 3 })]
    await node.heartbeat({}, { lag, counted_at })
    const unread = { applied_epoch: -1, healthy: false, reasons: ['EIO'], lag: [] }
    await node.heartbeat({}, { ...unread, counted_at: at(0) })
    await node.heartbeat({}, { ...unread, recorded: null, counted_at: at(0) })
    expect((await remove(node.id)).body).toMatchObject({ reported_at: iso(counted_at) })
    expect(await losses()).toMatchObject([
      { reported_at: iso(counted_at), summary: `any record acknowledged after ${iso(counted_at)} (none was known to wait then)` },
    ])
    expect(await reasons()).toContain(
      `acknowledged after ${iso(counted_at)} (none was known to wait then), was not delivered when`,
    )
  })

  test('when the log could be read last, and never later than the report', async () => {
    const { endpoint, node, losses } = await inhabited()
    const counted_at = at(-3_600)
    await node.heartbeat({}, { lag: [aLag(endpoint.id, { records: 4, counted_at: iso(counted_at) })], counted_at: at(-1) })
    await remove(node.id)
    expect(await losses()).toMatchObject([{ reported_at: iso(counted_at) }])
    const ahead = await inhabited()
    const now = at(0)
    await ahead.node.heartbeat({}, { lag: [aLag(ahead.endpoint.id)], counted_at: at(3_600) })
    await remove(ahead.node.id)
    const [loss] = await ahead.losses()
    expect(Date.parse(loss.reported_at) - now).toBeLessThan(3_600_000)
  })

  test('an earlier report, if the disk that came back lacks something of it', async () => {
    const { node, losses, hold, commit } = await inhabited()
    await hold(2, 4, { records: 30, held: [aHeld(2, 10), aHeld(3, 10), aHeld(4, 10)] })
    await remove(node.id)
    const [{ reported_at: first }] = await losses()
    control().clock.advance(60_000)
    await node.join()
    await hold(2, 3, { records: 20, held: [aHeld(2, 10), aHeld(3, 10)] })
    await remove(node.id)
    expect(await losses()).toMatchObject([{ reported_at: first, records: 30 }])
    control().clock.advance(60_000)
    await node.join()
    await commit(2, 3)
    await hold(4, 4, { open_segments: 0, undelivered_segments: 1, records: 10, held: [aHeld(4, 10)] })
    await remove(node.id)
    const [{ reported_at: third }] = await losses()
    expect(Date.parse(third) - Date.parse(first)).toBeGreaterThanOrEqual(120_000)
  })
})

test('an older copy of the disk does not recover what the node had reported beyond it', async () => {
  const { node, losses, hold, commit } = await inhabited()
  await hold(2, 2, { records: 23 })
  await remove(node.id)
  await node.join()
  await commit(2)
  expect(await losses()).toMatchObject([{ state: 'open', records: 23, recovered: { segments: 0, records: 10 } }])
})

test('a node that is removed twice adds to its loss what it has more, and keeps what was recovered', async () => {
  const { node, losses, hold, commit } = await inhabited()
  await hold(2, 3, { records: 20 })
  await remove(node.id)
  await node.join()
  await commit(2)
  await hold(3, 5, { records: 30 })
  await remove(node.id)
  const recovered = { segments: 1, records: 10 }
  const seqs = { first_segment_seq: 2, last_segment_seq: 5 }
  expect(await losses()).toMatchObject([{ state: 'open', ...seqs, segments: 4, records: 40, recovered }])
  await node.join()
  await commit(3, 4, 5)
  expect(await losses()).toMatchObject([{ state: 'recovered', recovered: { segments: 4, records: 40 } }])
})

test('a segment in quarantine is a loss of unknown records, and one only, however often the node is removed', async () => {
  const { endpoint, node, losses, reasons } = await inhabited()
  const quarantine = {
    undelivered_segments: 0,
    quarantined_segments: 1,
    undelivered_bytes: 600,
    records: 0,
    first_seq: null,
    last_seq: null,
  }
  for (let removals = 0; removals < 2; removals += 1) {
    await node.heartbeat({}, { lag: [aLag(endpoint.id, quarantine)] })
    await remove(node.id)
    expect(await losses()).toMatchObject([{ state: 'open', segments: 1, records: null, bytes: 600 }])
    expect(await reasons()).toContain('600 bytes of acknowledged records of node')
    await node.join()
  }
  expect(await reasons()).toContain('what is in quarantine needs a person')
})

test('a segment in quarantine, at the second removal, makes unknown how many records are lost', async () => {
  const { node, losses, reasons, hold, commit } = await inhabited()
  await hold(1, 1, { open_segments: 0, undelivered_segments: 1, records: 10, held: [aHeld(1, 10)] })
  await remove(node.id)
  await node.join()
  const held = [aHeld(1_002, 10), aHeld(1_003, 10)]
  await hold(1_002, 1_003, { quarantined_segments: 1, records: 20, held })
  await remove(node.id)
  expect(await losses()).toMatchObject([{ state: 'open', segments: 4, records: null }])
  expect(await reasons()).toContain('bytes of acknowledged records of node')
  await node.join()
  await commit(1, 1_002, 1_003)
  expect(await losses()).toMatchObject([{ state: 'open', segments: 4, records: null, recovered: { segments: 3 } }])
})

describe('a node whose disk fails', () => {
  const unread = { applied_epoch: -1, healthy: false, reasons: ['the segments on this node cannot be listed (EIO)'], lag: [] }

  test('and cannot be listed after a restart loses what it had reported before', async () => {
    const { endpoint, node, losses, hold } = await inhabited()
    await hold(1, 2, { records: 20 })
    await node.heartbeat({}, unread)
    await node.heartbeat({}, { ...unread, recorded: null })
    expect((await operator().delete(`/v1/nodes/${node.id}`)).body.detail).toContain('stop it first')
    silence()
    const detail = expect.stringContaining('the removal would abandon 2 segments')
    expect(await operator().delete(`/v1/nodes/${node.id}`)).toMatchObject({ status: 409, body: { detail } })
    await remove(node.id)
    expect(await losses()).toMatchObject([{ endpoint_id: endpoint.id, segments: 2, records: 20, first_segment_seq: 1 }])
  })

  test('and keeps its configuration loses what it had reported before, too', async () => {
    const { node, losses, hold } = await inhabited()
    await hold(1, 2, { records: 20 })
    const { position } = await node.snapshot()
    await node.heartbeat({}, { ...unread, kept_position: { ...position, epoch: (position?.epoch ?? 0) + 7 } })
    await remove(node.id)
    expect(await losses()).toMatchObject([{ segments: 2, records: 20 }])
  })

  test('and has read its disk holds what it says, be it nothing', async () => {
    const { node, losses, hold } = await inhabited()
    await hold(1, 2, { records: 20 })
    await node.heartbeat({}, { ...unread, applied_epoch: 0 })
    await remove(node.id)
    expect(await losses()).toEqual([])
  })

  test('so that it cannot list a log may lose what is in it', async () => {
    const { endpoint, node, losses, receipt } = await inhabited()
    const nothing = { undelivered_segments: 0, undelivered_bytes: 0, first_seq: null, last_seq: null, held: [] }
    await node.heartbeat({}, { lag: [aLag(endpoint.id, { ...nothing, records: null })] })
    silence()
    const detail = expect.stringContaining('the removal would abandon logs that it could not list of 1 endpoint')
    expect(await operator().delete(`/v1/nodes/${node.id}`)).toMatchObject({ status: 409, body: { detail } })
    await remove(node.id)
    const [loss] = await losses()
    expect(loss).toMatchObject({ segments: 1, records: null, first_segment_seq: null, last_segment_seq: null })
    expect((await receipt(5)).body).toMatchObject({ state: 'lost', loss_id: loss.id })
  })

  test('and says less of its segments than it counts loses all that it counts', async () => {
    const { node, losses, hold } = await inhabited()
    await hold(1, 5, { held: [aHeld(1, 10)] })
    await remove(node.id)
    expect(await losses()).toMatchObject([{ segments: 5, records: null }])
  })
})

test('a node that joins again with another secret has one loss, and is back', async () => {
  const { node, losses, hold } = await inhabited()
  await hold(1, 2, { records: 20 })
  await remove(node.id)
  const [{ id }] = await losses()
  expect(await operator().delete(`/v1/nodes/${node.id}/credential`)).toMatchObject({ status: 204 })
  expect((await node.join()).body).toMatchObject({ joined: false, reason: 'revoked' })
  const previous_secret = node.secret
  node.secret = newNodeSecret()
  expect((await node.join({ previous_secret })).body).toMatchObject({ joined: true })
  expect(await losses()).toMatchObject([{ id, is_node_back: true }])
  await hold(1, 2, { records: 20 })
  await remove(node.id)
  expect(await losses()).toMatchObject([{ id, segments: 2, records: 20 }])
})

test('a node whose credential is revoked while it is back has one loss, too', async () => {
  const { node, losses, hold } = await inhabited()
  await hold(1, 2, { records: 20 })
  await remove(node.id)
  await node.join()
  const [{ id }] = await losses()
  expect(await operator().delete(`/v1/nodes/${node.id}/credential`)).toMatchObject({ status: 204 })
  const previous_secret = node.secret
  node.secret = newNodeSecret()
  expect((await node.join({ previous_secret })).body).toMatchObject({ joined: true })
  await hold(1, 2, { records: 20 })
  expect(await losses()).toMatchObject([{ id, is_node_back: true }])
  await remove(node.id)
  expect(await losses()).toMatchObject([{ id, segments: 2, records: 20 }])
})

test('an id that is released for another disk records the loss, and its seqs are not used again', async () => {
  const { endpoint, node, losses, receipt, hold } = await inhabited()
  await hold(2, 3)
  const release = (more = '') => operator().delete(`/v1/nodes/${node.id}/credential?release=true${more}`)
  const detail = expect.stringContaining('the node runs')
  expect(await release()).toMatchObject({ status: 409, body: { error: 'conflict', detail } })
  expect(await losses()).toEqual([])
  expect(await release('&force=true')).toMatchObject({ status: 204 })
  await readAll()
  expect(await losses()).toMatchObject([{ state: 'open', segments: 2, is_node_back: false }])
  expect((await node.join()).body).toMatchObject({ joined: false, reason: 'revoked' })
  node.secret = newNodeSecret()
  await node.join()
  expect(await losses()).toMatchObject([{ state: 'open', is_node_back: false }])
  expect((await node.call('GET', `committed-seqs?node_id=${node.id}`)).body.seqs[endpoint.id]).toBe(1_003)
  await hold(1_004, 1_004)
  expect((await receipt(2)).body).toMatchObject({ state: 'lost' })
  expect((await receipt(1_004)).body).toMatchObject({ state: 'waiting' })
  expect((await remove(node.id)).body).toMatchObject({ losses: 1 })
})
