/**
 * Keeps heartbeats within the bounds of the protocol, whatever is on the disk of the node. A directory that is not named like an endpoint
 * is left out, because control would reject the whole report.
 */
import { Id } from '#model/id.ts'
import { type BlockedLog, type EndpointLag, reportLimits } from '#model/node-protocol.ts'

/** Returns the lags that a heartbeat may carry. Logs that only have an open segment, or nothing, are left out first. */
export function boundLags(lags: readonly EndpointLag[]): EndpointLag[] {
  const named = lags.filter(isNamedById)
  const kept = named.length <= reportLimits.logsMax ? named : named.toSorted((a, b) => urgency(b) - urgency(a))
  return kept
    .slice(0, reportLimits.logsMax)
    .map((lag) => ({ ...lag, blocked_by: lag.blocked_by === null ? null : boundReason(lag.blocked_by) }))
}

export function boundBlocked(blocked: readonly BlockedLog[]): BlockedLog[] {
  return blocked
    .filter(isNamedById)
    .slice(0, reportLimits.logsMax)
    .map(({ endpoint_id, reason }) => ({ endpoint_id, reason: boundReason(reason) }))
}

export function boundReasons(reasons: readonly string[]): string[] {
  return reasons.slice(0, reportLimits.reasonsMax).map(boundReason)
}

function isNamedById({ endpoint_id }: { readonly endpoint_id: string }): boolean {
  return Id.safeParse(endpoint_id).success
}

function urgency({ closed, blocked_by, parked_segments, quarantined_segments, undelivered_segments }: EndpointLag): number {
  if (parked_segments > 0 || quarantined_segments > 0 || blocked_by !== null) return 3
  if (closed) return 2
  return undelivered_segments > 0 ? 1 : 0
}

function boundReason(reason: string): string {
  return reason.length <= reportLimits.reasonCharsMax ? reason : `${reason.slice(0, reportLimits.reasonCharsMax - 1)}…`
}
