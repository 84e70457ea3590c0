/**
 * Removes deleted endpoints once they are drained.
 *
 * Owns: when drains are checked. Does not own: when an endpoint counts as drained (status/drain.ts), rejecting new data and delivering
 * old data, which nodes do. Everything it needs is in the database, so the control process that leads next continues.
 */
import { Periodic } from '#lib/periodic.ts'
import { listDrainingEndpoints, removeDrainingEndpoint } from '#store/endpoints/endpoints.ts'
import type { ControlContext } from '../context.ts'
import { controlLimits, drainLimits } from '../limits.ts'
import type { EndpointStates } from '../status/endpoint-states.ts'

export type DrainsOptions = ControlContext & {
  readonly endpointStates: EndpointStates
}

export function createDrainRemoval(options: DrainsOptions): Periodic {
  const { leadership, clock, logger } = options
  return new Periodic({
    name: 'drains',
    intervalMs: controlLimits.drainCheckMs,
    run: leadership.whileLeading((signal) => removeDrained(options, signal)),
    failure: 'drained endpoint removal failed',
    clock,
    logger,
  })
}

async function removeDrained(options: DrainsOptions, signal: AbortSignal): Promise<void> {
  const { store, applyChange, endpointStates, clock, logger } = options
  // Every one is checked: drains that are held for long must not hide later ones.
  const seen = new Set<string>()
  for (let from = 0; ; ) {
    const page = await listDrainingEndpoints(store.db, from, seen.size + drainLimits.pageEndpointsMax)
    const draining = page.filter(({ id }) => !seen.has(id))
    if (draining.length === 0) return
    const holds = await endpointStates.listDrainHolds(draining)
    for (const { id, draining_at } of draining) {
      seen.add(id)
      from = draining_at
      if (holds.get(id)?.length !== 0) continue
      signal.throwIfAborted()
      if (await applyChange((db) => removeDrainingEndpoint(db, id, clock.now()))) {
        logger.info({ endpoint_id: id }, 'drained endpoint removed')
      }
    }
  }
}
