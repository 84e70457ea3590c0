import { Gauge, type Registry } from 'prom-client'
import type { Clock } from '#lib/clock.ts'
import { listLargestUse } from '#store/accounts/account-usage.ts'
import type { Store } from '#store/store.ts'
import { controlLimits } from '../limits.ts'

const values = [
  ['accepted_today_bytes', 'bytes', 'payload bytes accepted on this UTC day'],
  ['records_per_second', 'records_per_second', 'records accepted in a second'],
] as const

/** Registers what accounts send, as nodes last reported. Its readers must be allowed to see all accounts. */
export function registerUsageMetrics(
  registry: Registry,
  { store, clock }: { readonly store: Store; readonly clock: Clock },
): void {
  for (const [name, field, help] of values)
    new Gauge({
      name: `inlet_account_${name}`,
      help: `${help}, of the accounts that sent most today`,
      labelNames: ['account_id'],
      registers: [registry],
      async collect() {
        const largest = await listLargestUse(store.db, clock.now(), controlLimits.accountsShown)
        this.reset()
        for (const use of largest) this.set({ account_id: use.account_id }, use[field])
      },
    })
}
