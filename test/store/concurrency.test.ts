/** Concurrent callers: exclusive changes happen once, and ordered ones in order. */
import { expect } from 'vitest'
import { newId } from '#model/id.ts'
import { changeRole, insertMembership, insertPerson, listPeople, removeMembership } from '#store/accounts/people.ts'
import { type ChangeTx, inNewEpoch } from '#store/cluster/epoch.ts'
import { listCommits, recordCommit } from '#store/commits/commits.ts'
import { claimValidation, insertDestination, removeDestination, updateDestination } from '#store/endpoints/destinations.ts'
import { drainEndpoint, getEndpoint, removeDrainingEndpoint } from '#store/endpoints/endpoints.ts'
import { insertView, removeDraft } from '#store/endpoints/views.ts'
import { deleteNode } from '#store/nodes/node-credentials.ts'
import { listNodesOnceIn, recordHeartbeat, recordSnapshotsSent, registerNode } from '#store/nodes/nodes.ts'
import { getViewMetrics } from '#store/series/view-counters.ts'
import { getViewQuality } from '#store/series/view-quality.ts'
import { transact } from '#store/store.ts'
import type { TestStore } from '../support/databases.ts'
import { aLag } from '../support/lags.ts'
import { runStoreWorkers } from '../support/store-worker.ts'
import {
  aCommit,
  aDestination,
  anAccount,
  anOutcome,
  aPublishedView,
  aStoredDestination,
  aStoredEndpoint,
  aView,
  describeStores,
  iso,
  t0,
} from './fixtures.ts'

const rounds = 5

/** Returns the value of each call, or the code of its error. */
async function outcomes<T>(work: readonly Promise<T>[]): Promise<(T | string)[]> {
  const settled = await Promise.allSettled(work)
  return settled.map((result) => (result.status === 'fulfilled' ? result.value : String(result.reason.code ?? result.reason)))
}

const times = <T>(count: number, work: (index: number) => Promise<T>) => Array.from({ length: count }, (_, index) => work(index))
const aDraft = (store: TestStore, account: string) => transact(store, (db) => insertView(db, account, aView(), t0))

describeStores('concurrent callers', (test) => {
  test('take both owners of an account away: one stays', async ({ store }) => {
    for (let round = 0; round < rounds; round += 1) {
      const account_id = await anAccount(store)
      const owners = times(2, async () => {
        const person_id = newId()
        await insertPerson(store.db, { id: person_id, name: 'Ada', email: null, is_operator: false }, t0)
        await insertMembership(store.db, { person_id, account_id, role: 'owner' }, t0)
        return person_id
      })
      const takeAway = (id: string, index: number) =>
        transact(store, (db) =>
          index % 2 === 0 ? changeRole(db, account_id, id, 'member') : removeMembership(db, account_id, id),
        )
      const results = await outcomes((await Promise.all(owners)).map(takeAway))
      expect(results.filter((result) => result === 'conflict')).toHaveLength(1)
      expect((await listPeople(store.db, account_id)).filter(({ role }) => role === 'owner')).toHaveLength(1)
    }
  })

  test('delete the same draft: one succeeds', async ({ store, account }) => {
    const { id } = await aDraft(store, account)
    const results = await outcomes(times(8, () => transact(store, (db) => removeDraft(db, account, id))))
    expect(results.toSorted()).toEqual([...Array(7).fill('not_found'), undefined])
  })

  test('create views of one name: one succeeds', async ({ store, account }) => {
    const results = await outcomes(
      times(6, () => transact(store, (db) => insertView(db, account, aView({ name: 'events' }), t0))),
    )
    expect(results.filter((result) => result !== 'validation_error')).toHaveLength(1)
  })

  test('create destinations of one name: one succeeds', async ({ store, account }) => {
    const results = await outcomes(times(6, () => insertDestination(store.db, account, aDestination({ name: 'lake' }), t0)))
    expect(results.filter((result) => result !== 'conflict')).toHaveLength(1)
  })

  test('change the same destination: every effective change increments the revision', async ({ store, account }) => {
    const { id } = await aStoredDestination(store, account)
    await Promise.all(
      times(8, (index) => inNewEpoch(store, (db) => updateDestination(db, account, id, { prefix: `p${index}` }, t0))),
    )
    expect(await transact(store, (db) => claimValidation(db, account, id, t0))).toMatchObject({ revision: 9 })
  })

  test('remove the same drained endpoint: one succeeds, and its destination can be deleted', async ({ store, account }) => {
    const destination = await aStoredDestination(store, account)
    const { id } = await aStoredEndpoint(store, account, { destination_id: destination.id })
    const remove = () => inNewEpoch(store, (db) => removeDrainingEndpoint(db, id, t0))
    expect(await remove()).toBe(false)
    await inNewEpoch(store, (db) => drainEndpoint(db, account, id, { epoch: 7, now: t0 }))
    expect((await outcomes(times(8, remove))).toSorted()).toEqual([...Array(7).fill(false), true])
    await removeDestination(store.db, account, destination.id)
    await expect(getEndpoint(store.db, account, id)).rejects.toThrow(expect.objectContaining({ code: 'not_found' }))
  })

  test('record commits of one endpoint: uploaded_at is unique and increasing', async ({ store }) => {
    const endpoint = newId()
    await Promise.all(times(50, (seq) => transact(store, (db) => recordCommit(db, aCommit(endpoint, seq), t0))))
    const { items } = await listCommits(store.db, endpoint, { limit: 100 })
    expect(items.map(({ uploaded_at }) => uploaded_at)).toEqual(Array.from({ length: 50 }, (_, index) => iso(t0 + 49 - index)))
    expect(new Set(items.map(({ seq }) => seq)).size).toBe(50)
  })

  test('report the same commit: it is counted once', async ({ store, account }) => {
    const [view, endpoint] = [await aPublishedView(store, account), await aStoredEndpoint(store, account)]
    const commit = aCommit(endpoint.id, 1, { views: [anOutcome(view.id)] })
    const results = await Promise.all(times(5, () => transact(store, (db) => recordCommit(db, commit, t0))))
    expect(results.toSorted()).toEqual(['known', 'known', 'known', 'known', 'new'])
    const { aggregated } = await getViewMetrics(store.db, account, view.id, t0)
    expect(aggregated).toMatchObject({ last_24h: { processed: 10 }, all_time: { processed: 10 }, total_error_count_24h: 3 })
  })

  test('in separate processes count column quality of one view and endpoint: nothing is lost', async ({ store }) => {
    const [endpoint, view] = [newId(), newId()]
    const column = { name: 'n', type: 'BIGINT', values: 1, nulls: 0, cast_nulls: 1, cast_dlq: 0, missing: 0 }
    // Every worker reports 8 commits of its own and the same 2 as the others.
    const commits = (worker: number) =>
      [0, 1, ...Array.from({ length: 8 }, (_, index) => 100 + worker * 10 + index)].map((seq) => {
        const columns = [{ ...column, min: String(seq), max: String(seq) }]
        const unmapped = [{ path: '$.x', types: ['integer' as const], records: 1 }]
        return aCommit(endpoint, seq, { views: [anOutcome(view, { quality: { columns, sampled_records: 1, unmapped } })] })
      })
    const recorded = await runStoreWorkers(4, store.url, 'record', commits)
    expect(recorded.reduce((sum, count) => sum + count, 0)).toBe(34)
    const { last_24h, all_time } = await getViewQuality(store.db, view, endpoint, t0)
    const counted = { columns: [{ ...column, values: 34, cast_nulls: 34, min: '0', max: '137' }], sampled_records: 34 }
    expect(last_24h).toEqual({
      ...counted,
      unmapped: [{ path: '$.x', types: ['integer'], records: 34, last_seen_at: expect.any(String) }],
    })
    expect(all_time).toEqual({ ...counted, unmapped: [] })
  })

  test('page through commits while others are recorded: no older commit is missed', async ({ store }) => {
    const endpoint = newId()
    const record = times(40, (seq) => transact(store, (db) => recordCommit(db, aCommit(endpoint, seq), t0)))
    const seen: string[][] = []
    for (let looked = 0; looked < 10; looked += 1) {
      const { items } = await listCommits(store.db, endpoint, { limit: 200 })
      seen.push(items.map(({ uploaded_at }) => uploaded_at))
    }
    await Promise.all(record)
    const last = (await listCommits(store.db, endpoint, { limit: 200 })).items.map(({ uploaded_at }) => uploaded_at)
    // A reader that sees a commit sees all older ones: nothing appears behind a cursor.
    for (const page of seen) expect(page).toEqual(last.slice(last.length - page.length))
  })

  test('lock rows in opposite order: they wait for each other and all commit', async ({ store, account }) => {
    const [one, two] = [await aStoredDestination(store, account), await aStoredDestination(store, account)]
    const both = (first: string, second: string) => async (db: ChangeTx, epoch: number) => {
      await updateDestination(db, account, first, { prefix: newId() }, t0)
      await updateDestination(db, account, second, { prefix: newId() }, t0)
      return epoch
    }
    const results = await outcomes(
      times(6, (index) => inNewEpoch(store, index % 2 === 0 ? both(one.id, two.id) : both(two.id, one.id))),
    )
    expect(results.toSorted()).toEqual([1, 2, 3, 4, 5, 6])
  })

  test('send heartbeats of one node: the lag of exactly one stays', async ({ store }) => {
    const node_id = newId()
    await registerNode(store.db, { node_id, region: 'loc', ipv4: [], ipv6: [], ingest_address: 'a:1' }, t0)
    const endpoints = Array.from({ length: 3 }, newId)
    const beats = times(8, (index) => {
      const lag = endpoints.map((endpoint_id) => aLag(endpoint_id, { undelivered_segments: index }))
      const heartbeat = { process: 'delivery' as const, node_id, applied_epoch: index, healthy: true, reasons: [], lag }
      return transact(store, (db) => recordHeartbeat(db, heartbeat, t0 + index))
    })
    await Promise.all(beats)
    const lags = await store.db.selectFrom('endpoint_lags').select('undelivered_segments').execute()
    expect(lags).toHaveLength(3)
    expect(new Set(lags.map(({ undelivered_segments }) => undelivered_segments)).size).toBe(1)
  })

  test('in separate processes record commits of one endpoint, some of them identical', async ({ store }) => {
    const endpoint = newId()
    // Every worker reports 10 commits of its own and the same 5 as the others.
    const commits = (worker: number) =>
      [...Array(10).keys()]
        .map((seq) => aCommit(endpoint, 100 + worker * 10 + seq))
        .concat([0, 1, 2, 3, 4].map((seq) => aCommit(endpoint, seq)))
    const recorded = await runStoreWorkers(4, store.url, 'record', commits)
    expect(recorded.reduce((sum, count) => sum + count, 0)).toBe(45)
    const { items } = await listCommits(store.db, endpoint, { limit: 200 })
    expect(new Set(items.map(({ uploaded_at }) => uploaded_at)).size).toBe(45)
    expect(new Set(items.map(({ seq }) => seq)).size).toBe(45)
  })

  test('record what the same nodes received, and wait for each other in one order: the highest epoch counts', async ({
    store,
  }) => {
    const nodes = times(50, async () => {
      const node_id = newId()
      await registerNode(store.db, { node_id, region: 'fra', ipv4: [], ipv6: [], ingest_address: 'node:1' }, t0)
      return node_id
    })
    const ids = await Promise.all(nodes)
    for (let round = 1; round <= rounds; round += 1) {
      // Each has the regions of a node that moved in another order. Not `transact`, which repeats what collides.
      const send = (index: number) =>
        store.db.transaction().execute((db) =>
          recordSnapshotsSent(
            db,
            store.dialect,
            ids.flatMap((node_id) => [
              { node_id, region: 'loc', epoch: round * 10 + index },
              { node_id, region: 'fra', epoch: round * 10 + 9 - index },
            ]),
          ),
        )
      expect(await outcomes(times(8, send))).toEqual(Array(8).fill(undefined))
      const found = await listNodesOnceIn(store.db, ['loc', 'fra'], [])
      const highest = new Map(Object.entries({ loc: round * 10 + 7, fra: round * 10 + 9 }))
      expect(found.map(({ received }) => received)).toEqual(ids.map(() => highest))
    }
  })

  test('remove a node while it receives its configuration: that of the others is recorded', async ({ store }) => {
    for (let round = 0; round < 4 * rounds; round += 1) {
      const ids = [newId(), newId()].toSorted()
      for (const node_id of ids)
        await registerNode(store.db, { node_id, region: 'fra', ipv4: [], ipv6: [], ingest_address: 'node:1' }, t0)
      const sent = ids.map((node_id) => ({ node_id, region: 'loc', epoch: 1 }))
      const results = await outcomes([
        transact(store, (db) => recordSnapshotsSent(db, store.dialect, sent)),
        transact(store, async (db) => void (await deleteNode(db, String(ids[0]), t0))),
      ])
      expect(results).toEqual([undefined, undefined])
      expect((await listNodesOnceIn(store.db, ['loc'], [])).filter(({ id }) => ids.includes(id))).toMatchObject([{ id: ids[1] }])
    }
  })
})
