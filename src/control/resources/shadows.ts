import type { Clock } from '#lib/clock.ts'
import { newId } from '#model/id.ts'
import type { Principal } from '#model/principal.ts'
import type { Shadow, StartShadow } from '#model/shadow.ts'
import type { ApplyChange } from '#store/cluster/changes.ts'
import { getEndpoint } from '#store/endpoints/endpoints.ts'
import { insertShadow, listShadows, removeShadow } from '#store/endpoints/shadows.ts'
import type { Store } from '#store/store.ts'
import { actorOf } from './actor.ts'

export type ShadowsOptions = { readonly store: Store; readonly applyChange: ApplyChange; readonly clock: Clock }

export type Shadows = ReturnType<typeof shadowService>

export function shadowService({ store, applyChange, clock }: ShadowsOptions) {
  return {
    start(principal: Principal, endpoint_id: string, { view_id }: StartShadow): Promise<Shadow> {
      const shadow = { id: newId(), endpoint_id, view_id, started_by: actorOf(principal) }
      return applyChange((db) => insertShadow(db, principal.account_id, shadow, clock.now()))
    },

    async list({ account_id }: Principal, endpoint_id: string): Promise<{ items: Shadow[] }> {
      await getEndpoint(store.db, account_id, endpoint_id)
      return { items: await listShadows(store.db, account_id, endpoint_id) }
    },

    end({ account_id }: Principal, endpoint_id: string, id: string): Promise<void> {
      return applyChange((db) => removeShadow(db, account_id, endpoint_id, id))
    },
  }
}
