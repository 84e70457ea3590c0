import { expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { removeDestination } from '#store/destinations.ts'
import {
  drainEndpoint,
  findEndpoint,
  getEndpoint,
  insertEndpoint,
  listEndpointFacts,
  listEndpoints,
  removeDrainingEndpoint,
  updateEndpoint,
} from '#store/endpoints.ts'
import { applyChange } from '#store/epoch.ts'
import { describeDatabases, newStore } from '../support/databases.ts'
import { anAccount, anEndpoint, aStoredDestination, aStoredEndpoint, iso, t0 } from './fixtures.ts'

const code = (name: string) => expect.objectContaining({ code: name })
const badDestination = expect.objectContaining({
  code: 'validation_error',
  errors: [expect.objectContaining({ path: 'destination_id' })],
})
const mqtt_config = { enabled: true, max_connections: 10, keepalive_max_s: 60, qos_max: 1 }

describeDatabases('endpoints', (kind) => {
  test('store the given settings, and null for defaults', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const destination = await aStoredDestination(store, account)
    const input = anEndpoint({ destination_id: destination.id, output_formats: ['segments', 'parquet'], mqtt_config })
    const made = await applyChange(store, (db) => insertEndpoint(db, account, input, t0))
    expect(made).toEqual({
      ...input,
      name: input.label,
      account_id: account,
      draining_epoch: null,
      account_suspended: false,
      desired_state: 'active',
      destination_name: destination.name,
      destination_status: 'pending',
      created_at: iso(t0),
      provisioned_at: null,
    })
    expect(await getEndpoint(store.db, account, input.id)).toEqual(made)
  })

  test('without a destination have none of its fields', async () => {
    await using store = await newStore(kind)
    const made = await aStoredEndpoint(store, await anAccount(store))
    expect(made).toMatchObject({ destination_id: null, destination_name: null, destination_status: null })
  })

  test('reject an unknown destination and one of another account', async () => {
    await using store = await newStore(kind)
    const [account, other] = [await anAccount(store), await anAccount(store)]
    const theirs = await aStoredDestination(store, other)
    for (const destination_id of [newId(), theirs.id]) {
      await expect(aStoredEndpoint(store, account, { destination_id })).rejects.toThrow(badDestination)
      const { id } = await aStoredEndpoint(store, account)
      await expect(applyChange(store, (db) => updateEndpoint(db, account, id, { destination_id }))).rejects.toThrow(
        badDestination,
      )
    }
  })

  test('have unique names in an account, until they are deleted', async () => {
    await using store = await newStore(kind)
    const [account, other] = [await anAccount(store), await anAccount(store)]
    const [named, unnamed] = [await aStoredEndpoint(store, account, { name: 'a' }), await aStoredEndpoint(store, account)]
    await aStoredEndpoint(store, other, { name: 'a' })
    await aStoredEndpoint(store, account)
    const rename = () => applyChange(store, (db) => updateEndpoint(db, account, unnamed.id, { name: 'a' }))
    await expect(aStoredEndpoint(store, account, { name: 'a' })).rejects.toThrow(code('conflict'))
    await expect(rename()).rejects.toThrow(code('conflict'))
    await applyChange(store, async (db, epoch) => {
      await drainEndpoint(db, account, named.id, { epoch, now: t0 })
      await removeDrainingEndpoint(db, named.id, t0)
    })
    expect(await rename()).toMatchObject({ name: 'a' })
  })

  test('have unique labels in a region', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { label } = await aStoredEndpoint(store, account)
    await aStoredEndpoint(store, account, { label, region: 'fra', name: 'other' })
    await expect(aStoredEndpoint(store, account, { label })).rejects.toThrow(code('conflict'))
  })

  test('change only the given settings, also to null', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const destination = await aStoredDestination(store, account)
    const made = await aStoredEndpoint(store, account, { segment_bytes: 8_000_000, mqtt_config, kept_headers: ['x-event'] })
    const change = { destination_id: destination.id, segment_max_age_seconds: 5 }
    const changed = await applyChange(store, (db) => updateEndpoint(db, account, made.id, change))
    expect(changed).toEqual({ ...made, ...change, destination_name: destination.name, destination_status: 'pending' })
    expect(await applyChange(store, (db) => updateEndpoint(db, account, made.id, {}))).toEqual(changed)
    const cleared = {
      destination_id: null,
      segment_bytes: null,
      segment_max_age_seconds: null,
      mqtt_config: null,
      kept_headers: null,
    }
    expect(await applyChange(store, (db) => updateEndpoint(db, account, made.id, cleared))).toMatchObject({
      ...cleared,
      output_formats: null,
    })
    await removeDestination(store.db, account, destination.id)
  })

  test('of another account are not found', async () => {
    await using store = await newStore(kind)
    const [account, other] = [await anAccount(store), await anAccount(store)]
    const { id } = await aStoredEndpoint(store, account)
    expect(await findEndpoint(store.db, other, id)).toBeUndefined()
    await expect(getEndpoint(store.db, other, id)).rejects.toThrow(code('not_found'))
    await expect(applyChange(store, (db) => updateEndpoint(db, other, id, { segment_bytes: 9_000_000 }))).rejects.toThrow(
      code('not_found'),
    )
    expect((await getEndpoint(store.db, account, id)).segment_bytes).toBeNull()
  })

  test('a list pages newest first, without gaps or repetitions', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    // Several in one millisecond: the order must be stable.
    for (let made = 0; made < 7; made += 1)
      await applyChange(store, (db) => insertEndpoint(db, account, anEndpoint(), t0 + Math.floor(made / 3)))
    await aStoredEndpoint(store, await anAccount(store))
    const pages = []
    for (let offset = 0; offset < 7; offset += 2) {
      pages.push(...(await listEndpoints(store.db, account, { limit: 2, offset })).items)
    }
    const all = await listEndpointFacts(store.db, account)
    expect(pages).toMatchObject(all)
    expect(new Set(all.map(({ id }) => id)).size).toBe(7)
    expect(all.map(({ created_at }) => created_at)).toEqual(
      all
        .map(({ created_at }) => created_at)
        .toSorted()
        .reverse(),
    )
  })
})
