import { expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { bindingLimits } from '#model/limits.ts'
import { detachBinding, insertBinding, listBindings } from '#store/bindings.ts'
import { applyChange } from '#store/epoch.ts'
import { transact } from '#store/store.ts'
import { listUnsettledBindings, settleBindings } from '#store/unsettled-bindings.ts'
import { archiveView, insertView } from '#store/views.ts'
import { describeDatabases, newStore } from '../support/databases.ts'
import { anAccount, aPublishedView, aStoredEndpoint, attach, aView, iso, t0 } from './fixtures.ts'

const code = (name: string) => expect.objectContaining({ code: name })
const badView = expect.objectContaining({ code: 'validation_error', errors: [expect.objectContaining({ path: 'view_id' })] })

describeDatabases('bindings', (kind) => {
  test('attach a published view', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const [view, endpoint] = [await aPublishedView(store, account), await aStoredEndpoint(store, account)]
    const binding = { id: newId(), endpoint_id: endpoint.id, view_id: view.id, is_required: true, activated_by: 'me' }
    const canary_start_ts = iso(t0 + 60_000)
    const made = await applyChange(store, (db) => insertBinding(db, account, { ...binding, canary_start_ts }, t0))
    expect(made).toEqual({
      ...binding,
      ...{ endpoint_name: endpoint.label, view_name: view.name, view_version: 1, canary_start_ts },
      ...{ activated_at: iso(t0), deactivated_at: null, status: 'active' },
    })
    expect(await listBindings(store.db, account, endpoint.id)).toEqual([made])
  })

  test('a view is attached once, and again after it was detached', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const [view, endpoint] = [await aPublishedView(store, account), await aStoredEndpoint(store, account)]
    const first = await attach(store, account, endpoint.id, view.id)
    await expect(attach(store, account, endpoint.id, view.id)).rejects.toThrow(code('view_already_attached'))
    await attach(store, account, (await aStoredEndpoint(store, account)).id, view.id)
    await applyChange(store, (db) => detachBinding(db, account, endpoint.id, first.id, t0 + 1))
    const second = await attach(store, account, endpoint.id, view.id, t0 + 2)
    expect(await listBindings(store.db, account, endpoint.id)).toEqual([
      second,
      { ...first, deactivated_at: iso(t0 + 1), status: 'detached' },
    ])
  })

  test('drafts, archived, foreign and unknown views are rejected', async () => {
    await using store = await newStore(kind)
    const [account, other] = [await anAccount(store), await anAccount(store)]
    const endpoint = await aStoredEndpoint(store, account)
    const draft = await transact(store, (db) => insertView(db, account, aView(), t0))
    const archived = await aPublishedView(store, account)
    await applyChange(store, (db) => archiveView(db, account, archived.id, t0))
    const theirs = await aPublishedView(store, other)
    for (const view_id of [draft.id, archived.id, theirs.id, newId()]) {
      await expect(attach(store, account, endpoint.id, view_id)).rejects.toThrow(badView)
    }
    expect(await listBindings(store.db, account, endpoint.id)).toEqual([])
  })

  test('an unknown endpoint, or one of another account, is not found', async () => {
    await using store = await newStore(kind)
    const [account, other] = [await anAccount(store), await anAccount(store)]
    const view = await aPublishedView(store, account)
    const theirs = await aStoredEndpoint(store, other)
    for (const endpoint_id of [newId(), theirs.id]) {
      await expect(attach(store, account, endpoint_id, view.id)).rejects.toThrow(code('not_found'))
    }
  })

  test('a binding is detached once, only by its account and endpoint', async () => {
    await using store = await newStore(kind)
    const [account, other] = [await anAccount(store), await anAccount(store)]
    const [view, endpoint] = [await aPublishedView(store, account), await aStoredEndpoint(store, account)]
    const { id } = await attach(store, account, endpoint.id, view.id)
    await expect(applyChange(store, (db) => detachBinding(db, other, endpoint.id, id, t0))).rejects.toThrow(code('not_found'))
    await expect(applyChange(store, (db) => detachBinding(db, account, newId(), id, t0))).rejects.toThrow(code('not_found'))
    await applyChange(store, (db) => detachBinding(db, account, endpoint.id, id, t0))
    await expect(applyChange(store, (db) => detachBinding(db, account, endpoint.id, id, t0))).rejects.toThrow(code('not_found'))
    expect(await listBindings(store.db, other, endpoint.id)).toEqual([])
  })

  test('attaching is refused while too many detached views are not settled', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const [view, endpoint] = [await aPublishedView(store, account), await aStoredEndpoint(store, account)]
    for (let count = 0; count < bindingLimits.unsettledMax; count += 1) {
      const { id } = await attach(store, account, endpoint.id, view.id)
      await applyChange(store, (db) => detachBinding(db, account, endpoint.id, id, t0))
    }
    await expect(attach(store, account, endpoint.id, view.id)).rejects.toThrow(code('conflict'))
    await attach(store, account, (await aStoredEndpoint(store, account)).id, view.id)
    const unsettled = await listUnsettledBindings(store.db, t0 + 1, '', 1_000)
    expect(unsettled).toHaveLength(bindingLimits.unsettledMax)
    const [first, second] = await listUnsettledBindings(store.db, t0 + 1, '', 2)
    expect(await listUnsettledBindings(store.db, t0 + 1, first?.id ?? '', 1)).toEqual([second])
    await applyChange(store, (db) => settleBindings(db, unsettled.slice(0, 1)))
    await attach(store, account, endpoint.id, view.id)
  })
})
