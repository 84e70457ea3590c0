import type { EndpointLag } from '#model/node-protocol.ts'

/** A row of a delivery heartbeat: one sealed segment of nine bytes, unless the test says otherwise. */
export function aLag(endpoint_id: string, more: Partial<EndpointLag> = {}): EndpointLag {
  return {
    ...{ endpoint_id, open_segments: 0, undelivered_segments: 1, parked_segments: 0, quarantined_segments: 0 },
    ...{ undelivered_bytes: 9, oldest_sealed_at: null, blocked_by: null, failing_view: null, closed: false },
    ...{ scrub_findings: 0, scrub_finding: null },
    ...more,
  }
}

/** The row of a node that holds nothing of a draining endpoint and never will. */
export const closedLag = (endpoint_id: string): EndpointLag =>
  aLag(endpoint_id, { undelivered_segments: 0, undelivered_bytes: 0, closed: true })
