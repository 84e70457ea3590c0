import type { InstallationLossesQuery, Loss, LossesQuery } from '#model/loss.ts'
import type { Page } from '#model/page.ts'
import type { Principal } from '#model/principal.ts'
import { confirmLoss, listLosses } from '#store/commits/losses.ts'
import { skipCompanion, transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { actorOf } from './actor.ts'

export type Losses = ReturnType<typeof lossService>

export function lossService({ store, clock, logger }: Pick<ControlContext, 'store' | 'clock' | 'logger'>) {
  /** `account_id` is undefined for the operator. */
  async function accept(account_id: string | undefined, id: string, by: string): Promise<Loss> {
    const { loss, isNew } = await transact(store, async (db) => {
      const confirmed = await confirmLoss(db, account_id, id, by, clock.now())
      if (!confirmed.isNew) skipCompanion()
      return confirmed
    })
    if (!isNew) return loss
    const { account_id: owner, endpoint_id, records, reported_at } = loss
    logger.notice({ account_id: owner, loss_id: id, endpoint_id, records, reported_at, by }, 'loss confirmed')
    return loss
  }

  return {
    list({ account_id }: Principal, query: LossesQuery): Promise<Page<Loss>> {
      return listLosses(store.db, account_id, query)
    },

    /** Returns those of all accounts, or of one. */
    listAll({ account_id, ...query }: InstallationLossesQuery): Promise<Page<Loss>> {
      return listLosses(store.db, account_id, query)
    },

    /** Throws not_found, and conflict for one that is recovered. */
    confirm(principal: Principal, id: string): Promise<Loss> {
      return accept(principal.account_id, id, actorOf(principal))
    },

    /** The same by the operator, for an account that cannot: a suspended one changes nothing. */
    confirmForAccount(id: string, by: 'operator' | 'cli'): Promise<Loss> {
      return accept(undefined, id, by)
    },
  }
}
