import type { Loss, LossesQuery } from '#model/loss.ts'
import type { Page } from '#model/page.ts'
import type { Principal } from '#model/principal.ts'
import { confirmLoss, listLosses } from '#store/commits/losses.ts'
import { transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { actorOf } from './actor.ts'

export type Losses = ReturnType<typeof lossService>

export function lossService({ store, clock, logger }: Pick<ControlContext, 'store' | 'clock' | 'logger'>) {
  return {
    list({ account_id }: Principal, query: LossesQuery): Promise<Page<Loss>> {
      return listLosses(store.db, account_id, query)
    },

    /** Throws not_found. */
    async confirm(principal: Principal, id: string): Promise<Loss> {
      const { account_id } = principal
      const by = actorOf(principal)
      const loss = await transact(store, (db) => confirmLoss(db, account_id, id, by, clock.now()))
      logger.notice({ account_id, loss_id: id, endpoint_id: loss.endpoint_id, records: loss.records, by }, 'loss confirmed')
      return loss
    },
  }
}
