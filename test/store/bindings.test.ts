import { expect } from 'vitest'
import { bindingLimits } from '#model/limits.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import { detachBinding } from '#store/endpoints/bindings.ts'
import { listUnsettledBindings, settleBindings } from '#store/endpoints/unsettled-bindings.ts'
import { aPublishedView, aStoredEndpoint, attach, describeStores, t0 } from './fixtures.ts'

const code = (name: string) => expect.objectContaining({ code: name })

describeStores('bindings', (test) => {
  test('attaching is refused while too many detached views are not settled', async ({ store, account }) => {
    const [view, endpoint] = [await aPublishedView(store, account), await aStoredEndpoint(store, account)]
    for (let count = 0; count < bindingLimits.unsettledMax; count += 1) {
      const { id } = await attach(store, account, endpoint.id, view.id)
      await inNewEpoch(store, (db) => detachBinding(db, account, endpoint.id, id, t0))
    }
    await expect(attach(store, account, endpoint.id, view.id)).rejects.toThrow(code('conflict'))
    await attach(store, account, (await aStoredEndpoint(store, account)).id, view.id)
    const unsettled = await listUnsettledBindings(store.db, t0 + 1, '', 1_000)
    expect(unsettled).toHaveLength(bindingLimits.unsettledMax)
    const [first, second] = await listUnsettledBindings(store.db, t0 + 1, '', 2)
    expect(await listUnsettledBindings(store.db, t0 + 1, first?.id ?? '', 1)).toEqual([second])
    await inNewEpoch(store, (db) => settleBindings(db, unsettled.slice(0, 1)))
    await attach(store, account, endpoint.id, view.id)
  })
})
