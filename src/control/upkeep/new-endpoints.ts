/** Notices that an endpoint is served under its name although nobody reads its status: whatever is missing later degrades it. */
import type { Clock } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Leadership } from '#store/cluster/leadership.ts'
import { listUnprovisionedEndpoints } from '#store/endpoints/endpoints.ts'
import type { ControlContext } from '../context.ts'
import { newEndpointLimits } from '../limits.ts'
import type { EndpointStates } from '../status/endpoint-states.ts'

export type NewEndpointsOptions = Pick<ControlContext, 'store' | 'clock' | 'logger'> & {
  readonly leadership: Pick<Leadership, 'whileLeading'>
  readonly endpointStates: Pick<EndpointStates, 'computeStates'>
}

export function createNewEndpointChecks({ store, leadership, endpointStates, clock, logger }: NewEndpointsOptions): Service {
  return new Periodic({
    name: 'check of new endpoints',
    intervalMs: newEndpointLimits.tickMs,
    run: leadership.whileLeading(withRest(clock, () => noteProvisioned({ store, endpointStates }))),
    failure: 'check of new endpoints failed',
    recovery: 'check of new endpoints restored',
    clock,
    logger,
  })
}

export async function noteProvisioned({
  store,
  endpointStates,
}: Pick<NewEndpointsOptions, 'store' | 'endpointStates'>): Promise<void> {
  const endpoints = await listUnprovisionedEndpoints(store.db, newEndpointLimits.unprovisionedMax)
  if (endpoints.length > 0) await endpointStates.computeStates(endpoints)
}

/** Leaves out runs so that `work` takes a part of the time at most: many endpoints may wait for many nodes. */
function withRest(clock: Clock, work: () => Promise<void>): () => Promise<void> {
  let restedAtMs = 0
  return async () => {
    const startedAtMs = clock.monotonic()
    if (startedAtMs < restedAtMs) return
    await work()
    const endedAtMs = clock.monotonic()
    restedAtMs = endedAtMs + (endedAtMs - startedAtMs) * newEndpointLimits.restFactor
  }
}
