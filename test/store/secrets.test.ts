/** Secrets of accounts: encrypted, in the sections of those nodes that need them, and safe from being deleted under a published view. */
import { expect } from 'vitest'
import { Keyring, newSecretKey } from '#lib/keyring.ts'
import { newId } from '#model/id.ts'
import {
  insertSecret,
  listSecretNames,
  listSecrets,
  lockSecrets,
  readSecretValues,
  readValuesOfView,
  removeSecret,
  rotateSecret,
} from '#store/accounts/secrets.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import { listSectionVersions, versionsFor } from '#store/cluster/section-versions.ts'
import { detachBinding } from '#store/endpoints/bindings.ts'
import { archiveView, insertVersion, insertView, publishView, updateDraft } from '#store/endpoints/views.ts'
import { listRegionViews } from '#store/nodes/section-content.ts'
import { findKeyInUse, sealSecrets } from '#store/sealed-secrets.ts'
import { type Store, transact } from '#store/store.ts'
import { keyring, secretKey } from '../support/keyring.ts'
import { anAccount, aStoredEndpoint, attach, aView, describeStores, t0 } from './fixtures.ts'

const page = { limit: 50, offset: 0 }
const shards = Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, '0'))
const definition = { columns: [{ name: 'h', type: 'VARCHAR', value: "hmac_sha256('key', 'x')" }] }

function aSecret(store: Store, account_id: string, name = 'key', value = 'the value') {
  return transact(store, (db) => insertSecret(db, keyring, { id: newId(), account_id, name, value }, t0))
}

async function aPublished(store: Store, account: string, secrets = ['key']) {
  const view = await transact(store, (db) => insertView(db, account, { ...aView({ definition }), secrets }, t0))
  return transact(store, (db) => publishView(db, account, view.id, t0))
}

async function sectionsOf(store: Store, region: string) {
  return versionsFor(region, await listSectionVersions(store.db))
}

describeStores('secrets of an account', (test) => {
  test('are encrypted, and again once the key has changed', async ({ store, account }) => {
    const { id } = await aSecret(store, account)
    const stored = await store.db.selectFrom('account_secrets').selectAll().execute()
    expect(JSON.stringify(stored)).not.toContain('the value')
    expect(await findKeyInUse(store.db)).toBe(keyring.keyId)
    expect(await readSecretValues(store.db, keyring, account)).toEqual({ key: 'the value' })
    const next = newSecretKey()
    expect(await sealSecrets(store, new Keyring(`${next},${secretKey}`, 'the test'))).toBe(1)
    expect(await readSecretValues(store.db, new Keyring(next, 'the test'), account)).toEqual({ key: 'the value' })
    expect((await listSecrets(store.db, account, page)).items).toMatchObject([{ id, name: 'key', used_by: [] }])
  })

  test('have names of their own in each account', async ({ store, account }) => {
    await aSecret(store, account)
    await expect(aSecret(store, account)).rejects.toMatchObject({ code: 'conflict' })
    const other = await anAccount(store)
    await aSecret(store, other, 'key', 'another')
    expect(await readSecretValues(store.db, keyring, account)).toEqual({ key: 'the value' })
    const theirs = (await listSecrets(store.db, other, page)).items[0]?.id ?? ''
    await expect(transact(store, (db) => removeSecret(db, account, theirs))).rejects.toMatchObject({ code: 'not_found' })
    const rotating = inNewEpoch(store, (db) => rotateSecret(db, keyring, account, theirs, { value: 'mine', now: t0 }))
    await expect(rotating).rejects.toMatchObject({ code: 'not_found' })
    expect(await readSecretValues(store.db, keyring, other)).toEqual({ key: 'another' })
  })

  test('reach the nodes that need them, and a new value gives their sections a new version', async ({ store, account }) => {
    const { id } = await aSecret(store, account)
    await aSecret(store, account, 'other', 'not needed')
    const endpoint = await aStoredEndpoint(store, account)
    const view = await aPublished(store, account)
    await aPublished(store, account, ['other'])
    await attach(store, account, endpoint.id, view.id, t0)
    const sent = async (region: string) => [...(await listRegionViews(store.db, region, shards, keyring)).values()].flat()
    expect(await sent('loc')).toMatchObject([{ id: view.id, secrets: { key: 'the value' } }])
    expect(await sent('fra')).toEqual([])
    const before = await sectionsOf(store, 'loc')
    await inNewEpoch(store, (db) => rotateSecret(db, keyring, account, id, { value: 'the next', now: t0 + 1 }))
    const after = await sectionsOf(store, 'loc')
    expect([...after].flatMap(([name, version]) => (before.get(name) === version ? [] : [name]))).toEqual([
      `views/${view.id.slice(-2)}`,
    ])
    expect(await sent('loc')).toMatchObject([{ secrets: { key: 'the next' } }])
    expect(await readValuesOfView(store.db, keyring, view.id)).toEqual({ key: 'the next' })
    expect((await listSecrets(store.db, account, page)).items).toMatchObject([
      { name: 'key', rotated_at: new Date(t0 + 1).toISOString(), used_by: [view.name] },
      { name: 'other' },
    ])
  })

  test('stay while a published version or a node needs them', async ({ store, account }) => {
    const { id } = await aSecret(store, account)
    const endpoint = await aStoredEndpoint(store, account)
    const view = await aPublished(store, account)
    const remove = () => transact(store, (db) => removeSecret(db, account, id))
    await expect(remove()).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining(`${view.name} (version 1)`),
    })
    const binding = await attach(store, account, endpoint.id, view.id, t0)
    await inNewEpoch(store, (db) => detachBinding(db, account, endpoint.id, binding.id, t0))
    await inNewEpoch(store, (db) => archiveView(db, account, view.id, t0))
    await expect(remove()).rejects.toMatchObject({ message: expect.stringContaining('once they are delivered') })
    await store.db.updateTable('bindings').set({ unsettled_epoch: null }).execute()
    await remove()
    expect(await listSecretNames(store.db, account)).toEqual([])
  })

  test('that are gone keep a draft from being published, also a copy or a changed one', async ({ store, account }) => {
    const { id } = await aSecret(store, account)
    const draft = await transact(store, (db) => insertView(db, account, { ...aView({ definition }), secrets: ['key'] }, t0))
    const copy = await transact(store, (db) =>
      insertVersion(db, account, draft.id, { id: newId(), created_by: 'ci' }, undefined, t0),
    )
    await transact(store, (db) => removeSecret(db, account, id))
    for (const view of [draft, copy]) {
      const publishing = transact(store, (db) => publishView(db, account, view.id, t0))
      await expect(publishing).rejects.toMatchObject({ code: 'validation_error', message: expect.stringContaining('"key"') })
    }
    await transact(store, (db) => updateDraft(db, account, copy.id, { definition: aView().definition, secrets: [] }))
    await transact(store, (db) => publishView(db, account, copy.id, t0))
  })

  test('are not deleted while a version that names them is being published', async ({ store, account }) => {
    const { id } = await aSecret(store, account)
    const draft = await transact(store, (db) => insertView(db, account, { ...aView({ definition }), secrets: ['key'] }, t0))
    let removing: Promise<unknown> = Promise.resolve()
    await transact(store, async (db) => {
      await lockSecrets(db, account, draft.id)
      removing = transact(store, (other) => removeSecret(other, account, id)).catch((error: unknown) => error)
      await publishView(db, account, draft.id, t0)
    })
    expect(await removing).toMatchObject({ code: 'conflict' })
  })
})
