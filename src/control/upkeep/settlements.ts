/**
 * Drops detached bindings from the configuration of nodes once they are settled.
 *
 * Owns: when bindings are checked. Does not own: when one is settled (status/settlement.ts), which segments it applies to (delivery).
 * Everything it needs is in the database, so the control process that leads next continues.
 */
import { Periodic } from '#lib/periodic.ts'
import { listUnsettledBindings, settleBindings } from '#store/endpoints/unsettled-bindings.ts'
import { listLags } from '#store/nodes/node-reports.ts'
import { listNodesOnceIn } from '#store/nodes/nodes.ts'
import type { ControlContext } from '../context.ts'
import { settlementLimits } from '../limits.ts'
import { isSettled } from '../status/settlement.ts'

export type SettlementOptions = ControlContext

export function createSettlements(options: SettlementOptions): Periodic {
  const { leadership, clock, logger } = options
  let after = ''
  return new Periodic({
    name: 'settlements',
    intervalMs: settlementLimits.checkMs,
    run: leadership.whileLeading(async () => {
      after = await settleSome(options, after)
    }),
    failure: 'settlement of detached views failed',
    clock,
    logger,
  })
}

/** Returns after which id to continue, so that bindings that stay unsettled for long do not hide others. */
async function settleSome({ store, applyChange, clock }: SettlementOptions, after: string): Promise<string> {
  const nowMs = clock.now()
  const { graceMs, batchMax } = settlementLimits
  const unsettled = await listUnsettledBindings(store.db, nowMs - graceMs, after, batchMax)
  const last = unsettled.at(-1)
  if (last === undefined) return ''
  const lags = await listLags(store.db, [...new Set(unsettled.map(({ endpoint_id }) => endpoint_id))])
  const byEndpoint = Map.groupBy(lags, ({ endpoint_id }) => endpoint_id)
  const regions = [...new Set(unsettled.map(({ region }) => region))]
  const nodes = await listNodesOnceIn(store.db, regions, [...new Set(lags.map(({ node_id }) => node_id))])
  const settled = unsettled.filter((binding) => isSettled(binding, nodes, byEndpoint.get(binding.endpoint_id) ?? [], nowMs))
  if (settled.length > 0) await applyChange((db) => settleBindings(db, settled))
  return unsettled.length < batchMax ? '' : last.id
}
