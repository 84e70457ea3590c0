import { Gauge, type Registry } from 'prom-client'
import { type LossTotals, sumOpenLosses } from '#store/commits/losses.ts'
import type { Store } from '#store/store.ts'

const values = [
  [
    'losses',
    'inlet_losses_unconfirmed',
    'losses with nodes that lost their place, which nobody has confirmed, one for each endpoint, also of deleted ones',
  ],
  [
    'records',
    'inlet_losses_unconfirmed_records',
    'acknowledged records in these losses, at most, as last reported: later ones come on top',
  ],
  ['bytes', 'inlet_losses_unconfirmed_bytes', 'bytes of segments in these losses, at most, as last reported'],
] as const satisfies readonly (readonly [keyof LossTotals, string, string])[]

/** Registers what was lost with nodes that lost their place, and neither recovered nor confirmed. Read on each scrape. */
export function registerLossMetrics(registry: Registry, { store }: { readonly store: Store }): void {
  for (const [field, name, help] of values)
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        this.set((await sumOpenLosses(store.db))[field])
      },
    })
}
