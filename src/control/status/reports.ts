/** Interprets the reports of nodes, for status and drains alike. */
import { countNoun } from '#lib/count-noun.ts'
import { safeSum } from '#lib/safe-sum.ts'
import type { DeliveryLag } from '#model/endpoint.ts'
import { countSegments, type EndpointLag } from '#model/node-protocol.ts'
import { hasRecentHeartbeat } from '#naming/serving-nodes.ts'
import type { NodeLag } from '#store/nodes/node-reports.ts'
import type { NodeFacts } from '#store/nodes/nodes.ts'

/** Says whether a report can be all that a node holds of an endpoint. Only a closed log gets no more data after the report. */
export function judgeReport(
  { delivery }: Pick<NodeFacts, 'delivery'>,
  lag: EndpointLag | undefined,
  nowMs: number,
): { readonly is_current: boolean; readonly note: string | null } {
  if (delivery === null)
    return { is_current: false, note: 'delivery of the node has never reported: what its disk holds is not known' }
  const at = delivery.last_seen_at
  if (!hasRecentHeartbeat(delivery, nowMs))
    return { is_current: false, note: `delivery of the node is silent since ${at}: its disk may hold other segments than these` }
  if (lag?.closed !== true)
    return { is_current: false, note: `the log was still open at ${at}: data that the node accepted since then is not counted` }
  return { is_current: true, note: null }
}

export function holdsSegments(lag: EndpointLag): boolean {
  return countSegments(lag) > 0
}

/** Returns for example `3 segments (1 open, 2 parked; 900 bytes)`. */
export function describeSegments(lag: EndpointLag): string {
  const states = [
    [lag.open_segments, 'open'],
    [lag.undelivered_segments, 'to deliver'],
    [lag.parked_segments, 'parked'],
    [lag.quarantined_segments, 'quarantined'],
  ] as const
  const counts = states.flatMap(([count, state]) => (count === 0 ? [] : [`${count} ${state}`]))
  return `${countNoun(countSegments(lag), 'segment')} (${counts.join(', ')}; ${lag.undelivered_bytes} bytes)`
}

/** The sum over all nodes, also those that are gone: what they hold is not in the bucket. */
export function sumLags(lags: readonly NodeLag[], nowMs: number): DeliveryLag {
  const oldest = lags.flatMap(({ oldest_sealed_at }) => oldest_sealed_at ?? []).toSorted()[0] ?? null
  const sum = (read: (lag: NodeLag) => number) => safeSum(lags.map(read))
  return {
    open_segments: sum((lag) => lag.open_segments),
    undelivered_segments: sum((lag) => lag.undelivered_segments + lag.parked_segments),
    parked_segments: sum((lag) => lag.parked_segments),
    quarantined_segments: sum((lag) => lag.quarantined_segments),
    undelivered_bytes: sum((lag) => lag.undelivered_bytes),
    oldest_sealed_at: oldest,
    oldest_age_seconds: oldest === null ? null : Math.max(0, nowMs - Date.parse(oldest)) / 1000,
  }
}
