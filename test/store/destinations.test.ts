import { expect, test } from 'vitest'
import type { ChangeDestination } from '#model/destination.ts'
import {
  claimValidation,
  findDestination,
  getDestination,
  insertDestination,
  listBucketAccounts,
  listDestinations,
  recordValidation,
  removeDestination,
  updateDestination,
} from '#store/destinations.ts'
import { applyChange } from '#store/epoch.ts'
import { transact } from '#store/store.ts'
import { describeDatabases, newStore, type TestStore } from '../support/databases.ts'
import { aDestination, anAccount, aStoredDestination, aStoredEndpoint, iso, t0 } from './fixtures.ts'

const code = (name: string) => expect.objectContaining({ code: name })

async function validated(store: TestStore, account: string) {
  const { id } = await aStoredDestination(store, account)
  const { revision } = await transact(store, (db) => claimValidation(db, account, id, t0))
  await recordValidation(store.db, account, id, { revision, error: null }, t0 + 1)
  return getDestination(store.db, account, id)
}

describeDatabases('destinations', (kind) => {
  test('the accounts of a bucket are listed, the first one first', async () => {
    await using store = await newStore(kind)
    const ids: string[] = []
    for (const [index, bucket] of ['lake', 'pond', 'lake', 'lake'].entries()) {
      const { external_id } = await insertDestination(store.db, await anAccount(store), aDestination({ bucket }), t0 - index)
      ids.push(external_id)
    }
    expect(await listBucketAccounts(store.db, 'lake')).toEqual([ids[3], ids[2], ids[0]])
    expect(await listBucketAccounts(store.db, 'sea')).toEqual([])
  })

  test('start pending, with the external id of the account', async () => {
    await using store = await newStore(kind)
    const [account, other] = [await anAccount(store), await anAccount(store)]
    const input = aDestination({ path_style: true })
    const made = await insertDestination(store.db, account, input, t0)
    expect(made).toEqual({
      ...input,
      encryption: 'sse-s3',
      allowed_buckets: [],
      external_id: expect.stringMatching(/^inlet-/),
      status: 'pending',
      validated_at: null,
      last_error: null,
      created_at: iso(t0),
      updated_at: iso(t0),
      ref_count: 0,
    })
    expect((await aStoredDestination(store, account)).external_id).toBe(made.external_id)
    expect((await aStoredDestination(store, other)).external_id).not.toBe(made.external_id)
  })

  test('names are unique in an account, for inserts and updates', async () => {
    await using store = await newStore(kind)
    const [account, other] = [await anAccount(store), await anAccount(store)]
    const { name } = await aStoredDestination(store, account)
    await insertDestination(store.db, other, aDestination({ name }), t0)
    const again = insertDestination(store.db, account, aDestination({ name }), t0)
    await expect(again).rejects.toThrow(expect.objectContaining({ code: 'conflict', message: 'destination name already exists' }))
    const { id } = await aStoredDestination(store, account)
    await expect(applyChange(store, (db) => updateDestination(db, account, id, { name }, t0))).rejects.toThrow(code('conflict'))
  })

  test('of another account are not found', async () => {
    await using store = await newStore(kind)
    const [account, other] = [await anAccount(store), await anAccount(store)]
    const { id } = await aStoredDestination(store, account)
    expect(await findDestination(store.db, other, id)).toBeUndefined()
    await expect(getDestination(store.db, other, id)).rejects.toThrow(code('not_found'))
    await expect(removeDestination(store.db, other, id)).rejects.toThrow(code('not_found'))
    await expect(applyChange(store, (db) => updateDestination(db, other, id, { prefix: 'x' }, t0))).rejects.toThrow(
      code('not_found'),
    )
    await expect(transact(store, (db) => claimValidation(db, other, id, t0))).rejects.toThrow(code('not_found'))
    expect(await recordValidation(store.db, other, id, { revision: 1, error: null }, t0)).toBe(false)
  })

  test('a list pages newest first and counts the endpoints', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const made = []
    for (let age = 0; age < 5; age += 1) made.push((await aStoredDestination(store, account, t0 + age)).id)
    await aStoredDestination(store, await anAccount(store))
    await aStoredEndpoint(store, account, { destination_id: made[4] ?? null })
    await aStoredEndpoint(store, account, { destination_id: made[4] ?? null })
    const first = await listDestinations(store.db, account, { limit: 2, offset: 0 })
    const last = await listDestinations(store.db, account, { limit: 2, offset: 4 })
    const beyond = await listDestinations(store.db, account, { limit: 2, offset: 100 })
    expect(first.items.map(({ id, ref_count }) => [id, ref_count])).toEqual([
      [made[4], 2],
      [made[3], 0],
    ])
    expect(first).toMatchObject({ total: 5, limit: 2, offset: 0, next_offset: 2 })
    expect(last.items.map(({ id }) => id)).toEqual([made[0]])
    expect(last.next_offset).toBeNull()
    expect(beyond).toMatchObject({ items: [], total: 5, next_offset: null })
  })

  test.each<readonly [ChangeDestination]>([
    [{ bucket: 'pond' }],
    [{ prefix: '' }],
    [{ region: 'eu-west-1' }],
    [{ role_arn: 'arn:aws:iam::1:role/r' }],
    [{ kms_key_arn: 'arn:aws:kms:eu-west-1:1:key/k' }],
    [{ encryption: 'bucket-default' }],
    [{ checksums: 'none' }],
    [{ path_style: true }],
  ])('a change of %j sets a valid one back to pending', async (change) => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { id } = await validated(store, account)
    const changed = await applyChange(store, (db) => updateDestination(db, account, id, change, t0 + 9))
    expect(changed).toMatchObject({ ...change, status: 'pending', validated_at: null, last_error: null, updated_at: iso(t0 + 9) })
  })

  test('a new name, or unchanged values, keep it valid', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { id, bucket, prefix, path_style, kms_key_arn } = await validated(store, account)
    const change = { name: 'renamed', bucket, prefix, path_style, kms_key_arn }
    const changed = await applyChange(store, (db) => updateDestination(db, account, id, change, t0 + 9))
    expect(changed).toMatchObject({ name: 'renamed', status: 'valid', validated_at: iso(t0 + 1) })
  })

  test('a KMS key can be removed', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { id } = await insertDestination(store.db, account, aDestination({ kms_key_arn: 'arn:aws:kms:x:1:key/k' }), t0)
    const changed = await applyChange(store, (db) => updateDestination(db, account, id, { kms_key_arn: null }, t0))
    expect(changed.kms_key_arn).toBeNull()
  })

  test('a validation is claimed once in 30 seconds', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { id } = await aStoredDestination(store, account)
    const claim = (now: number) => transact(store, (db) => claimValidation(db, account, id, now))
    expect(await claim(t0)).toMatchObject({ destination: { id }, revision: 1 })
    await expect(claim(t0)).rejects.toThrow(expect.objectContaining({ code: 'too_many_requests', retryAfterSeconds: 30 }))
    await expect(claim(t0 + 29_001)).rejects.toThrow(expect.objectContaining({ retryAfterSeconds: 1 }))
    expect(await claim(t0 + 30_000)).toMatchObject({ revision: 1 })
    // A clock slightly behind still throttles. A claim from a clock an hour ahead does not block for an hour.
    await expect(claim(t0)).rejects.toThrow(expect.objectContaining({ retryAfterSeconds: 30 }))
    expect(await claim(t0 + 3_600_000)).toMatchObject({ revision: 1 })
    expect(await claim(t0 + 40_000)).toMatchObject({ revision: 1 })
    await expect(claim(t0 + 41_000)).rejects.toThrow(code('too_many_requests'))
  })

  test('a failed validation stores its message and resets the status', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { id } = await validated(store, account)
    const { revision } = await transact(store, (db) => claimValidation(db, account, id, t0 + 40_000))
    expect(await recordValidation(store.db, account, id, { revision, error: 'the bucket is gone' }, t0 + 40_001)).toBe(true)
    expect(await getDestination(store.db, account, id)).toMatchObject({
      status: 'pending',
      validated_at: null,
      last_error: 'the bucket is gone',
    })
  })

  test('the result of a validation is ignored if the settings changed meanwhile', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { id } = await aStoredDestination(store, account)
    const { revision } = await transact(store, (db) => claimValidation(db, account, id, t0))
    await applyChange(store, (db) => updateDestination(db, account, id, { bucket: 'other' }, t0 + 1))
    expect(await recordValidation(store.db, account, id, { revision, error: null }, t0 + 2)).toBe(false)
    expect(await getDestination(store.db, account, id)).toMatchObject({ status: 'pending', validated_at: null })
  })

  test('is removed once, and not while an endpoint uses it', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { id } = await aStoredDestination(store, account)
    await aStoredEndpoint(store, account, { destination_id: id })
    await expect(removeDestination(store.db, account, id)).rejects.toThrow(code('conflict'))
    const free = await aStoredDestination(store, account)
    await removeDestination(store.db, account, free.id)
    await expect(removeDestination(store.db, account, free.id)).rejects.toThrow(code('not_found'))
  })

  test('text with U+0000 is rejected as a client error', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const bad = insertDestination(store.db, account, aDestination({ name: 'a\0b' }), t0)
    await expect(bad).rejects.toThrow(code('validation_error'))
  })

  test('every other character is stored unchanged', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const name = `é 漢 🜁 ' " \\ % _ \u0001 \u202e`
    const { id } = await insertDestination(store.db, account, aDestination({ name }), t0)
    expect((await getDestination(store.db, account, id)).name).toBe(name)
  })
})
