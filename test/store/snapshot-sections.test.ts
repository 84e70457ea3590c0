import fc from 'fast-check'
import { expect } from 'vitest'
import { must } from '#lib/assert.ts'
import { toSentView } from '#model/definition.ts'
import { newId } from '#model/id.ts'
import { updateAccount } from '#store/accounts/accounts.ts'
import { insertApiKey, revokeApiKey } from '#store/accounts/api-keys.ts'
import { insertSigningKey, listSigningKeys } from '#store/accounts/signing-keys.ts'
import { currentEpoch, inNewEpoch } from '#store/cluster/epoch.ts'
import { listSectionVersions, versionsFor } from '#store/cluster/section-versions.ts'
import { listCommittedSeqs, recordCommit } from '#store/commits/commits.ts'
import { detachBinding } from '#store/endpoints/bindings.ts'
import { updateDestination } from '#store/endpoints/destinations.ts'
import { drainEndpoint, removeDrainingEndpoint, setDesiredState, updateEndpoint } from '#store/endpoints/endpoints.ts'
import { listUnsettledBindings, settleBindings, type UnsettledBinding } from '#store/endpoints/unsettled-bindings.ts'
import { archiveView } from '#store/endpoints/views.ts'
import { listRegionEndpoints, listRegionKeys, listRegionViews } from '#store/nodes/section-content.ts'
import { type Db, readConsistently, type Store, transact } from '#store/store.ts'
import { keyring } from '../support/keyring.ts'
import {
  aCommit,
  aKey,
  anAccount,
  aPublishedView,
  aStoredDestination,
  aStoredEndpoint,
  attach,
  aView,
  describeStores,
  iso,
  t0,
} from './fixtures.ts'

const shards = Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, '0'))
const shardOf = (id: string) => id.slice(-2)

const endpointsOf = async (db: Db, region: string) => [...(await listRegionEndpoints(db, region, shards)).values()].flat()
const keysOf = async (db: Db, region: string, since = t0) => {
  const found = [...(await listRegionKeys(db, region, shards, since)).values()]
  return { keys: found.flatMap(({ keys }) => keys), revoked: found.flatMap(({ revoked_keys }) => revoked_keys) }
}
const viewsOf = async (db: Db, region: string) => [...(await listRegionViews(db, region, shards, keyring)).values()].flat()

/** Returns content by section, as control would send it. */
async function contents(db: Db, region: string): Promise<ReadonlyMap<string, string>> {
  const print = (kind: string, sections: ReadonlyMap<string, unknown>) =>
    [...sections].map(([shard, content]) => [`${kind}/${shard}`, JSON.stringify(content)] as const)
  return new Map([
    ['installation', JSON.stringify(await listSigningKeys(db, keyring))],
    ...print('keys', await listRegionKeys(db, region, shards, t0)),
    ...print('endpoints', await listRegionEndpoints(db, region, shards)),
    ...print('views', await listRegionViews(db, region, shards, keyring)),
  ])
}

/** Returns the sections of a region whose version the work changes. */
async function touchedBy(store: Store, region: string, work: () => Promise<unknown>): Promise<readonly string[]> {
  const before = versionsFor(region, await listSectionVersions(store.db))
  await work()
  const after = versionsFor(region, await listSectionVersions(store.db))
  return [...after].flatMap(([name, version]) => (before.get(name) === version ? [] : [name])).toSorted()
}

describeStores('sections of a region', (test) => {
  test('have bindings in the order of their activation, detached ones too, and their views', async ({ store, account }) => {
    const endpoint = await aStoredEndpoint(store, account)
    const [first, second, gone] = [
      await aPublishedView(store, account, { definition: { ...aView().definition, lists: 'aligned' } }),
      await aPublishedView(store, account),
      await aPublishedView(store, account),
    ]
    const late = await attach(store, account, endpoint.id, second.id, t0 + 9)
    const early = await attach(store, account, endpoint.id, first.id, t0 + 1)
    const detached = await attach(store, account, endpoint.id, gone.id, t0 + 2)
    await inNewEpoch(store, (db) => detachBinding(db, account, endpoint.id, detached.id, t0 + 3))
    const bound = { is_required: false, deactivated_at: null, canary_start_ts: null }
    const [found] = await endpointsOf(store.db, 'loc')
    expect(found?.bindings).toEqual([
      { ...bound, binding_id: early.id, view_id: first.id, activated_at: iso(t0 + 1) },
      { ...bound, binding_id: detached.id, view_id: gone.id, activated_at: iso(t0 + 2), deactivated_at: iso(t0 + 3) },
      { ...bound, binding_id: late.id, view_id: second.id, activated_at: iso(t0 + 9) },
    ])
    const definitions = [first, second, gone].map(({ id, name, version, definition }) =>
      toSentView({ id, name, version, definition }),
    )
    expect((await viewsOf(store.db, 'loc')).toSorted((a, b) => a.id.localeCompare(b.id))).toEqual(
      definitions.toSorted((a, b) => a.id.localeCompare(b.id)),
    )
    expect(await viewsOf(store.db, 'fra')).toEqual([])
  })

  test('contain the endpoints of all accounts, and of no other region', async ({ store }) => {
    const made = [await aStoredEndpoint(store, await anAccount(store)), await aStoredEndpoint(store, await anAccount(store))]
    await aStoredEndpoint(store, await anAccount(store), { region: 'fra' })
    const endpoints = await endpointsOf(store.db, 'loc')
    expect(endpoints.map(({ id }) => id).toSorted()).toEqual(made.map(({ id }) => id).toSorted())
    expect(endpoints).toMatchObject([
      { destination: null, bindings: [] },
      { destination: null, bindings: [] },
    ])
    expect(await endpointsOf(store.db, 'zzz')).toEqual([])
  })

  test('contain only active and recently revoked keys of accounts with an endpoint there', async ({ store }) => {
    const [one, two] = [await anAccount(store), await anAccount(store)]
    const [active, lately, longAgo, elsewhere] = [aKey(one), aKey(one), aKey(one), aKey(two)]
    for (const key of [active, lately, longAgo, elsewhere]) await inNewEpoch(store, (db) => insertApiKey(db, key, t0))
    await inNewEpoch(store, (db) => revokeApiKey(db, one, lately.id, { at: t0 + 100, endsAccess: false }))
    await inNewEpoch(store, (db) => revokeApiKey(db, one, longAgo.id, { at: t0 + 50, endsAccess: false }))
    expect(await keysOf(store.db, 'loc')).toEqual({ keys: [], revoked: [] })
    await aStoredEndpoint(store, one)
    const { id, account_id, hash, scopes } = active
    expect(await keysOf(store.db, 'loc', t0 + 100)).toEqual({
      keys: [{ id, account_id, hash, scopes, endpoint_ids: null, origins: null, name: 'ci' }],
      revoked: [{ id: lately.id, tokens_until: iso(t0 + 100 + 15 * 60_000), name: 'ci' }],
    })
    // Long after its revocation, the connections of a key may still be open.
    await inNewEpoch(store, (db) => revokeApiKey(db, one, longAgo.id, { at: t0 + 200, endsAccess: true }))
    expect((await keysOf(store.db, 'loc', t0 + 200)).revoked).toEqual([{ id: longAgo.id, tokens_until: null, name: 'ci' }])
  })

  test('listCommittedSeqs returns the highest committed seq of each endpoint on the node', async ({ store }) => {
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
    expect(await listCommittedSeqs(store.db, one)).toEqual({ [id]: 5 })
    expect(await listCommittedSeqs(store.db, two)).toEqual({ [id]: 0 })
    expect(await listCommittedSeqs(store.db, newId())).toEqual({})
  })
})

describeStores('versions of sections', (test) => {
  test('a change gives a new version to the sections it affects, only in the affected regions', async ({ store, account }) => {
    const key = aKey(account)
    const touched = (region: string, work: () => Promise<unknown>) => touchedBy(store, region, work)
    expect(await touched('loc', () => inNewEpoch(store, (db) => insertApiKey(db, key, t0)))).toEqual([])

    const endpoint = await aStoredEndpoint(store, account, { region: 'fra' })
    const endpointSection = `endpoints/${shardOf(endpoint.id)}`
    const other = await anAccount(store)
    let first = endpoint
    expect(await touched('loc', async () => (first = await aStoredEndpoint(store, account)))).toEqual(
      [`endpoints/${shardOf(first.id)}`, `keys/${shardOf(key.id)}`].toSorted(),
    )
    expect(await touched('fra', () => aStoredEndpoint(store, other))).toEqual([])

    const second = aKey(account)
    expect(await touched('fra', () => inNewEpoch(store, (db) => insertApiKey(db, second, t0)))).toEqual([
      `keys/${shardOf(second.id)}`,
    ])
    expect(
      await touched('fra', () => inNewEpoch(store, (db) => revokeApiKey(db, account, second.id, { at: t0, endsAccess: false }))),
    ).toEqual([`keys/${shardOf(second.id)}`])

    const status = (to: 'active' | 'suspended') => () => inNewEpoch(store, (db) => updateAccount(db, account, { status: to }))
    expect(await touched('fra', status('suspended'))).toEqual([endpointSection])
    expect(await touched('fra', status('suspended'))).toEqual([])
    expect(await touched('loc', status('active'))).toEqual([`endpoints/${shardOf(first.id)}`])
    expect(await touched('fra', () => inNewEpoch(store, (db) => updateAccount(db, account, { name: 'acme' })))).toEqual([])

    const destination = await aStoredDestination(store, account)
    const bind = { destination_id: destination.id }
    expect(await touched('fra', () => inNewEpoch(store, (db) => updateEndpoint(db, account, endpoint.id, bind, 0)))).toEqual([
      endpointSection,
    ])
    const update = (change: object) => () => inNewEpoch(store, (db) => updateDestination(db, account, destination.id, change, t0))
    expect(await touched('fra', update({ bucket: 'pond' }))).toEqual([endpointSection])
    expect(await touched('fra', update({ name: 'pond' }))).toEqual([])
    expect(await touched('loc', update({ bucket: 'sea' }))).toEqual([])

    const view = await aPublishedView(store, account)
    const viewSection = `views/${shardOf(view.id)}`
    expect(await touched('fra', () => attach(store, account, endpoint.id, view.id))).toEqual(
      [endpointSection, viewSection].toSorted(),
    )
    const sibling = await aStoredEndpoint(store, account, { region: 'fra' })
    expect(await touched('fra', () => attach(store, account, sibling.id, view.id))).toEqual([`endpoints/${shardOf(sibling.id)}`])
    expect(await touched('fra', () => inNewEpoch(store, (db) => archiveView(db, account, view.id, t0)))).toEqual(
      [...new Set([endpointSection, `endpoints/${shardOf(sibling.id)}`])].toSorted(),
    )
    const [one, two] = await listUnsettledBindings(store.db, t0 + 1, '', 2)
    const settle = (...bindings: UnsettledBinding[]) =>
      touched('fra', () => inNewEpoch(store, (db) => settleBindings(db, bindings)))
    expect(await settle(must(one, 'a binding'))).toEqual([`endpoints/${shardOf(must(one, 'a binding').endpoint_id)}`])
    expect(await settle(must(two, 'a binding'))).toEqual(
      [...new Set([`endpoints/${shardOf(must(two, 'a binding').endpoint_id)}`, viewSection])].toSorted(),
    )

    const drain = () => inNewEpoch(store, (db, epoch) => drainEndpoint(db, account, first.id, { epoch, now: t0 }))
    expect(await touched('loc', drain)).toEqual([`endpoints/${shardOf(first.id)}`])
    expect(await touched('loc', () => inNewEpoch(store, (db) => removeDrainingEndpoint(db, first.id, t0)))).toEqual(
      [...new Set([`endpoints/${shardOf(first.id)}`, `keys/${shardOf(key.id)}`, `keys/${shardOf(second.id)}`])].toSorted(),
    )
  })

  test('a version identifies one content, and a reader at an epoch sees every change up to it', async ({ store }) => {
    const seed = Number(process.env['INLET_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
    const accounts = [await anAccount(store), await anAccount(store)]
    const regions = ['loc', 'fra']
    const named = new Map<string, string>()
    const seen: { readonly epoch: number; readonly keys: ReadonlySet<string> }[] = []
    const created: { readonly epoch: number; readonly id: string }[] = []
    let writing = true

    const read = async (region: string) => {
      const { epoch, versions, sections } = await readConsistently(store, async (db) => ({
        epoch: await currentEpoch(db),
        versions: versionsFor(region, await listSectionVersions(db, region)),
        sections: await contents(db, region),
      }))
      for (const [section, content] of sections) {
        const name = `${region} ${section} ${versions.get(section) ?? 'untouched'}`
        expect(named.get(name) ?? content, `${name}, seed ${seed}`).toBe(content)
        named.set(name, content)
      }
      return epoch
    }
    const watch = async () => {
      for (let turn = 0; writing || turn < 4; turn += 1) {
        await read(must(regions[turn % 2], 'a region'))
        seen.push(
          await readConsistently(store, async (db) => ({
            epoch: await currentEpoch(db),
            keys: new Set((await db.selectFrom('api_keys').select('id').execute()).map(({ id }) => id)),
          })),
        )
      }
    }
    const write = async (random: readonly number[]) => {
      for (const number of random) {
        const account = must(accounts[number % 2], 'an account')
        const region = must(regions[(number >> 1) % 2], 'a region')
        await randomChange(store, number >> 2, account, region, created).catch((error: unknown) => {
          if (!(error instanceof Error && 'code' in error)) throw error
        })
      }
    }
    const numbers = fc.sample(fc.array(fc.nat(), { minLength: 14, maxLength: 14 }), { seed, numRuns: 2 })
    const writers = numbers.map((random) => write(random))
    const watching = [watch(), watch()]
    await Promise.all(writers).finally(() => (writing = false))
    await Promise.all(watching)
    for (const { epoch, keys } of seen) {
      const missing = created.filter((key) => key.epoch <= epoch && !keys.has(key.id))
      expect(missing, `seed ${seed}`).toEqual([])
      expect(
        created.some((key) => key.epoch > epoch && keys.has(key.id)),
        `seed ${seed}`,
      ).toBe(false)
    }
  }, 60_000)
})

async function randomChange(
  store: Store,
  number: number,
  account: string,
  region: string,
  created: { readonly epoch: number; readonly id: string }[],
): Promise<void> {
  const pick = <T>(items: readonly T[]): T | undefined => items[(number >> 4) % Math.max(items.length, 1)]
  const endpoint = pick(await endpointsOf(store.db, region))
  switch (number % 10) {
    case 0:
    case 1: {
      const key = aKey(account)
      const epoch = await inNewEpoch(store, async (db, epoch) => insertApiKey(db, key, t0).then(() => epoch))
      created.push({ epoch, id: key.id })
      return
    }
    case 2: {
      const key = pick((await keysOf(store.db, region)).keys)
      if (key !== undefined)
        await inNewEpoch(store, (db) => revokeApiKey(db, key.account_id, key.id, { at: t0 + number, endsAccess: false }))
      return
    }
    case 3:
    case 4:
      await aStoredEndpoint(store, account, { region })
      return
    case 5: {
      const { id } = await aStoredDestination(store, account)
      if (endpoint?.account_id !== account) return
      await inNewEpoch(store, (db) => updateEndpoint(db, account, endpoint.id, { destination_id: id }, 0))
      await inNewEpoch(store, (db) => updateDestination(db, account, id, { prefix: `p${number}` }, t0))
      return
    }
    case 6: {
      if (endpoint === undefined) return
      await inNewEpoch(store, (db, epoch) => drainEndpoint(db, endpoint.account_id, endpoint.id, { epoch, now: t0 }))
      await inNewEpoch(store, (db) => removeDrainingEndpoint(db, endpoint.id, t0))
      return
    }
    case 7: {
      if (endpoint === undefined) return
      const view = await aPublishedView(store, endpoint.account_id)
      const binding = await attach(store, endpoint.account_id, endpoint.id, view.id)
      if (number % 3 === 0) await inNewEpoch(store, (db) => archiveView(db, endpoint.account_id, view.id, t0))
      else if (number % 3 === 1)
        await inNewEpoch(store, (db) => detachBinding(db, endpoint.account_id, endpoint.id, binding.id, t0))
      else await inNewEpoch(store, async (db) => settleBindings(db, await listUnsettledBindings(db, t0 + 1, '', 2)))
      return
    }
    case 8: {
      if (endpoint !== undefined) await inNewEpoch(store, (db) => setDesiredState(db, endpoint.account_id, endpoint.id, 'paused'))
      return
    }
    default:
      await inNewEpoch(store, (db) => insertSigningKey(db, keyring, { kid: newId(), private_jwk: {}, created_at: iso(t0) }))
  }
}
