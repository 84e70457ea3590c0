/**
 * Drops detached bindings from the configuration of nodes once they are settled.
 *
 * Owns: when bindings are checked. Does not own: when one is settled (provisioning/settlement.ts), which segments it applies to (delivery).
 * Everything it needs is in the database, so any control process continues after a restart.
 */
import type { Clock } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Logger } from '#lib/telemetry.ts'
import { listLags } from '#store/node-reports.ts'
import { listNodesOnceIn } from '#store/nodes.ts'
import type { Store } from '#store/store.ts'
import { listUnsettledBindings, settleBindings } from '#store/unsettled-bindings.ts'
import { settlementLimits } from '../limits.ts'
import { isSettled } from '../provisioning/settlement.ts'
import type { ApplyChange } from './changes.ts'

export type SettlementOptions = {
  readonly store: Store
  readonly applyChange: ApplyChange
  readonly clock: Clock
  readonly logger: Logger
}

export function createSettlements(options: SettlementOptions): Periodic {
  const { clock, logger } = options
  return new Periodic({
    name: 'settlements',
    intervalMs: settlementLimits.checkMs,
    run: () => settle(options),
    failure: 'settlement of detached views failed',
    clock,
    logger,
  })
}

async function settle({ store, applyChange, clock }: SettlementOptions): Promise<void> {
  const nowMs = clock.now()
  const unsettled = await listUnsettledBindings(store.db, nowMs - settlementLimits.graceMs)
  if (unsettled.length === 0) return
  const lags = await listLags(store.db, [...new Set(unsettled.map(({ endpoint_id }) => endpoint_id))])
  const byEndpoint = Map.groupBy(lags, ({ endpoint_id }) => endpoint_id)
  const regions = [...new Set(unsettled.map(({ region }) => region))]
  const nodes = await listNodesOnceIn(store.db, regions, [...new Set(lags.map(({ node_id }) => node_id))])
  const settled = unsettled.filter((binding) => isSettled(binding, nodes, byEndpoint.get(binding.endpoint_id) ?? [], nowMs))
  for (let start = 0; start < settled.length; start += settlementLimits.batchMax) {
    const batch = settled.slice(start, start + settlementLimits.batchMax)
    await applyChange((db) => settleBindings(db, batch))
  }
}
