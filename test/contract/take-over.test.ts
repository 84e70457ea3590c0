/** A node takes over another one, whose machine is lost: control gives it the id, and refuses the lost machine. */
import { describe, expect, test } from 'vitest'
import { newNodeSecret, printNodeCredential } from '#auth/node-credential.ts'
import { newId } from '#model/id.ts'
import { clientOf, newControl, newRegion, operatorToken, useControl } from '../support/control.ts'
import { TestNode } from '../support/test-node.ts'

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
