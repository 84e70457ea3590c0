/** A machine that lost its place says what is only on its disk, and may say nothing else. */
import { describe, expect, test } from 'vitest'
import { newNodeSecret, printNodeCredential } from '#auth/node-credential.ts'
import { newId } from '#model/id.ts'
import { reportedCountMax } from '#model/limits.ts'
import { clientOf, operatorToken, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { readMarkers } from '../support/read-markers.ts'
import { anEndpointWithNode } from '../support/set-up.ts'
import { aCommit } from '../support/test-node.ts'

/** A segment, as heartbeats name it. */
const aHeld = (seq: number, records: number) => ({ first_seq: seq, last_seq: seq, segments: 1, records, bytes: records })

const control = useControl()
const operator = () => clientOf(control().call, operatorToken)

async function inhabited() {
  const account = await control().newAccount()
  const { endpoint, node } = await anEndpointWithNode(control(), account, { name: 'checkout' })
  const before = printNodeCredential(node.id, node.secret)
  const left = (seq: number, records: number | null, endpoint_id = endpoint.id) => {
    return { endpoint_id, first_seq: seq, last_seq: seq, segments: 1, records, bytes: 2_000 }
  }
  return {
    ...{ account, endpoint, node, left },
    receipt: async (seq: number) => (await account.get(`/v1/endpoints/${endpoint.id}/receipts/${node.id}-${seq}`)).body,
    losses: async () => (await account.get('/v1/losses')).body.items,
    reasons: async (): Promise<string> => (await account.get(`/v1/endpoints/${endpoint.id}`)).body.status_reasons.join(),
    /** Each has 10 records. */
    async commit(...seqs: readonly number[]) {
      const commits = seqs.map((seq) => aCommit(node.id, endpoint.id, seq, { records_damaged: 0 }))
      expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200 })
    },
    async adopt() {
      const secret = newNodeSecret()
      expect(await node.call('POST', 'adopt', { secret })).toMatchObject({ status: 204 })
      node.secret = secret
      await readMarkers(control().store)
    },
    async remove() {
      expect(await operator().delete(`/v1/nodes/${node.id}?force=true`)).toMatchObject({ status: 200 })
      await readMarkers(control().store)
    },
    report: (segments: readonly object[], node_id = node.id) => node.call('POST', 'left-on-disk', { node_id, segments }, before),
  }
}

test('an adopted machine has more than the commits: that is a loss, and receipts say so', async () => {
  const { account, node, left, receipt, losses, reasons, commit, adopt, report } = await inhabited()
  await commit(1, 2)
  await adopt()
  const segments = [left(1, 10), left(2, 25), left(3, 10), left(4, 7, newId())]
  expect(await report(segments)).toMatchObject({ status: 200, body: { losses: 1 } })
  expect(await report(segments)).toMatchObject({ status: 200, body: { losses: 1 } })
  const [loss, ...others] = await losses()
  expect([loss, others]).toMatchObject([
    {
      ...{ cause: 'left_on_disk', state: 'open', first_segment_seq: 2, last_segment_seq: 3, segments: 2, records: 25 },
      ...{ is_node_back: false, node_id: node.id, recovered: { records: 0 } },
    },
    [],
  ])
  await readMarkers(control().store)
  expect(await reasons()).toMatch(
    /from segment 2 on, as of [\w:.-]+Z, are only on the disk of a machine that lost its place to another one/,
  )
  expect(await receipt(1)).toMatchObject({ state: 'delivered', reason: null, loss_id: null })
  const some = 'not all records of the segment are delivered'
  expect(await receipt(2)).toMatchObject({ state: 'delivered', reason: expect.stringContaining(some), loss_id: loss.id })
  await node.heartbeat()
  expect(await receipt(3)).toMatchObject({
    ...{ state: 'lost', loss_id: loss.id },
    reason: expect.stringContaining('only on the disk of a machine that lost its place'),
  })

  // The rest of the second segment is in no commit.
  await commit(3)
  expect(await losses()).toMatchObject([{ state: 'open', recovered: { segments: 1, records: 10 } }])
  expect(await account.post(`/v1/losses/${loss.id}/confirm`)).toMatchObject({ status: 200 })
  expect(await report(segments)).toMatchObject({ status: 200 })
  expect(await losses()).toMatchObject([{ state: 'confirmed', records: 25 }])
  expect(await report([...segments, left(4, 5)])).toMatchObject({ status: 200 })
  expect(await losses()).toMatchObject([{ id: loss.id, state: 'open', records: 30 }])
  // Segments that were moved away by hand are not delivered by that.
  expect(await report([])).toMatchObject({ status: 200, body: { losses: 0 } })
  expect(await losses()).toMatchObject([{ state: 'open', records: 30 }])
  expect((await operator().delete(`/v1/nodes/${node.id}?force=true`)).status).toBe(200)
  expect(await reasons()).toContain('up to 30 acknowledged records')
})

test('one segment with fewer records in its commit: the receipt is exact', async () => {
  const { left, receipt, losses, commit, adopt, report } = await inhabited()
  await commit(1)
  await adopt()
  expect(await report([left(1, 115)])).toMatchObject({ status: 200, body: { losses: 1 } })
  expect(await losses()).toMatchObject([{ first_segment_seq: 1, last_segment_seq: 1, records: 105 }])
  expect((await receipt(1)).reason).toContain('not all records of the segment are delivered: others were acknowledged')
})

test('a commit with all records recovers the loss, and one with fewer does not', async () => {
  const { left, receipt, losses, commit, adopt, report } = await inhabited()
  await adopt()
  await report([left(1, 10)])
  await commit(1)
  expect(await losses()).toMatchObject([{ state: 'recovered', recovered: { segments: 1, records: 10 } }])
  expect(await receipt(1)).toMatchObject({ state: 'delivered', reason: null })
  await report([left(1, 10), left(2, 12)])
  await commit(2)
  expect(await losses()).toMatchObject([{ state: 'open', records: 12, recovered: { records: 10 } }, { state: 'recovered' }])
})

test('a released id: the disk corrects what was last reported', async () => {
  const { endpoint, node, left, losses, reasons, report } = await inhabited()
  await node.snapshot()
  await node.heartbeat({}, { lag: [aLag(endpoint.id, { undelivered_segments: 2, records: 20, first_seq: 2, last_seq: 3 })] })
  const release = `/v1/nodes/${node.id}/credential?release=true&force=true`
  expect((await operator().delete(release)).status).toBe(204)
  const [loss] = await losses()
  expect(loss).toMatchObject({ cause: 'node_released', segments: 2, records: 20 })
  expect(await reasons()).toContain('were not delivered when its id was released at')
  expect(await report([left(2, 10), left(3, 12), left(4, 3)])).toMatchObject({ status: 200, body: { losses: 1 } })
  expect(await losses()).toMatchObject([{ id: loss.id, cause: 'left_on_disk', segments: 3, records: 25, last_segment_seq: 4 }])
})

test('an adoption is a loss of what was reported, until the copy has delivered it', async () => {
  const { endpoint, node, losses, commit, adopt } = await inhabited()
  await node.snapshot()
  const hold = (records: number) =>
    node.heartbeat({}, { lag: [aLag(endpoint.id, { undelivered_segments: 1, records, first_seq: 1, last_seq: 1 })] })
  await hold(10)
  await adopt()
  expect(await losses()).toMatchObject([{ cause: 'node_adopted', state: 'open', segments: 1, records: 10 }])
  await commit(1)
  expect(await losses()).toMatchObject([{ state: 'recovered' }])
  await node.heartbeat({}, { lag: [] })
  const others = await inhabited()
  await others.node.snapshot()
  const lag = aLag(others.endpoint.id, { undelivered_segments: 1, records: 23, first_seq: 1, last_seq: 1 })
  await others.node.heartbeat({}, { lag: [lag] })
  await others.adopt()
  await others.commit(1)
  expect(await others.reasons()).toContain('were not delivered when another machine adopted its log at')
  expect(await others.losses()).toMatchObject([{ state: 'open', records: 23, recovered: { segments: 0, records: 10 } }])
})

test('a machine that is removed before it has reported what it adopted loses that once', async () => {
  const { endpoint, node, losses, adopt, remove } = await inhabited()
  await node.snapshot()
  const lag = aLag(endpoint.id, { undelivered_segments: 3, records: 30, first_seq: 1, last_seq: 3 })
  await node.heartbeat({}, { lag: [lag] })
  await adopt()
  await remove()
  expect(await losses()).toMatchObject([{ cause: 'node_removed', segments: 3, records: 30 }])
})

test('a machine with the log of another one uses no seq that the other may have used, also of endpoints that were never reported', async () => {
  const { endpoint, node, commit, adopt } = await inhabited()
  const committed = async () => (await node.call('GET', `committed-seqs?node_id=${node.id}`)).body.seqs[endpoint.id]
  await adopt()
  expect(await committed()).toBe(999)
  // It runs on as a node.
  control().clock.advance(1)
  await node.registerAgain()
  await commit(1_004)
  await adopt()
  expect(await committed()).toBe(2_004)
})

test('a machine that gets the released id of one that adopted a log delivers nothing of what that lacked', async () => {
  const { endpoint, node, losses, adopt } = await inhabited()
  await node.snapshot()
  await node.heartbeat({}, { lag: [aLag(endpoint.id, { undelivered_segments: 3, records: 30, first_seq: 0, last_seq: 2 })] })
  await adopt()
  await node.heartbeat({}, { lag: [] })
  expect(await losses()).toMatchObject([{ cause: 'node_adopted', is_node_back: true }])
  control().clock.advance(1)
  expect((await operator().delete(`/v1/nodes/${node.id}/credential?release=true&force=true`)).status).toBe(204)
  node.secret = newNodeSecret()
  await node.registerAgain()
  expect(await losses()).toMatchObject([{ cause: 'node_adopted', is_node_back: false }])
})

describe('a machine that comes back', () => {
  async function lagging() {
    const given = await inhabited()
    const { endpoint, node } = given
    await node.snapshot()
    const held = [aHeld(1, 10), aHeld(2, 10)]
    const counts = { undelivered_segments: 2, records: 20, first_seq: 1, last_seq: 2 }
    const hold = () => node.heartbeat({}, { lag: [aLag(endpoint.id, { ...counts, held })] })
    await hold()
    const release = async () => {
      control().clock.advance(1)
      expect((await operator().delete(`/v1/nodes/${node.id}/credential?release=true&force=true`)).status).toBe(204)
      await readMarkers(control().store)
    }
    /** With another secret. */
    const joinWith = async (previous_secret: string) => {
      control().clock.advance(1)
      node.secret = newNodeSecret()
      expect(await node.join({ previous_secret })).toMatchObject({ body: { joined: true } })
    }
    return { ...given, hold, release, joinWith, first: node.secret }
  }

  test('under its released id delivers its loss, and has no other one', async () => {
    const { node, losses, reasons, hold, release, joinWith, remove, commit, first } = await lagging()
    await release()
    await joinWith(first)
    await hold()
    expect(await losses()).toMatchObject([{ cause: 'node_released', is_node_back: true, segments: 2 }])
    expect(await reasons()).toContain('the node is back, and delivers what it still has')
    await remove()
    expect(await losses()).toMatchObject([{ cause: 'node_removed', is_node_back: false, segments: 2 }])
    await node.join()
    await commit(1, 2)
    expect(await losses()).toMatchObject([{ state: 'recovered' }])
  })

  test.each([true, false])(
    'with a disk that was adopted before delivers its loss, also if its adoption starts twice (it said what it has: %s)',
    async (hasSaid) => {
      const { node, left, losses, commit, hold, adopt, report, release, joinWith, first } = await lagging()
      await adopt()
      // The copy lacks both.
      await node.heartbeat({}, { lag: [] })
      if (hasSaid) await report([left(1, 10), left(2, 10)])
      await release()
      await joinWith(first)
      expect(await losses()).toMatchObject([{ cause: 'node_released', is_node_back: true }])
      for (let starts = 0; starts < 2; starts += 1) {
        await adopt()
        await hold()
        control().clock.advance(1)
      }
      expect(await losses()).toMatchObject([{ is_node_back: true, segments: 2, records: 20 }])
      await commit(1, 2)
      expect(await losses()).toMatchObject([{ state: 'recovered' }])
    },
  )

  test.each(['that never was its own', 'that was revoked'])('with a secret %s delivers no loss', async (secret) => {
    const { node, losses, release, joinWith, first } = await lagging()
    if (secret === 'that was revoked') await operator().delete(`/v1/nodes/${node.id}/credential`)
    await release()
    await joinWith(secret === 'that was revoked' ? first : newNodeSecret())
    expect(await losses()).toMatchObject([{ cause: 'node_released', is_node_back: false }])
  })

  test('after a removal has one loss, also if its adoption starts twice', async () => {
    const { node, losses, hold, adopt, remove, joinWith, first } = await lagging()
    await remove()
    await joinWith(first)
    for (let starts = 0; starts < 2; starts += 1) {
      await adopt()
      await hold()
      control().clock.advance(1)
    }
    expect(await losses()).toMatchObject([{ node_id: node.id, is_node_back: true, segments: 2, records: 20 }])
  })
})

test('a loss that is told twice is one loss', async () => {
  const { endpoint, node, left, losses, report } = await inhabited()
  await node.snapshot()
  const hold = () =>
    node.heartbeat({}, { lag: [aLag(endpoint.id, { undelivered_segments: 1, records: 1, first_seq: 1, last_seq: 1 })] })
  await hold()
  expect((await operator().delete(`/v1/nodes/${node.id}?force=true`)).status).toBe(200)
  expect((await operator().delete(`/v1/nodes/${node.id}/credential?release=true&force=true`)).status).toBe(204)
  expect(await report([left(1, 1)])).toMatchObject({ status: 200, body: { losses: 1 } })
  expect(await losses()).toMatchObject([{ cause: 'left_on_disk', records: 1, state: 'open' }])
})

test('401 with any other credential, 403 in the name of another node, 422', async () => {
  const { node, left, adopt, report } = await inhabited()
  expect(await report([left(1, 1)])).toMatchObject({ status: 401 })
  await adopt()
  expect(await node.call('POST', 'left-on-disk', { node_id: node.id, segments: [] })).toMatchObject({ status: 401 })
  const stranger = printNodeCredential(node.id, newNodeSecret())
  expect(await node.call('POST', 'left-on-disk', { node_id: node.id, segments: [] }, stranger)).toMatchObject({ status: 401 })
  expect(await report([], newId())).toMatchObject({ status: 403 })
  expect(await report([left(-1, 1)])).toMatchObject({ status: 422 })
})

describe('a removed machine', () => {
  test('says what it holds beside what it had reported, and the loss ends once all of that is delivered', async () => {
    const { endpoint, node, left, losses, reasons, commit, remove, report } = await inhabited()
    await node.snapshot()
    await node.heartbeat({}, { lag: [aLag(endpoint.id, { undelivered_segments: 3, records: 30, first_seq: 1, last_seq: 3 })] })
    control().clock.advance(1_000)
    await remove()
    const [loss] = await losses()
    expect(loss).toMatchObject({ cause: 'node_removed', segments: 3, records: 30 })
    expect(await report([left(3, 10), left(4, 10)])).toMatchObject({ status: 200, body: { losses: 1 } })
    // Without a commit, nobody knows where the first two are.
    const told = { id: loss.id, cause: 'node_removed', segments: 4, records: 40, last_segment_seq: 4 }
    expect(await losses()).toMatchObject([told])
    expect(await reasons()).toContain('were not delivered when it was removed at')
    // Fewer in a later report were moved away by hand.
    expect(await report([left(3, 10)])).toMatchObject({ status: 200, body: { losses: 1 } })
    expect(await losses()).toMatchObject([told])
    await node.join()
    expect(await report([left(3, 10)])).toMatchObject({ status: 401 })
    await commit(3, 4)
    expect(await losses()).toMatchObject([{ id: loss.id, state: 'open', recovered: { segments: 2, records: 20 } }])
    await commit(1, 2)
    expect(await losses()).toMatchObject([{ id: loss.id, state: 'recovered' }])
  })

  test('counts what heartbeats had not counted', async () => {
    const { endpoint, node, left, losses, remove, report } = await inhabited()
    await node.snapshot()
    const held = [{ ...aHeld(1, 0), records: null }, aHeld(2, 10)]
    const lag = aLag(endpoint.id, { undelivered_segments: 2, records: null, first_seq: 1, last_seq: 2, held })
    await node.heartbeat({}, { lag: [lag] })
    await remove()
    expect(await losses()).toMatchObject([{ segments: 2, records: null }])
    await report([left(1, 15), left(2, 10)])
    expect(await losses()).toMatchObject([{ segments: 2, records: 25 }])
  })

  test('with an older disk leaves of neighbours that were reported together what they still miss', async () => {
    const { endpoint, node, left, losses, commit, remove, report } = await inhabited()
    await node.snapshot()
    await node.heartbeat({}, { lag: [aLag(endpoint.id, { undelivered_segments: 10, records: 100, first_seq: 0, last_seq: 9 })] })
    await remove()
    await node.join()
    await commit(0, 1, 2, 3, 4)
    await remove()
    await report([3, 4, 5, 6, 7, 8].map((seq) => left(seq, 10)))
    expect(await losses()).toMatchObject([{ segments: 10, records: 100, recovered: { segments: 5, records: 50 } }])
    await node.join()
    await commit(5, 6, 7, 8, 9)
    expect(await losses()).toMatchObject([{ state: 'recovered', recovered: { segments: 10, records: 100 } }])
  })

  test('that names more than any disk has breaks no list and no status', async () => {
    const { account, endpoint, node, left, losses, reasons, commit, remove, report } = await inhabited()
    await node.snapshot()
    const most = { records: reportedCountMax, bytes: reportedCountMax }
    const held = Array.from({ length: 50 }, (_, seq) => ({ ...aHeld(seq * 2, 0), ...most }))
    const lag = aLag(endpoint.id, { undelivered_segments: 50, undelivered_bytes: reportedCountMax, held, last_seq: 98 })
    await node.heartbeat({}, { lag: [lag] })
    await remove()
    const records = Number.MAX_SAFE_INTEGER
    expect(await losses()).toMatchObject([{ segments: 50, records, bytes: reportedCountMax }])
    const more = Array.from({ length: 3_000 }, (_, at) => ({ ...left(100 + at * 2, 0), ...most }))
    expect(await report(more)).toMatchObject({ status: 200 })
    const [loss] = await losses()
    expect(loss).toMatchObject({ segments: 3_050, records, bytes: Number.MAX_SAFE_INTEGER })
    expect(await reasons()).toContain(loss.id)
    await node.join()
    await commit(0, 100)
    expect(await losses()).toMatchObject([{ id: loss.id, state: 'open' }])
    expect(await account.post(`/v1/losses/${loss.id}/confirm`)).toMatchObject({ status: 200 })
  })

  test('does not repeat a loss that was confirmed, unless it has more', async () => {
    const { account, endpoint, node, left, losses, remove, report } = await inhabited()
    await node.snapshot()
    await node.heartbeat({}, { lag: [aLag(endpoint.id, { undelivered_segments: 1, records: 10, first_seq: 1, last_seq: 1 })] })
    await remove()
    const [{ id }] = await losses()
    await account.post(`/v1/losses/${id}/confirm`)
    await report([left(1, 10)])
    expect(await losses()).toMatchObject([{ id, state: 'confirmed' }])
    await report([left(1, 10), left(2, 5)])
    expect(await losses()).toMatchObject([{ id, state: 'open', records: 15 }])
  })

  test.each(['removal', 'release'])('says nothing with a credential that was revoked before the %s', async (end) => {
    const { node, left, losses, remove, report } = await inhabited()
    await operator().delete(`/v1/nodes/${node.id}/credential`)
    if (end === 'removal') await remove()
    else await operator().delete(`/v1/nodes/${node.id}/credential?release=true&force=true`)
    expect(await report([left(1, 10)])).toMatchObject({ status: 401 })
    expect(await losses()).toEqual([])
  })
})

describe('a commit', () => {
  test('of another segment does not recover a loss', async () => {
    const { left, receipt, losses, commit, adopt, report } = await inhabited()
    await commit(2)
    await adopt()
    await report([left(2, 25), left(9, 10)])
    await commit(3, 4, 5, 6, 7, 8)
    const [loss] = await losses()
    expect(loss).toMatchObject({ state: 'open', segments: 2, records: 25, recovered: { segments: 0, records: 0 } })
    expect(await receipt(2)).toMatchObject({ state: 'delivered', loss_id: loss.id })
    expect(await receipt(9)).toMatchObject({ state: 'lost', loss_id: loss.id })
    await commit(9)
    expect(await losses()).toMatchObject([{ id: loss.id, state: 'open', recovered: { segments: 1, records: 10 } }])
  })

  test.each(['and says which', 'of the release before'])(
    'between the segments of a removed node does not count (a node %s)',
    async (node_is) => {
      const { endpoint, node, losses, commit, remove } = await inhabited()
      await node.snapshot()
      const lag = aLag(endpoint.id, {
        parked_segments: 1,
        open_segments: 1,
        undelivered_segments: 0,
        records: 20,
        first_seq: 2,
        last_seq: 9,
        ...(node_is === 'and says which' && { held: [aHeld(2, 10), aHeld(9, 10)] }),
      })
      await node.heartbeat({}, { lag: [lag] })
      await remove()
      await node.join()
      await commit(3, 4, 5, 6, 7, 8)
      expect(await losses()).toMatchObject([{ state: 'open', segments: 2, recovered: { segments: 0, records: 0 } }])
      await commit(9)
      await commit(2)
      // Only the account ends the other one.
      expect(await losses()).toMatchObject([{ state: node_is === 'and says which' ? 'recovered' : 'open' }])
    },
  )

  test('of a longer segment does not stand in for a shorter one', async () => {
    const { endpoint, node, losses, receipt, adopt, commit } = await inhabited()
    await node.snapshot()
    const held = { undelivered_segments: 2, records: 20, first_seq: 4, last_seq: 5, held: [aHeld(4, 10), aHeld(5, 10)] }
    await node.heartbeat({}, { lag: [aLag(endpoint.id, held)] })
    await adopt()
    const commits = [aCommit(node.id, endpoint.id, 4, { records: 3 }), aCommit(node.id, endpoint.id, 5, { records: 30 })]
    expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200 })
    expect(await losses()).toMatchObject([{ state: 'open', records: 20, recovered: { segments: 1, records: 13 } }])
    expect(await receipt(4)).toMatchObject({ state: 'delivered', reason: expect.stringContaining('not all records') })
    await commit(6)
  })

  test('of an older copy of the disk does not end what only the newer one had', async () => {
    const { endpoint, node, left, losses, commit, remove, report } = await inhabited()
    await node.snapshot()
    await node.heartbeat({}, { lag: [aLag(endpoint.id, { undelivered_segments: 5, records: 50, first_seq: 1, last_seq: 5 })] })
    await remove()
    await report([left(1, 10)])
    await node.join()
    await commit(1)
    expect(await losses()).toMatchObject([{ state: 'open', segments: 5, records: 50, recovered: { segments: 1, records: 10 } }])
  })

  test('of a segment that was delivered long ago takes nothing from what a parked one has', async () => {
    const { endpoint, node, losses, commit, remove } = await inhabited()
    await commit(3, 4, 5, 6, 7, 8)
    await node.snapshot()
    const held = { held: [aHeld(2, 12), aHeld(9, 8)], records: 20, first_seq: 2, last_seq: 9, undelivered_bytes: 900 }
    await node.heartbeat(
      {},
      { lag: [aLag(endpoint.id, { ...held, parked_segments: 1, open_segments: 1, undelivered_segments: 0 })] },
    )
    await remove()
    expect(await losses()).toMatchObject([{ segments: 2, records: 20, bytes: 900, first_segment_seq: 2, last_segment_seq: 9 }])
  })
})

test('two machines with one log have losses of their own, and each is told what it has', async () => {
  const { endpoint, node, left, losses, commit, adopt, report } = await inhabited()
  await adopt()
  await node.snapshot()
  const lag = aLag(endpoint.id, { undelivered_segments: 6, records: 60, first_seq: 1_005, last_seq: 1_010 })
  await node.heartbeat({}, { lag: [lag] })
  expect(await operator().delete(`/v1/nodes/${node.id}?force=true`)).toMatchObject({ status: 200 })
  await readMarkers(control().store)
  expect(await report([left(1_005, 10)])).toMatchObject({ status: 200 })
  const told = (await losses()).map(({ cause, segments, records }: Record<string, unknown>) => ({ cause, segments, records }))
  expect(new Set(told)).toEqual(
    new Set([
      { cause: 'left_on_disk', segments: 1, records: 10 },
      { cause: 'node_removed', segments: 6, records: 60 },
    ]),
  )
  await node.join()
  await commit(1_005)
  expect((await losses()).map(({ state }: { readonly state: string }) => state).toSorted()).toEqual(['open', 'recovered'])
})

test('seqs of a removed node whose id is released are not used again', async () => {
  const { endpoint, node, left, losses, receipt, commit, remove, report } = await inhabited()
  await node.snapshot()
  await node.heartbeat({}, { lag: [aLag(endpoint.id, { undelivered_segments: 3, records: 30, first_seq: 0, last_seq: 2 })] })
  await remove()
  expect((await operator().delete(`/v1/nodes/${node.id}/credential?release=true&force=true`)).status).toBe(204)
  await readMarkers(control().store)
  node.secret = newNodeSecret()
  await node.join()
  expect((await node.call('GET', `committed-seqs?node_id=${node.id}`)).body.seqs[endpoint.id]).toBe(1_002)
  await commit(1_003)
  expect(await losses()).toMatchObject([{ state: 'open', is_node_back: false }])
  await node.heartbeat({}, { lag: [] })
  expect(await receipt(2)).toMatchObject({ state: 'lost' })
  expect(await report([left(0, 10), left(1, 10), left(2, 10)])).toMatchObject({ status: 200, body: { losses: 1 } })
})

test('a commit beside a removal is in one of them: no loss stays open of what was delivered', async () => {
  const { endpoint, node, losses } = await inhabited()
  await node.snapshot()
  for (let round = 0; round < 10; round += 1) {
    const first = round * 10
    const held = { undelivered_segments: 4, records: 40, first_seq: first, last_seq: first + 3 }
    await node.heartbeat({}, { lag: [aLag(endpoint.id, held)] })
    const commits = [0, 1, 2, 3].map((at) => aCommit(node.id, endpoint.id, first + at, { records_damaged: 0 }))
    const [removal, ...reports] = await Promise.all([
      operator().delete(`/v1/nodes/${node.id}?force=true`),
      ...commits.map((commit) => node.call('POST', 'commits', { commits: [commit] })),
    ])
    expect(removal).toMatchObject({ status: 200 })
    await readMarkers(control().store)
    await node.join()
    const late = commits.filter((_, at) => reports[at]?.status !== 200)
    if (late.length > 0) expect(await node.call('POST', 'commits', { commits: late })).toMatchObject({ status: 200 })
    expect((await losses()).filter(({ state }: { readonly state: string }) => state === 'open')).toEqual([])
  }
})
