import { expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { detachBinding } from '#store/bindings.ts'
import { recordCommit } from '#store/commits.ts'
import { bumpEpoch, currentEpoch } from '#store/epoch.ts'
import { listRegionEndpoints } from '#store/snapshot-endpoints.ts'
import { readConsistently, transact } from '#store/store.ts'
import { describeDatabases, newStore } from '../support/databases.ts'
import { aCommit, anAccount, aPublishedView, aStoredDestination, aStoredEndpoint, attach, t0 } from './fixtures.ts'

describeDatabases('the endpoints of a region', (kind) => {
  test('come with all that a node needs', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const destination = await aStoredDestination(store, account)
    const endpoint = await aStoredEndpoint(store, account, { destination_id: destination.id })
    const [first, second, gone] = [
      await aPublishedView(store, account),
      await aPublishedView(store, account),
      await aPublishedView(store, account),
    ]
    const late = await attach(store, account, endpoint.id, second.id, t0 + 9)
    const early = await attach(store, account, endpoint.id, first.id, t0 + 1)
    const detached = await attach(store, account, endpoint.id, gone.id, t0 + 2)
    await detachBinding(store.db, account, endpoint.id, detached.id, t0 + 3)
    const { id, bucket, prefix, region, role_arn, external_id, kms_key_arn, path_style } = destination
    const bound = { is_required: false, canary_start_ts: null, version: 1 }
    expect(await listRegionEndpoints(store.db, 'loc', newId())).toEqual([
      {
        ...endpoint,
        destination: { id, bucket, prefix, region, role_arn, external_id, kms_key_arn, path_style },
        views: [
          { ...bound, binding_id: early.id, view_id: first.id, name: first.name, definition: first.definition },
          { ...bound, binding_id: late.id, view_id: second.id, name: second.name, definition: second.definition },
        ],
        committed_seq: -1,
      },
    ])
  })

  test('are those of every account, and of no other region', async () => {
    await using store = await newStore(kind)
    const made = [await aStoredEndpoint(store, await anAccount(store)), await aStoredEndpoint(store, await anAccount(store))]
    await aStoredEndpoint(store, await anAccount(store), { region: 'fra' })
    const endpoints = await listRegionEndpoints(store.db, 'loc', newId())
    expect(endpoints.map(({ id }) => id)).toEqual(made.map(({ id }) => id).toSorted())
    expect(endpoints).toMatchObject([
      { destination: null, views: [] },
      { destination: null, views: [] },
    ])
    expect(await listRegionEndpoints(store.db, 'zzz', newId())).toEqual([])
  })

  test('tell a node how far its own commits are', async () => {
    await using store = await newStore(kind)
    const { id } = await aStoredEndpoint(store, await anAccount(store))
    const [one, two] = [newId(), newId()]
    for (const [node_id, seq] of [
      [one, 3],
      [one, 5],
      [one, 4],
      [two, 0],
    ] as const) {
      await transact(store, (db) => recordCommit(db, aCommit(id, seq, { node_id }), t0))
    }
    const seqFor = async (node_id: string) => (await listRegionEndpoints(store.db, 'loc', node_id))[0]?.committed_seq
    expect([await seqFor(one), await seqFor(two), await seqFor(newId())]).toEqual([5, 0, -1])
  })

  test('are read at one epoch, while others change them', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const change = async () => {
      for (let made = 0; made < 10; made += 1) {
        await transact(store, async (db) => {
          await bumpEpoch(db)
          await aStoredEndpoint({ ...store, db }, account)
        })
      }
    }
    const seen: [number, number][] = []
    const watch = async () => {
      for (let looked = 0; looked < 15; looked += 1) {
        await readConsistently(store, async (db) => {
          const endpoints = await listRegionEndpoints(db, 'loc', newId())
          seen.push([await currentEpoch(db), endpoints.length])
        })
      }
    }
    await Promise.all([change(), change(), watch(), watch()])
    expect(seen.filter(([epoch, endpoints]) => epoch !== endpoints)).toEqual([])
  })
})
