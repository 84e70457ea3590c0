/** A node takes over another one, whose machine is lost: control gives it the id, and refuses the lost machine. */
import { describe, expect, test } from 'vitest'
import { newNodeSecret, printNodeCredential } from '#auth/node-credential.ts'
import { newId } from '#model/id.ts'
import { clientOf, newControl, newRegion, operatorToken, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { readMarkers } from '../support/read-markers.ts'
import { anEndpointWithNode } from '../support/set-up.ts'
import { aCommit, TestNode } from '../support/test-node.ts'

const control = useControl()

/** A node that control has not heard of for an hour, and another one of its region. */
async function furnished() {
  const region = newRegion()
  const [lost, taking] = [await TestNode.register(control(), region), await TestNode.register(control(), region)]
  const silent = () =>
    control()
      .store.db.updateTable('nodes')
      .set({ registered_at: Date.now() - 3_600_000 })
      .where('id', '=', lost.id)
      .execute()
  const secret = newNodeSecret()
  const takeOver = (by = taking, lost_node_id = lost.id, made = secret) =>
    by.call('POST', 'take-over', { lost_node_id, secret: made })
  const standing = async (made: string) => {
    const path = `committed-seqs?node_id=${lost.id}`
    const { status, body } = await lost.call('GET', path, undefined, printNodeCredential(lost.id, made))
    return status === 200 ? 'accepted' : body.fence
  }
  return { region, lost, taking, secret, silent, takeOver, standing }
}

test('a silent node is given to the node that asks, also if the answer was lost, and its machine is refused', async () => {
  const { lost, taking, secret, silent, takeOver, standing } = await furnished()
  await silent()
  expect([(await takeOver()).status, (await takeOver()).status]).toEqual([204, 204])
  expect([await standing(lost.secret), await standing(secret)]).toEqual(['node_adopted', 'accepted'])
  const events = await clientOf(control().call, operatorToken).get(
    '/v1/installation/audit-events?operation=takeOverNode&limit=10',
  )
  const of = events.body.items.filter(({ resource_id }: { readonly resource_id: string }) => resource_id === lost.id)
  expect(of).toMatchObject([{ actor: `node:${taking.id}` }])
})

test('of two nodes that ask, the later one has it', async () => {
  const { region, secret, silent, takeOver, standing } = await furnished()
  await silent()
  expect((await takeOver()).status).toBe(204)
  const [other, later] = [await TestNode.register(control(), region), newNodeSecret()]
  expect((await takeOver(other, undefined, later)).status).toBe(204)
  expect([await standing(secret), await standing(later)]).toEqual(['node_adopted', 'accepted'])
})

test('a node that runs is not given away, nor one of another region, an unknown one, or the node itself', async () => {
  const { lost, taking, takeOver, standing } = await furnished()
  expect(await takeOver()).toMatchObject({
    status: 409,
    body: { detail: expect.stringContaining('runs: control heard of it at') },
  })
  const elsewhere = await TestNode.register(control(), newRegion())
  const none = { status: 404, body: { detail: expect.stringContaining('there is no other node') } }
  expect(await takeOver(elsewhere)).toMatchObject(none)
  expect(await takeOver(taking, newId())).toMatchObject(none)
  expect(await takeOver(taking, taking.id)).toMatchObject(none)
  expect(await standing(lost.secret)).toBe('accepted')
})

describe('beside another change', () => {
  const operator = () => clientOf(control().call, operatorToken)

  test('a node that is removed is given to nobody, so that its machine keeps its place once it joins again', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { lost, taking, silent, takeOver, standing } = await furnished()
      await silent()
      const remove = () => operator().delete(`/v1/nodes/${lost.id}?force=true`)
      const [taken, removed] = await Promise.all([takeOver(), remove()])
      expect(removed).toMatchObject({ status: 200 })
      if (taken.status === 204) continue
      expect(taken).toMatchObject({ status: 404 })
      await lost.join()
      expect((await operator().delete(`/v1/nodes/${taking.id}?force=true`)).status).toBe(200)
      expect(await standing(lost.secret)).toBe('accepted')
    }
  })

  test('a node whose credential is revoked takes nothing over', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { taking, secret, silent, takeOver, standing } = await furnished()
      await silent()
      const revoke = () => operator().delete(`/v1/nodes/${taking.id}/credential`)
      await Promise.all([takeOver(), revoke()])
      expect(await standing(secret)).not.toBe('accepted')
    }
  })
})

describe('what the lost node had', () => {
  const operator = () => clientOf(control().call, operatorToken)
  const nothing = { undelivered_segments: 0, records: 0, held: [], first_seq: null, last_seq: null }

  /** A node with an endpoint, and others of its region that take it over. */
  async function inhabited() {
    const account = await control().newAccount()
    const { endpoint, node, region } = await anEndpointWithNode(control(), account, { name: 'checkout' })
    await node.snapshot()
    const losses = async () => (await account.get('/v1/losses')).body.items
    const state = async (seq: number) => {
      const { status, body } = await account.get(`/v1/endpoints/${endpoint.id}/receipts/${node.id}-${seq}`)
      return body.state ?? status
    }
    const takeOver = async () => {
      const by = await TestNode.register(control(), region)
      control().clock.advance(16_000)
      const secret = newNodeSecret()
      expect(await by.call('POST', 'take-over', { lost_node_id: node.id, secret })).toMatchObject({ status: 204 })
      node.secret = secret
      await readMarkers(control().store)
      control().clock.advance(1_000)
      return by
    }
    /** The other node adopts what it restored, as at each start of that. */
    const adopt = async () => {
      const secret = newNodeSecret()
      expect(await node.call('POST', 'adopt', { secret })).toMatchObject({ status: 204 })
      node.secret = secret
      control().clock.advance(1_000)
    }
    /** Reports sealed segments of ten records. */
    const hold = async (first_seq: number, last_seq: number, more: object = {}) => {
      const seqs = Array.from({ length: last_seq - first_seq + 1 }, (_, at) => first_seq + at)
      const held = seqs.map((seq) => ({ first_seq: seq, last_seq: seq, segments: 1, records: 10, bytes: 10 }))
      const counts = { undelivered_segments: seqs.length, records: 10 * seqs.length, undelivered_bytes: 10 * seqs.length }
      await node.heartbeat({}, { lag: [aLag(endpoint.id, { ...counts, held, first_seq, last_seq, ...more })] })
    }
    const commit = async (...seqs: readonly number[]) => {
      const commits = seqs.map((seq) => aCommit(node.id, endpoint.id, seq, { records_damaged: 0 }))
      expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200 })
    }
    const reasons = async (): Promise<string> => (await account.get(`/v1/endpoints/${endpoint.id}`)).body.status_reasons.join()
    return { endpoint, node, losses, state, takeOver, adopt, hold, commit, reasons }
  }

  test('is a loss until it is delivered; the status says whether the other node is at it', async () => {
    const { node, losses, takeOver, adopt, hold, commit, reasons } = await inhabited()
    await hold(1, 2)
    const by = await takeOver()
    await adopt()
    expect(await losses()).toMatchObject([{ cause: 'node_taken_over', state: 'open', segments: 2, is_node_back: true }])
    expect(await reasons()).toContain('were not delivered when another node took over its copies at')
    expect(await reasons()).toContain('that node delivers what has copies')
    await commit(1)
    expect((await by.call('POST', 'take-over/end', { lost_node_id: node.id })).status).toBe(204)
    expect(await losses()).toMatchObject([{ state: 'open', is_node_back: false, recovered: { segments: 1 } }])
    expect(await reasons()).toContain('bring its disk back')
    await commit(2)
    expect(await losses()).toMatchObject([{ state: 'recovered' }])
  })

  test('is delivered by nobody once the credential of the other node is revoked', async () => {
    const { losses, takeOver, hold, reasons } = await inhabited()
    await hold(1, 2)
    const by = await takeOver()
    expect((await operator().delete(`/v1/nodes/${by.id}/credential`)).status).toBe(204)
    expect(await losses()).toMatchObject([{ state: 'open', is_node_back: false }])
    expect(await reasons()).toContain('bring its disk back')
  })

  test('is one loss if the node that took it over is lost, too', async () => {
    const { node, losses, takeOver, hold, commit } = await inhabited()
    await hold(1, 3)
    await takeOver()
    await hold(1, 3)
    await commit(1)
    await takeOver()
    expect(await losses()).toMatchObject([{ segments: 3, records: 30, recovered: { segments: 1, records: 10 } }])
    // The last one has reported nothing yet.
    expect(await operator().delete(`/v1/nodes/${node.id}?force=true`)).toMatchObject({ status: 200 })
    expect(await losses()).toMatchObject([{ cause: 'node_removed', segments: 3, recovered: { segments: 1 } }])
    await node.join()
    await commit(2, 3)
    expect(await losses()).toMatchObject([{ state: 'recovered' }])
  })

  test('is one loss if the node that took it over got a new secret after its credential was revoked', async () => {
    const { node, losses, takeOver, hold } = await inhabited()
    await hold(1, 3)
    await takeOver()
    expect((await operator().delete(`/v1/nodes/${node.id}/credential`)).status).toBe(204)
    const previous_secret = node.secret
    node.secret = newNodeSecret()
    expect(await node.join({ previous_secret })).toMatchObject({ status: 200, body: { joined: true } })
    await hold(1, 3)
    control().clock.advance(1_000)
    expect(await operator().delete(`/v1/nodes/${node.id}?force=true`)).toMatchObject({ status: 200 })
    expect(await losses()).toMatchObject([{ cause: 'node_removed', segments: 3 }])
  })

  test('is one loss if its machine comes back, and says what its disk has', async () => {
    const { endpoint, node, losses, takeOver, adopt, hold } = await inhabited()
    const lost = printNodeCredential(node.id, node.secret)
    await hold(1, 2)
    await takeOver()
    await adopt()
    await adopt()
    const held = { endpoint_id: endpoint.id, segments: 1, records: 10, bytes: 10 }
    const segments = [1, 2].map((seq) => ({ ...held, first_seq: seq, last_seq: seq }))
    expect(await node.call('POST', 'left-on-disk', { node_id: node.id, segments }, lost)).toMatchObject({ status: 200 })
    expect(await losses()).toMatchObject([{ cause: 'left_on_disk', state: 'open', segments: 2, records: 20 }])
  })

  test.each(['starts again', 'is lost, too, and a third one takes over'])(
    'is one loss if its machine comes back before the other node %s',
    async (next) => {
      const { endpoint, node, losses, takeOver, adopt, hold, commit } = await inhabited()
      const lost = printNodeCredential(node.id, node.secret)
      await hold(1, 3)
      await takeOver()
      await adopt()
      await hold(1, 3)
      const held = { endpoint_id: endpoint.id, segments: 1, records: 10, bytes: 10 }
      const segments = [1, 2, 3].map((seq) => ({ ...held, first_seq: seq, last_seq: seq }))
      expect(await node.call('POST', 'left-on-disk', { node_id: node.id, segments }, lost)).toMatchObject({ status: 200 })
      const onDisk = { cause: 'left_on_disk', state: 'open', segments: 3 }
      expect(await losses()).toMatchObject([onDisk])
      await hold(1, 4)
      await (next === 'starts again' ? adopt() : takeOver())
      const added = { state: 'open', first_segment_seq: 4, last_segment_seq: 4, segments: 1, records: 10, bytes: 10 }
      expect(await losses()).toMatchObject([added, onDisk])
      await commit(1, 2, 3, 4)
      expect(await losses()).toMatchObject([{ state: 'recovered' }, { state: 'recovered' }])
    },
  )

  test.each(['removed', 'released'])('is one loss if its machine comes back once the node is %s', async (end) => {
    const { endpoint, node, losses, takeOver, hold } = await inhabited()
    const [lost, previous_secret] = [printNodeCredential(node.id, node.secret), node.secret]
    await hold(1, 2)
    await takeOver()
    await hold(1, 2)
    const path = end === 'removed' ? '?force=true' : '/credential?release=true&force=true'
    expect((await operator().delete(`/v1/nodes/${node.id}${path}`)).status).toBeLessThan(300)
    expect(await losses()).toMatchObject([{ cause: `node_${end}`, segments: 2 }])
    const held = { endpoint_id: endpoint.id, segments: 1, records: 10, bytes: 10 }
    const segments = [1, 2].map((seq) => ({ ...held, first_seq: seq, last_seq: seq }))
    expect(await node.call('POST', 'left-on-disk', { node_id: node.id, segments }, lost)).toMatchObject({ status: 200 })
    expect(await losses()).toMatchObject([{ cause: 'left_on_disk', state: 'open', segments: 2, records: 20 }])
    if (end === 'removed') return
    // Another machine delivers nothing of it, and the lost one does.
    node.secret = newNodeSecret()
    await node.registerAgain()
    expect(await losses()).toMatchObject([{ is_node_back: false }])
    expect((await operator().delete(`/v1/nodes/${node.id}${path}`)).status).toBe(204)
    expect(await node.join({ secret: newNodeSecret(), previous_secret })).toMatchObject({ body: { joined: true } })
    expect(await losses()).toMatchObject([{ cause: 'node_released', is_node_back: true, segments: 2 }])
  })

  test('is not only on its disk if it has less: the other machine may have run on as the node', async () => {
    const { endpoint, node, losses, adopt, hold } = await inhabited()
    const lost = printNodeCredential(node.id, node.secret)
    await hold(1, 2)
    await adopt()
    await node.registerAgain()
    await hold(1, 3)
    control().clock.advance(1_000)
    await adopt()
    const held = { endpoint_id: endpoint.id, segments: 1, records: 10, bytes: 10 }
    const segments = [1, 2].map((seq) => ({ ...held, first_seq: seq, last_seq: seq }))
    expect(await node.call('POST', 'left-on-disk', { node_id: node.id, segments }, lost)).toMatchObject({ status: 200 })
    expect(await losses()).toMatchObject([{ cause: 'node_adopted', is_node_back: true, segments: 3, records: 30 }])
  })

  test('in quarantine is on its disk alone', async () => {
    const { node, losses, state, takeOver, hold, commit } = await inhabited()
    await commit(1)
    const quarantine = { quarantined_segments: 1, quarantined_first_seq: 3, quarantined_last_seq: 3 }
    await hold(3, 3, { ...nothing, ...quarantine })
    await takeOver()
    await node.heartbeat({}, { lag: [] })
    expect(await losses()).toMatchObject([{ state: 'open', first_segment_seq: 3, segments: 1, records: null }])
    expect(await state(3)).toBe('lost')
  })

  test.each(['with', 'without'])('and had begun after its last report is lost, %s a loss', async (with_) => {
    const { node, state, takeOver, adopt, hold } = await inhabited()
    if (with_ === 'with') await hold(1, 2)
    else await node.heartbeat()
    await takeOver()
    await adopt()
    await adopt()
    expect(await state(3)).toBe('waiting')
    await node.heartbeat({ healthy: false, leaving: true }, { lag: [] })
    expect(await state(3)).toBe('lost')
  })

  test('and had begun after its last report is lost, although an earlier loss has ended', async () => {
    const { node, losses, state, takeOver, adopt, hold, commit } = await inhabited()
    await hold(1, 2)
    await adopt()
    await commit(1, 2)
    expect(await losses()).toMatchObject([{ state: 'recovered' }])
    // It runs on as a node.
    await node.registerAgain()
    await commit(1_003, 1_004)
    await node.heartbeat({}, { lag: [] })
    await takeOver()
    await adopt()
    expect(await state(1_005)).toBe('waiting')
    await node.heartbeat({ healthy: false, leaving: true }, { lag: [] })
    expect([await state(1_004), await state(1_005), await state(2_005)]).toEqual(['delivered', 'lost', 'waiting'])
  })

  test.each(['removed', 'released'])('is given to nobody any more once it is %s', async (end) => {
    const { node, takeOver, hold } = await inhabited()
    await hold(1, 1)
    const by = await takeOver()
    const next = () => by.call('POST', 'take-over/next', { node_id: by.id, running: [node.id] })
    expect(await next()).toMatchObject({ body: { lost_node_ids: [node.id] } })
    const path = end === 'removed' ? '?force=true' : '/credential?release=true&force=true'
    expect((await operator().delete(`/v1/nodes/${node.id}${path}`)).status).toBeLessThan(300)
    expect(await next()).toMatchObject({ body: { lost_node_ids: [] } })
  })
})

describe('with INLET_TAKEOVER_AFTER', () => {
  /** Nodes of a region, the first of which sent one heartbeat, at a control of their own. */
  async function region(heartbeat: object = { copy_store: true }) {
    const at = await newControl({ environment: { INLET_TAKEOVER_AFTER: '60s' } })
    const name = newRegion()
    const [lost, a, b] = [await TestNode.register(at, name), await TestNode.register(at, name), await TestNode.register(at, name)]
    const well = { process: 'ingest', applied_epoch: 1, healthy: true, reasons: [], disk_full: false, blocked: [] }
    const beat = async () =>
      expect((await lost.call('POST', 'heartbeat', { ...well, node_id: lost.id, ...heartbeat })).status).toBe(200)
    await beat()
    const next = async (node: TestNode, ...running: readonly string[]) => {
      const { status, body } = await node.call('POST', 'take-over/next', { node_id: node.id, running })
      expect(status).toBe(200)
      return body.lost_node_ids
    }
    return { at, lost, a, b, next, beat, [Symbol.asyncDispose]: () => at[Symbol.asyncDispose]() }
  }

  test('a node that is silent for so long is given to one that asks, and to another one once that is silent, too', async () => {
    await using given = await region()
    const { at, lost, a, b, next } = given
    at.clock.advance(59_000)
    expect(await next(a)).toEqual([])
    at.clock.advance(2_000)
    // Control may have been away itself.
    expect(await next(a)).toEqual([])
    at.clock.advance(31_000)
    // The answer may be lost.
    expect([await next(a), await next(b), await next(a)]).toEqual([[lost.id], [], [lost.id]])
    at.clock.advance(50_000)
    expect(await next(a, lost.id)).toEqual([lost.id])
    at.clock.advance(50_000)
    expect(await next(b)).toEqual([])
    at.clock.advance(11_000)
    expect([await next(b), await next(a)]).toEqual([[lost.id], []])
    expect((await a.call('POST', 'take-over/end', { lost_node_id: lost.id })).status).toBe(204)
    expect(await next(b)).toEqual([lost.id])
    expect((await b.call('POST', 'take-over/end', { lost_node_id: lost.id })).status).toBe(204)
  })

  test.each(
    ['removed', 'revoked', 'released'].flatMap((end) => [
      [end, false],
      [end, true],
    ]) as [string, boolean][],
  )('a node that is %s has lost what it took over, and another one gets that; unless it has ended: %s', async (end, isEnded) => {
    await using given = await region()
    const { at, lost, a, b, next } = given
    at.clock.advance(61_000)
    expect(await next(a)).toEqual([])
    at.clock.advance(31_000)
    expect(await next(a)).toEqual([lost.id])
    const takeOver = async (by: TestNode) => {
      const secret = newNodeSecret()
      expect((await by.call('POST', 'take-over', { lost_node_id: lost.id, secret })).status).toBe(204)
      lost.secret = secret
    }
    const standing = () => lost.call('GET', `committed-seqs?node_id=${lost.id}`)
    await takeOver(a)
    expect((await standing()).status).toBe(200)
    if (isEnded) expect((await a.call('POST', 'take-over/end', { lost_node_id: lost.id })).status).toBe(204)
    const path = { removed: '?force=true', revoked: '/credential', released: '/credential?release=true&force=true' }[end]
    const ended = await at.call('DELETE', `/v1/nodes/${a.id}${path}`, undefined, { authorization: `Bearer ${operatorToken}` })
    expect(ended.status).toBeLessThan(300)
    expect(await standing()).toMatchObject({ status: 401, body: { fence: 'node_revoked' } })
    at.clock.advance(61_000)
    if (isEnded) return expect(await next(b)).toEqual([])
    expect(await next(b)).toEqual([lost.id])
    await takeOver(b)
    expect((await standing()).status).toBe(200)
  })

  test('a node that is heard again before the other one has its place keeps it, also if that one is removed', async () => {
    await using given = await region()
    const { at, lost, a, b, next, beat } = given
    at.clock.advance(61_000)
    expect(await next(a)).toEqual([])
    at.clock.advance(31_000)
    expect(await next(a)).toEqual([lost.id])
    at.clock.advance(1_000)
    await beat()
    expect(await next(a)).toEqual([])
    const operator = { authorization: `Bearer ${operatorToken}` }
    expect((await at.call('DELETE', `/v1/nodes/${a.id}?force=true`, undefined, operator)).status).toBe(200)
    expect((await lost.call('GET', `committed-seqs?node_id=${lost.id}`)).status).toBe(200)
    at.clock.advance(61_000)
    // Control may have been away itself, as the first time.
    expect(await next(b)).toEqual([])
    at.clock.advance(31_000)
    expect(await next(b)).toEqual([lost.id])
  })

  test('a node that cannot take over what it should gets no other one meanwhile, and nothing a second time', async () => {
    await using given = await region()
    const { at, lost, a, b, next } = given
    const second = await TestNode.register(at, a.region)
    const well = { process: 'ingest', applied_epoch: 1, healthy: true, reasons: [], disk_full: false, blocked: [] }
    await second.call('POST', 'heartbeat', { ...well, node_id: second.id, copy_store: true })
    at.clock.advance(61_000)
    // Each call suspects one of them.
    expect([await next(a), await next(a)]).toEqual([[], []])
    at.clock.advance(31_000)
    const [first] = await next(a)
    const other = first === lost.id ? second.id : lost.id
    expect([await next(a), await next(b)]).toEqual([[first], [other]])
    at.clock.advance(61_000)
    expect(await next(b, other)).toEqual([other])
    // It is the first one to ask.
    expect([await next(a), await next(a)]).toEqual([[first], [first]])
    const third = await TestNode.register(at, a.region)
    expect([await next(third), await next(a)]).toEqual([[first], []])
  })

  describe('a node whose takeover stands still', () => {
    /** `a` has the place of the lost node, and `b` should take it over from `a`, but has not begun. */
    async function stalled() {
      const given = await region()
      const { at, lost, a, b, next } = given
      at.clock.advance(61_000)
      expect(await next(a)).toEqual([])
      at.clock.advance(31_000)
      expect(await next(a)).toEqual([lost.id])
      const takeOver = async (by: TestNode, lost_node_id = lost.id, made = newNodeSecret()) => {
        expect((await by.call('POST', 'take-over', { lost_node_id, secret: made })).status).toBe(204)
        return made
      }
      lost.secret = await takeOver(a)
      at.clock.advance(61_000)
      expect(await next(b)).toEqual([lost.id])
      const standing = () => lost.call('GET', `committed-seqs?node_id=${lost.id}`)
      const operator = { authorization: `Bearer ${operatorToken}` }
      const end = (node: TestNode) => node.call('POST', 'take-over/end', { lost_node_id: lost.id })
      const revoke = async (node: TestNode) =>
        expect((await at.call('DELETE', `/v1/nodes/${node.id}/credential`, undefined, operator)).status).toBe(204)
      return { ...given, takeOver, standing, end, revoke, [Symbol.asyncDispose]: () => given[Symbol.asyncDispose]() }
    }

    test('has lost what it took over once its credential is revoked, although another one should go on', async () => {
      await using given = await stalled()
      const { lost, a, b, next, takeOver, standing, revoke } = given
      await revoke(a)
      expect(await standing()).toMatchObject({ status: 401, body: { fence: 'node_revoked' } })
      expect(await next(b)).toEqual([lost.id])
      lost.secret = await takeOver(b)
      expect((await standing()).status).toBe(200)
    })

    test('keeps it if it goes on before the other one has begun, also if that is revoked', async () => {
      await using given = await stalled()
      const { at, lost, a, b, next, standing, end, revoke } = given
      expect(await next(a, lost.id)).toEqual([lost.id])
      expect(await next(b)).toEqual([])
      // It has not begun, so nothing has ended.
      expect((await end(b)).status).toBe(204)
      expect(await next(a, lost.id)).toEqual([lost.id])
      await revoke(b)
      expect((await standing()).status).toBe(200)
      expect((await end(a)).status).toBe(204)
      at.clock.advance(61_000)
      expect(await next(a)).toEqual([])
    })

    test('and that does not say so, is not asked for by the other one once its work is done', async () => {
      await using given = await stalled()
      const { at, lost, a, b, next, end } = given
      at.clock.advance(1_000)
      await lost.heartbeat({ healthy: false, leaving: true }, { lag: [] })
      expect(await next(b)).toEqual([])
      expect((await end(a)).status).toBe(204)
      at.clock.advance(61_000)
      expect(await next(b)).toEqual([])
    })

    test('has lost what was taken over in the name of the lost node, too', async () => {
      await using given = await stalled()
      const { lost, a, b, takeOver, revoke } = given
      const secret = await takeOver(lost, b.id)
      await revoke(a)
      const path = `committed-seqs?node_id=${b.id}`
      expect(await b.call('GET', path, undefined, printNodeCredential(b.id, secret))).toMatchObject({ status: 401 })
    })
  })

  test('a node that is heard again is not given away, although it was silent for so long', async () => {
    await using given = await region()
    const { at, a, next, beat } = given
    for (let times = 0; times < 3; times += 1) {
      at.clock.advance(3_600_000)
      expect(await next(a)).toEqual([])
      await beat()
    }
  })

  test.each([
    ['was shut down', { copy_store: true, leaving: true }],
    ['has no copy store', {}],
  ])('a node that %s is given to nobody', async (_, heartbeat) => {
    await using given = await region(heartbeat)
    for (let times = 0; times < 3; times += 1) {
      given.at.clock.advance(3_600_000)
      expect(await given.next(given.a)).toEqual([])
    }
  })
})
