import { expect } from 'vitest'
import { newId } from '#model/id.ts'
import type { EndpointLag, Heartbeat } from '#model/node-protocol.ts'
import { listLargestLags, sumLags } from '#store/nodes/lag-totals.ts'
import { findLogHolder } from '#store/nodes/log-holder.ts'
import { listNodeInventories } from '#store/nodes/node-inventory.ts'
import { findLargestLag, listBlockedLogs, listLags } from '#store/nodes/node-reports.ts'
import {
  getNodeRegion,
  listNodes,
  listNodesOnceIn,
  recordHeartbeat,
  recordSnapshotsSent,
  registerNode,
  renameNode,
} from '#store/nodes/nodes.ts'
import { isQuiet, recordQuietHeartbeats } from '#store/nodes/quiet-heartbeats.ts'
import { transact } from '#store/store.ts'
import { newStore, type TestStore } from '../support/databases.ts'
import { aLag as lagOf } from '../support/lags.ts'
import { anAccount, aStoredEndpoint, describeStores, iso, t0 } from './fixtures.ts'

const aNode = (change = {}) => {
  const node_id = newId()
  return { node_id, region: 'loc', ipv4: ['127.0.0.1'], ipv6: [], ingest_address: '127.0.0.1:8081', ...change }
}
const beat = { applied_epoch: 3, healthy: true, reasons: [] }
const aLag = (endpoint_id: string, change: Partial<EndpointLag> = {}): EndpointLag =>
  lagOf(endpoint_id, {
    ...{ undelivered_segments: 2, undelivered_bytes: 9_000_000_000, oldest_sealed_at: iso(t0) },
    ...{ records: null, first_seq: null, last_seq: null, quarantined_first_seq: null, quarantined_last_seq: null, ...change },
  })

async function registered(store: TestStore, change = {}): Promise<string> {
  const node = aNode(change)
  await registerNode(store.db, node, t0)
  return node.node_id
}

describeStores('nodes', (test, kind) => {
  test('say which Inlet they run, and now and then what room their disk has', async ({ store }) => {
    const node_id = newId()
    await registerNode(store.db, aNode({ node_id, version: '1.2.3' }), t0)
    const inventory = async () => (await listNodeInventories(store.db, { limit: 10, offset: 0 })).items
    expect(await inventory()).toMatchObject([{ version: '1.2.3', disk: null }])
    const ingest = { process: 'ingest' as const, node_id, ...beat, disk_full: false, blocked: [] }
    const disk = { free_bytes: 5 * 2 ** 40, total_bytes: 8 * 2 ** 40 }
    await transact(store, (db) => recordHeartbeat(db, { ...ingest, disk }, t0))
    await transact(store, (db) => recordHeartbeat(db, ingest, t0 + 1))
    expect(await inventory()).toMatchObject([{ version: '1.2.3', disk }])
    await registerNode(store.db, aNode({ node_id }), t0)
    expect(await inventory()).toMatchObject([{ version: null, disk }])
  })

  test('what a node received is kept for each region, at its highest epoch', async ({ store }) => {
    const [moved, other] = [await registered(store), await registered(store, { region: 'fra' })]
    const send = (...sent: readonly (readonly [string, number])[]) =>
      transact(store, (db) =>
        recordSnapshotsSent(
          db,
          store.dialect,
          sent.map(([region, epoch]) => ({ node_id: moved, region, epoch })),
        ),
      )
    await send(['loc', 3], ['loc', 5], ['loc', 4])
    await send(['loc', 4], ['fra', 7])
    await registerNode(store.db, aNode({ node_id: moved, region: 'fra' }), t0)
    expect(await listNodesOnceIn(store.db, ['loc'], [])).toMatchObject([
      { id: moved, region: 'fra', received: new Map([['loc', 5]]) },
    ])
    // A node that is removed while its snapshot is on its way, beside one that is there.
    const both = [newId(), other].map((node_id) => ({ node_id, region: 'nil', epoch: 1 }))
    await transact(store, (db) => recordSnapshotsSent(db, store.dialect, both))
    expect((await listNodesOnceIn(store.db, ['nil'], [])).map(({ id }) => id)).toEqual([other])
    await transact(store, (db) => recordSnapshotsSent(db, store.dialect, both.slice(0, 1)))
    const found = await listNodesOnceIn(store.db, [], [other])
    expect(found).toMatchObject([{ id: other }])
    expect(await listNodesOnceIn(store.db, ['zrh'], [])).toEqual([])
  })

  test('a node that never registered is not found', async ({ store }) => {
    const stranger = { process: 'ingest' as const, node_id: newId(), ...beat, disk_full: false, blocked: [] }
    await expect(transact(store, (db) => recordHeartbeat(db, stranger, t0))).rejects.toThrow(
      expect.objectContaining({ code: 'not_found' }),
    )
    await expect(getNodeRegion(store.db, newId())).rejects.toThrow(expect.objectContaining({ code: 'not_found' }))
  })

  test('a heartbeat of delivery replaces the lag of the node', async ({ store }) => {
    const [one, two] = [await registered(store), await registered(store)]
    const [first, second, third] = [newId(), newId(), newId()]
    const say = (node_id: string, lag: readonly EndpointLag[]) =>
      transact(store, (db) => recordHeartbeat(db, { process: 'delivery', node_id, ...beat, lag: [...lag] }, t0))
    const nodeOf = (node_id: string) => ({ node_id, node_name: null, reported_at: iso(t0) })
    await say(one, [aLag(first), aLag(second)])
    await say(two, [aLag(first, { oldest_sealed_at: null, blocked_by: 'a \0 in words' })])
    await say(one, [
      aLag(second, { undelivered_segments: 1, closed: true }),
      aLag(third),
      aLag(third, { undelivered_segments: 7 }),
    ])
    const lags = await listLags(store.db, [first, second, third, newId()])
    expect(new Set(lags)).toEqual(
      new Set([
        { ...aLag(first, { oldest_sealed_at: null, blocked_by: 'a \uFFFD in words' }), ...nodeOf(two) },
        { ...aLag(second, { undelivered_segments: 1, closed: true }), ...nodeOf(one) },
        { ...aLag(third, { undelivered_segments: 7 }), ...nodeOf(one) },
      ]),
    )
    await say(one, [])
    expect(await listLags(store.db, [second, third])).toEqual([])
  })

  test('a heartbeat of delivery may have only what changed since a report, and is refused on another one', async ({ store }) => {
    const node_id = await registered(store)
    const [first, second, third] = [newId(), newId(), newId()]
    const say = (
      now: number,
      report: Pick<Heartbeat & { process: 'delivery' }, 'lag' | 'lag_version' | 'lag_base' | 'lag_gone'>,
    ) => transact(store, (db) => recordHeartbeat(db, { process: 'delivery', node_id, ...beat, ...report }, now))
    const bytes = async () =>
      new Map((await listLags(store.db, [first, second, third])).map((lag) => [lag.endpoint_id, lag.undelivered_bytes]))
    const changes = { lag: [aLag(second, { undelivered_bytes: 2 }), aLag(third)], lag_gone: [first] }
    const refused = expect.objectContaining({ code: 'conflict' })
    await expect(say(t0, { ...changes, lag_base: 'a', lag_version: 'b' })).rejects.toThrow(refused)
    await say(t0, { lag: [aLag(first), aLag(second)], lag_version: 'a' })
    await say(t0 + 1, { ...changes, lag_base: 'a', lag_version: 'b' })
    const after = new Map([
      [second, 2],
      [third, 9_000_000_000],
    ])
    expect(await bytes()).toEqual(after)
    await expect(say(t0 + 2, { ...changes, lag_base: 'a', lag_version: 'c' })).rejects.toThrow(refused)
    await say(t0 + 3, { lag: [], lag_base: 'b', lag_version: 'b' })
    expect(await bytes()).toEqual(after)
    expect(await listNodes(store.db, ['loc'])).toMatchObject([{ delivery: { last_seen_at: iso(t0 + 3) } }])
    await say(t0 + 4, { lag: [aLag(first)] })
    expect(await bytes()).toEqual(new Map([[first, 9_000_000_000]]))
    await expect(say(t0 + 5, { ...changes, lag_base: 'b', lag_version: 'c' })).rejects.toThrow(refused)
  })

  test('heartbeats without anything to report are recorded together, as each alone would be', async () => {
    const beats = (ids: readonly string[], at: number, change: object = {}): Heartbeat[] =>
      ids.flatMap((node_id) => [
        { process: 'ingest', node_id, ...beat, applied_epoch: at - t0, disk_full: false, blocked: [], ...change },
        { process: 'delivery', node_id, ...beat, applied_epoch: at - t0, lag: [], counted_at: at - 1, ...change },
      ])
    const states: unknown[] = []
    for (const isTogether of [false, true]) {
      await using store = await newStore(kind)
      const ids = [await registered(store), await registered(store), await registered(store)]
      const [one = '', two = '', three = ''] = ids
      const say = (some: readonly Heartbeat[], at: number) =>
        transact(store, async (db) => {
          if (isTogether) return (await recordQuietHeartbeats(db, some, at)).size
          for (const each of some) await recordHeartbeat(db, each, at)
          return some.length
        })
      const alone = (heartbeat: Heartbeat, at: number) => transact(store, (db) => recordHeartbeat(db, heartbeat, at))
      expect(await say(beats(ids, t0), t0)).toBe(isTogether ? 0 : 6)
      for (const each of isTogether ? beats(ids, t0) : []) await alone(each, t0)
      await alone(
        { process: 'ingest', node_id: one, ...beat, disk_full: true, blocked: [{ endpoint_id: newId(), reason: 'EIO' }] },
        t0,
      )
      await alone({ process: 'delivery', node_id: one, ...beat, lag: [aLag(newId())], lag_version: 'a' }, t0)
      await alone({ process: 'delivery', node_id: two, ...beat, lag: [aLag(newId())], lag_version: 'b' }, t0)
      const same = { lag: [], lag_base: 'b', lag_version: 'b' }
      const next: Heartbeat[] = [
        ...beats([one, three], t0 + 5),
        { process: 'ingest', node_id: two, ...beat, healthy: false, reasons: ['full'], disk_full: true, blocked: [] },
        { process: 'delivery', node_id: two, ...beat, ...same, counted_at: t0 + 3 },
      ]
      expect(await say(next, t0 + 5)).toBe(6)
      const other: Heartbeat = { process: 'delivery', node_id: two, ...beat, lag: [], lag_base: 'c', lag_version: 'c' }
      if (isTogether) expect((await transact(store, (db) => recordQuietHeartbeats(db, [other], t0 + 9))).size).toBe(0)
      const order = [one, two, three]
      const rows = await store.db.selectFrom('node_processes').selectAll().execute()
      const lags = await store.db.selectFrom('endpoint_lags').select('node_id').execute()
      const blocked = await store.db.selectFrom('blocked_logs').select('node_id').execute()
      const named = [rows, lags, blocked].map((some) => some.map((row) => ({ ...row, node_id: order.indexOf(row.node_id) })))
      states.push(named.map((some) => some.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))))
    }
    expect(states[1]).toEqual(states[0])
  })

  test.for([true, false])(
    'a heartbeat that was held up on its way does not count (recorded together: %s)',
    async (isTogether, { store }) => {
      const node_id = await registered(store)
      const other = await registered(store)
      const lastSeen = async () =>
        (await listNodes(store.db, ['loc'])).map(({ ingest, delivery }) => [ingest?.last_seen_at, delivery?.last_seen_at])
      const say = async (at: number, order: Heartbeat['order'], ...ids: readonly string[]) => {
        const some = ids.flatMap((id): Heartbeat[] => [
          { process: 'ingest', node_id: id, ...beat, disk_full: false, blocked: [], order },
          {
            process: 'delivery',
            node_id: id,
            ...beat,
            lag: [],
            lag_version: 'a',
            ...(order?.number === 1 ? {} : { lag_base: 'a' }),
            order,
          },
        ])
        return transact(store, async (db) => {
          const recorded = isTogether ? await recordQuietHeartbeats(db, some.filter(isQuiet), at) : new Set()
          for (const each of some) if (!recorded.has(each)) await recordHeartbeat(db, each, at)
        })
      }
      const refused = expect.objectContaining({ code: 'conflict' })
      await say(t0, { run: 'a', number: 1 }, node_id, other)
      await say(t0 + 3, { run: 'a', number: 3 }, node_id, other)
      const before = await lastSeen()
      expect(before).toEqual([0, 1].map(() => [iso(t0 + 3), iso(t0 + 3)]))
      await expect(say(t0 + 4, { run: 'a', number: 2 }, node_id, other)).rejects.toThrow(refused)
      await expect(say(t0 + 5, { run: 'a', number: 1 }, node_id, other)).rejects.toThrow(refused)
      expect(await lastSeen()).toEqual(before)
      // A proxy may send one again; a process that restarts counts from the beginning; an earlier release does not count.
      for (const [at, order] of [
        { run: 'a', number: 3 },
        { run: 'b', number: 1 },
        undefined,
        { run: 'b', number: 1 },
      ].entries()) {
        await say(t0 + 10 + at, order, node_id)
        expect((await lastSeen()).flat().filter((time) => time === iso(t0 + 10 + at)).length).toBe(2)
      }
    },
  )

  test('only heartbeats without rows or a new report are quiet', () => {
    const delivery = { process: 'delivery' as const, node_id: newId(), ...beat, lag: [] }
    const ingest = { process: 'ingest' as const, node_id: newId(), ...beat, disk_full: false, blocked: [] }
    expect([ingest, delivery, { ...delivery, lag_base: 'a', lag_version: 'a' }].map(isQuiet)).toEqual([true, true, true])
    const loud: Heartbeat[] = [
      { ...ingest, blocked: [{ endpoint_id: newId(), reason: 'EIO' }] },
      { ...ingest, disk: { free_bytes: 1, total_bytes: 2 } },
      { ...delivery, lag: [aLag(newId())] },
      { ...delivery, lag_version: 'a' },
      { ...delivery, lag_base: 'a', lag_version: 'a', lag_gone: [newId()] },
      { ...delivery, lag_base: 'a', lag_version: 'b' },
    ]
    expect(loud.map(isQuiet)).toEqual(loud.map(() => false))
  })

  test('a heartbeat of ingest replaces the blocked logs of the node, of endpoints that exist or not', async ({ store }) => {
    const [one, two] = [await registered(store), await registered(store)]
    const [first, second] = [newId(), newId()]
    const say = (node_id: string, ...blocked: { endpoint_id: string; reason: string }[]) =>
      transact(store, (db) => recordHeartbeat(db, { process: 'ingest', node_id, ...beat, disk_full: false, blocked }, t0))
    await say(one, { endpoint_id: first, reason: 'EIO \0' }, { endpoint_id: second, reason: 'EACCES' })
    await say(two, { endpoint_id: first, reason: 'EROFS' })
    await renameNode(store.db, two, 'par-1')
    await say(one, { endpoint_id: first, reason: 'EIO \0' })
    expect(new Set(await listBlockedLogs(store.db, [first, second]))).toEqual(
      new Set([
        { node_id: one, node_name: null, endpoint_id: first, reason: 'EIO \uFFFD' },
        { node_id: two, node_name: 'par-1', endpoint_id: first, reason: 'EROFS' },
      ]),
    )
  })

  test('the largest log of a node is found with its account, if its endpoint is known', async ({ store, account }) => {
    const endpoint = await aStoredEndpoint(store, account)
    const [node_id, other] = [await registered(store), await registered(store)]
    const say = (...lag: EndpointLag[]) =>
      transact(store, (db) => recordHeartbeat(db, { process: 'delivery', node_id, ...beat, lag }, t0))
    expect(await findLargestLag(store.db, node_id)).toBeUndefined()
    const large = aLag(endpoint.id, { undelivered_bytes: 9 })
    await say(large, aLag(newId(), { undelivered_bytes: 8 }))
    expect(await findLargestLag(store.db, node_id)).toMatchObject({
      ...large,
      ...{ node_id, node_name: null, account_id: account, endpoint_name: endpoint.name },
    })
    await say(aLag(newId(), { undelivered_bytes: 10 }), large)
    expect(await findLargestLag(store.db, node_id)).toMatchObject({ undelivered_bytes: 10, account_id: null })
    expect(await findLargestLag(store.db, other)).toBeUndefined()
  })

  test('segments in quarantine are known by their seqs, unless the node does not say', async ({ store }) => {
    const endpoint = await aStoredEndpoint(store, await anAccount(store))
    const node_id = await registered(store)
    const say = (change: Partial<EndpointLag>) =>
      transact(store, (db) =>
        recordHeartbeat(db, { process: 'delivery', node_id, ...beat, lag: [aLag(endpoint.id, change)] }, t0),
      )
    const quarantine = async () => (await findLogHolder(store.db, endpoint.id, node_id)).quarantine
    await say({ quarantined_segments: 2, quarantined_first_seq: 7, quarantined_last_seq: 9_000_000_000 })
    expect(await quarantine()).toEqual({ segments: 2, first_seq: 7, last_seq: 9_000_000_000 })
    expect(await listLags(store.db, [endpoint.id])).toMatchObject([
      { quarantined_first_seq: 7, quarantined_last_seq: 9_000_000_000 },
    ])
    await say({ quarantined_segments: 2, quarantined_first_seq: undefined, quarantined_last_seq: undefined })
    expect(await quarantine()).toEqual({ segments: 2, first_seq: null, last_seq: null })
    await say({ quarantined_segments: 0, quarantined_first_seq: null, quarantined_last_seq: null })
    expect(await quarantine()).toBeUndefined()
  })

  test('what all nodes hold is summed up, with the largest logs', async ({ store }) => {
    const none = { open_segments: 0, undelivered_segments: 0, parked_segments: 0, logs_held_by_views: 0, blocked_logs: 0 }
    const nothing = {
      ...none,
      quarantined_segments: 0,
      unowned_segments: 0,
      scrub_findings: 0,
      undelivered_bytes: 0,
      oldest_sealed_at: null,
    }
    expect(await sumLags(store.db)).toEqual(nothing)
    const endpoint = await aStoredEndpoint(store, await anAccount(store))
    const [one, two] = [await registered(store), await registered(store)]
    const say = (node_id: string, ...lag: EndpointLag[]) =>
      transact(store, (db) => recordHeartbeat(db, { process: 'delivery', node_id, ...beat, lag }, t0))
    const gone = aLag(newId(), { quarantined_segments: 4, oldest_sealed_at: null })
    await say(one, aLag(endpoint.id, { open_segments: 1, parked_segments: 3, oldest_sealed_at: iso(t0 + 1) }), gone)
    await say(
      two,
      aLag(endpoint.id, { undelivered_bytes: 10, blocked_by: 'no bucket', failing_view: { view_id: newId(), since: iso(t0) } }),
    )
    expect(await sumLags(store.db)).toEqual({
      ...{ open_segments: 1, undelivered_segments: 9, parked_segments: 3, logs_held_by_views: 1, quarantined_segments: 4 },
      ...{ blocked_logs: 1, scrub_findings: 0, unowned_segments: 6, undelivered_bytes: 18_000_000_010, oldest_sealed_at: t0 },
    })
    const largest = await listLargestLags(store.db, 2)
    expect(new Set(largest.map(({ endpoint_id }) => endpoint_id))).toEqual(new Set([endpoint.id, gone.endpoint_id]))
    const [smallest] = (await listLargestLags(store.db, 3)).slice(-1)
    expect(smallest).toMatchObject({
      ...nothing,
      node_id: two,
      undelivered_segments: 2,
      logs_held_by_views: 1,
      blocked_logs: 1,
      undelivered_bytes: 10,
      oldest_sealed_at: t0,
    })
  })

  test('ten thousand endpoints can lag at once', async ({ store }) => {
    const node_id = await registered(store)
    const ids = Array.from({ length: 10_000 }, newId)
    const lag = ids.map((id) => aLag(id))
    await transact(store, (db) => recordHeartbeat(db, { process: 'delivery', node_id, ...beat, lag }, t0))
    expect(await listLags(store.db, ids)).toHaveLength(10_000)
    expect(await listLags(store.db, [])).toEqual([])
  })
})
