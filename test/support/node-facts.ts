import { newId } from '#model/id.ts'
import type { NodeFacts, ProcessFacts } from '#store/nodes/nodes.ts'

/** A healthy process whose last heartbeat was at this time. */
export function processFacts(last_seen_at: string, more: Partial<ProcessFacts> = {}): ProcessFacts {
  const heard_at = more.last_seen_at ?? last_seen_at
  const heartbeat = { last_seen_at, heard_at, healthy_at: last_seen_at, applied_epoch: 9, kept_position: null, counted_at: null }
  return { ...heartbeat, healthy: true, reasons: [], disk_full: false, leaving: false, has_copy_store: false, ...more }
}

/** A node of the region loc, without processes, that registered long ago. */
export function nodeFacts(more: Partial<NodeFacts> = {}): NodeFacts {
  const addresses = { ipv4: ['192.0.2.1'], ipv6: [], ingest_address: 'node:1', tls_ports: [] }
  const registered = { registered_at: '2026-11-19T00:00:00.000Z', credential: 'active' as const }
  return { id: newId(), name: null, region: 'loc', ...addresses, ...registered, ingest: null, delivery: null, ...more }
}
