import type { Clock } from '#lib/clock.ts'
import type { QuotaUse } from '#model/quota.ts'
import { readQuotaUse } from '#store/accounts/quotas.ts'
import { readConsistently, type Store } from '#store/store.ts'

export type QuotasOptions = { readonly store: Store; readonly clock: Clock }

export type Quotas = ReturnType<typeof quotaService>

/** The quotas of accounts. They are enforced where something is created (`store/accounts/quotas.ts`), and by ingest of each node. */
export function quotaService({ store, clock }: QuotasOptions) {
  return {
    /** Throws not_found. */
    get(account_id: string): Promise<QuotaUse> {
      return readConsistently(store, (db) => readQuotaUse(db, account_id, clock.now()))
    },
  }
}
