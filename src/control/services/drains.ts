/**
 * Removes deleted endpoints once they are drained.
 *
 * Owns: when a draining endpoint is removed. Does not own: rejecting new data and delivering old data, which nodes do.
 * Law: every node of the region with a heartbeat within the hour must first apply the drain, have time to seal open segments, and
 * then report that nothing is left to deliver.
 */
import type { Clock } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Logger } from '#lib/telemetry.ts'
import { segmentLimits } from '#model/limits.ts'
import { type DrainingEndpoint, listDrainingEndpoints, removeDrainedEndpoint } from '#store/endpoints.ts'
import { listLags, type NodeLag } from '#store/node-reports.ts'
import type { NodeFacts } from '#store/nodes.ts'
import type { Store } from '#store/store.ts'
import { controlLimits, drainLimits } from '../limits.ts'
import type { Provisioner } from '../provisioning/provisioner.ts'
import type { ApplyChange } from './changes.ts'

export type DrainsOptions = {
  readonly store: Store
  readonly applyChange: ApplyChange
  readonly provisioner: Provisioner
  readonly clock: Clock
  readonly logger: Logger
}

export function createDrainRemoval(options: DrainsOptions): Periodic {
  const { clock, logger } = options
  return new Periodic({
    name: 'drains',
    intervalMs: controlLimits.drainCheckMs,
    run: () => removeDrained(options),
    failure: 'drained endpoint removal failed',
    clock,
    logger,
  })
}

async function removeDrained({ store, applyChange, provisioner, clock, logger }: DrainsOptions): Promise<void> {
  const draining = await listDrainingEndpoints(store.db, drainLimits.endpointsMax)
  if (draining.length === 0) return
  const { nodes, nowMs } = await provisioner.observe(draining.map(({ region }) => region))
  const ids = draining.map(({ id }) => id)
  const lags = Map.groupBy(await listLags(store.db, ids), ({ endpoint_id }) => endpoint_id)
  for (const endpoint of draining) {
    if (!isDrained(endpoint, nodes.get(endpoint.region) ?? [], lags.get(endpoint.id) ?? [], nowMs)) continue
    if (await applyChange((db) => removeDrainedEndpoint(db, endpoint.id, clock.now()))) {
      logger.info({ endpoint_id: endpoint.id }, 'drained endpoint removed')
    }
  }
}

export function isDrained(
  { draining_at, draining_epoch, segment_max_age_seconds }: DrainingEndpoint,
  nodes: readonly NodeFacts[],
  lags: readonly NodeLag[],
  nowMs: number,
): boolean {
  // Nodes report only sealed segments. An open segment is sealed at this age.
  const ageSeconds = segment_max_age_seconds ?? segmentLimits.maxAgeSecondsDefault
  const sealedMs = Date.parse(draining_at) + (ageSeconds + drainLimits.graceSeconds) * 1000
  if (nowMs < sealedMs) return false
  return nodes.every(({ id, registered_at, ingest, delivery }) => {
    // The node never ingested anything.
    if (ingest === null && delivery === null) return true
    if (ingest === null || delivery === null) return false
    if (ingest.applied_epoch < draining_epoch || delivery.applied_epoch < draining_epoch) return false
    // An ingest process that died has left its segment open. The next one seals it before it registers the node.
    if (Date.parse(ingest.last_seen_at) < sealedMs) return false
    const reportedMs = Math.max(sealedMs, Date.parse(registered_at) + drainLimits.graceSeconds * 1000)
    return Date.parse(delivery.last_seen_at) >= reportedMs && !lags.some((lag) => lag.node_id === id && holdsSegments(lag))
  })
}

function holdsSegments(lag: NodeLag): boolean {
  return lag.undelivered_segments + lag.parked_segments > 0
}
