/** A removed machine: how much it may cause, and how its last deliveries are found. */
import { expect, test } from 'vitest'
import { newNodeSecret, printNodeCredential } from '#auth/node-credential.ts'
import { rebuildRegion } from '#cli/commits/rebuild-region.ts'
import { searchEndpoint } from '#cli/commits/search-endpoint.ts'
import { commitId } from '#model/commit.ts'
import { clientOf, newControl, operatorToken, useControl } from '../support/control.ts'
import { deliverCommit } from '../support/deliver-commit.ts'
import { aLag } from '../support/lags.ts'
import { readMarkers } from '../support/read-markers.ts'
import { anEndpointWithNode } from '../support/set-up.ts'
import { aCommit } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const control = useControl()
type Control = ReturnType<typeof control>

/** A node that has delivered segment 3. */
async function inhabited(at: Control) {
  const account = await at.newAccount()
  const { endpoint, node, destination } = await anEndpointWithNode(at, account, { name: 'checkout' })
  const before = printNodeCredential(node.id, node.secret)
  const operator = clientOf(at.call, operatorToken)
  const commitOf = (seq: number, more: object = {}) => aCommit(node.id, endpoint.id, seq, { records_damaged: 0, ...more })
  const put = (seq: number) => deliverCommit(at.directory, destination, commitOf(seq))
  await node.snapshot()
  expect(await node.call('POST', 'commits', { commits: [await put(3)] })).toMatchObject({ status: 200 })
  await node.heartbeat()
  return {
    ...{ account, endpoint, node, operator, commitOf, put },
    hold: (first_seq: number, last_seq: number) => {
      const segments = last_seq - first_seq + 1
      const held = { open_segments: 0, undelivered_segments: segments, records: 10 * segments, first_seq, last_seq }
      return node.heartbeat({}, { lag: [aLag(endpoint.id, held)] })
    },
    /** Puts a segment into the bucket, and cannot report it. */
    async deliverRefused(seq: number) {
      const refused = await node.call('POST', 'commits', { commits: [await put(seq)] }, before)
      expect(refused).toMatchObject({ status: 401, body: { fence: 'node_removed' } })
    },
    async remove() {
      expect(await operator.delete(`/v1/nodes/${node.id}?force=true`)).toMatchObject({ status: 200 })
    },
    left: (seq: number, more: object = {}) => {
      return { endpoint_id: endpoint.id, first_seq: seq, last_seq: seq, segments: 1, records: 10, bytes: 2_000, ...more }
    },
    report: (...segments: readonly object[]) => node.call('POST', 'left-on-disk', { node_id: node.id, segments }, before),
    losses: async () => (await account.get('/v1/losses')).body.items,
    receipt: async (seq: number) => (await account.get(`/v1/endpoints/${endpoint.id}/receipts/${node.id}-${seq}`)).body,
    committed: async () => (await node.call('GET', `committed-seqs?node_id=${node.id}`)).body.seqs[endpoint.id],
    mayLackCommits: async () => (await account.get(`/v1/endpoints/${endpoint.id}/commits`)).body.may_lack_commits_since !== null,
  }
}

test('what a node delivered before it knew of its removal is found, without a word that commits are missing', async () => {
  await using at = await newControl({ rebuildRegion, searchEndpoint })
  const { remove, deliverRefused, left, report, losses, receipt, mayLackCommits } = await inhabited(at)
  await remove()
  await deliverRefused(4)
  expect(await losses()).toEqual([])
  // The segment is on its disk until control has recorded the commit.
  expect(await report(left(4))).toMatchObject({ status: 200, body: { losses: 1 } })
  expect(await mayLackCommits()).toBe(false)
  at.clock.advance(60_001)
  await until('the commit', async () => (await receipt(4)).state === 'delivered')
  expect(await losses()).toMatchObject([{ state: 'recovered', segments: 1, recovered: { records: 10 } }])
})

test('what a node delivered that was cut off at its removal is found once it is back', async () => {
  await using at = await newControl({ rebuildRegion, searchEndpoint })
  const { hold, remove, deliverRefused, left, report, losses, receipt, mayLackCommits } = await inhabited(at)
  await hold(4, 5)
  await remove()
  at.clock.advance(60_001)
  await until('the search', async () => (await losses())[0].searched_at !== null)
  await deliverRefused(4)
  expect(await mayLackCommits()).toBe(true)
  expect(await report(left(4), left(5))).toMatchObject({ status: 200, body: { losses: 1 } })
  expect(await receipt(4)).toMatchObject({ state: 'waiting' })
  at.clock.advance(60_001)
  await until('the commit', async () => (await receipt(4)).state === 'delivered')
  await until('the end', async () => !(await mayLackCommits()))
  expect(await losses()).toMatchObject([{ state: 'open', recovered: { segments: 1, records: 10 } }])
})

test('a second removal has a time of its own, and a minute before its segments are looked for', async () => {
  await using at = await newControl({ rebuildRegion, searchEndpoint })
  const { node, hold, remove, losses, receipt, put } = await inhabited(at)
  await hold(4, 5)
  await remove()
  at.clock.advance(60_001)
  await until('the search', async () => (await losses())[0].searched_at !== null)
  expect(await node.join()).toMatchObject({ status: 200, body: { joined: true } })
  await hold(4, 5)
  at.clock.advance(600_000)
  const removedAt = at.clock.now()
  await remove()
  const [loss] = await losses()
  expect(loss).toMatchObject({ segments: 2, searched_at: null })
  expect(Date.parse(loss.recorded_at)).toBeGreaterThanOrEqual(removedAt)
  await put(4)
  at.clock.advance(60_001)
  await until('the commit', async () => (await receipt(4)).state === 'delivered')
  const searchedAt = Date.parse((await losses())[0].searched_at)
  expect(searchedAt - removedAt).toBeGreaterThanOrEqual(60_000)
})

test('a removed node that comes back with an older disk uses no seq of what it lost', async () => {
  const { node, commitOf, hold, remove, losses, receipt, committed } = await inhabited(control())
  await hold(4, 5)
  await remove()
  expect(await node.join()).toMatchObject({ status: 200, body: { joined: true } })
  expect(await committed()).toBe(1_005)
  // A join that is repeated, because its response was lost, changes nothing.
  expect(await node.join()).toMatchObject({ status: 200, body: { joined: true } })
  expect(await committed()).toBe(1_005)
  const log = 'zzzzzzzzzz'
  const commits = [1_006, 1_007].map((seq) => ({ ...commitOf(seq), log, id: commitId(node.id, log, seq) }))
  expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200 })
  await node.heartbeat()
  await readMarkers(control().store)
  expect(await losses()).toMatchObject([{ state: 'open', segments: 2, recovered: { segments: 0 } }])
  expect([await receipt(4), await receipt(1_006)]).toMatchObject([{ state: 'lost' }, { state: 'delivered' }])
})

test('the segments of an entry have all its seqs: commits of others do not count', async () => {
  const { left, remove, report, losses } = await inhabited(control())
  await remove()
  expect(await report(left(1, { last_seq: 5, segments: 2, records: 20 }))).toMatchObject({ status: 422 })
  expect(await report(left(1), left(5))).toMatchObject({ status: 200 })
  expect(await losses()).toMatchObject([{ first_segment_seq: 1, last_segment_seq: 5, segments: 2, records: 20 }])
})

test('no seq that a removed machine names uses up those of the next one', async () => {
  const { node, operator, left, remove, report, committed } = await inhabited(control())
  await remove()
  const highest = 999_999_999_999
  expect(await report(left(highest + 1))).toMatchObject({ status: 422 })
  expect(await report(left(highest))).toMatchObject({ status: 200 })
  expect(await operator.delete(`/v1/nodes/${node.id}/credential?release=true&force=true`)).toMatchObject({ status: 204 })
  node.secret = newNodeSecret()
  expect(await node.join()).toMatchObject({ status: 200, body: { joined: true } })
  expect(await committed()).toBe(3 + 1_000_000_000 + 1_000)
})

test('the credential of a removed node can be revoked: nobody believes its machine any more', async () => {
  const { node, operator, left, remove, report, losses } = await inhabited(control())
  const revoke = () => operator.delete(`/v1/nodes/${node.id}/credential`)
  await remove()
  expect(await report(left(4))).toMatchObject({ status: 200 })
  expect(await revoke()).toMatchObject({ status: 204 })
  expect(await revoke()).toMatchObject({ status: 204 })
  expect(await report(left(4), left(5))).toMatchObject({ status: 401 })
  expect(await losses()).toMatchObject([{ segments: 1 }])
  // As before a removal: with a join token it gets another one.
  expect(await node.join()).toMatchObject({ status: 200, body: { joined: false, reason: 'revoked' } })
  const previous_secret = node.secret
  node.secret = newNodeSecret()
  expect(await node.join({ previous_secret })).toMatchObject({ status: 200, body: { joined: true } })
  expect(await report(left(4), left(5))).toMatchObject({ status: 401 })
})

test('a machine that was adopted, and then its id released, can be revoked as well', async () => {
  const { node, operator, left, report } = await inhabited(control())
  const secret = newNodeSecret()
  expect(await node.call('POST', 'adopt', { secret })).toMatchObject({ status: 204 })
  node.secret = secret
  expect(await report(left(4))).toMatchObject({ status: 200 })
  expect(await operator.delete(`/v1/nodes/${node.id}/credential?release=true&force=true`)).toMatchObject({ status: 204 })
  expect(await report(left(4))).toMatchObject({ status: 200 })
  expect(await operator.delete(`/v1/nodes/${node.id}/credential`)).toMatchObject({ status: 204 })
  expect(await report(left(4))).toMatchObject({ status: 401 })
})

test('a machine that reports its disk again and again has to wait', async () => {
  const { left, remove, report, losses } = await inhabited(control())
  await remove()
  for (let records = 1; records <= 50; records += 1) expect(await report(left(4, { records }))).toMatchObject({ status: 200 })
  const refused = await report(left(4, { records: 51 }))
  expect(refused).toMatchObject({ status: 429, body: { error: 'too_many_requests' } })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(500)
  expect(await losses()).toMatchObject([{ records: 50 }])
  control().clock.pass(600_000)
  expect(await report(left(4, { records: 51 }))).toMatchObject({ status: 200 })
  expect(await report(left(4, { records: 52 }))).toMatchObject({ status: 429 })
  // Others are not concerned.
  const other = await inhabited(control())
  await other.remove()
  expect(await other.report(other.left(4))).toMatchObject({ status: 200 })
})
