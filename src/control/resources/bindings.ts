import type { Clock } from '#lib/clock.ts'
import { type AttachedView, type AttachView, type BindingList, type BindingsQuery, viewsWriteNothing } from '#model/binding.ts'
import { newId } from '#model/id.ts'
import { factsNotKept } from '#model/kept-fields.ts'
import { pageLimits } from '#model/limits.ts'
import type { Principal } from '#model/principal.ts'
import type { ApplyChange } from '#store/cluster/changes.ts'
import { detachBinding, insertBinding, listBindingPage, listBindings } from '#store/endpoints/bindings.ts'
import { getEndpoint } from '#store/endpoints/endpoints.ts'
import { getView } from '#store/endpoints/views.ts'
import type { Store } from '#store/store.ts'
import { actorOf } from './actor.ts'
import { effectiveSettings } from './effective-settings.ts'

export type BindingsOptions = { readonly store: Store; readonly applyChange: ApplyChange; readonly clock: Clock }

export type Bindings = ReturnType<typeof bindingService>

export function bindingService({ store, applyChange, clock }: BindingsOptions) {
  return {
    attach(principal: Principal, endpoint_id: string, attachment: AttachView): Promise<AttachedView> {
      const { account_id } = principal
      const binding = { ...attachment, id: newId(), endpoint_id, activated_by: actorOf(principal) }
      return applyChange(async (db) => {
        const attached = await insertBinding(db, account_id, binding, clock.now())
        const settings = effectiveSettings(await getEndpoint(db, account_id, endpoint_id))
        const { definition } = await getView(db, account_id, attachment.view_id)
        const writes = settings.output_formats.includes('parquet_views')
        const missing = factsNotKept('the view', definition, settings)
        return { ...attached, warnings: [...(writes ? [] : [viewsWriteNothing]), ...missing] }
      })
    },

    async list({ account_id }: Principal, endpoint_id: string, { limit, offset }: BindingsQuery): Promise<BindingList> {
      const { db } = store
      await getEndpoint(db, account_id, endpoint_id)
      if (limit === undefined && offset === undefined) return { items: [...(await listBindings(db, account_id, endpoint_id))] }
      return listBindingPage(db, account_id, endpoint_id, { limit: limit ?? pageLimits.default, offset: offset ?? 0 })
    },

    detach({ account_id }: Principal, endpoint_id: string, binding_id: string): Promise<void> {
      return applyChange((db) => detachBinding(db, account_id, endpoint_id, binding_id, clock.now()))
    },
  }
}
