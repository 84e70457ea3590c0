import { at, type Examples, ids, page } from './shared.ts'

const totals = { open_segments: 1, sealed_segments: 2, parked_segments: 0, quarantined_segments: 0, bytes: 25_165_824 }

const nodeProcess = { healthy: true, reasons: [], applied_epoch: 42, leaving: false, kept_position: null, last_seen_at: at }

const node = {
  ...{ id: ids.node, name: 'fra-1', region: 'fra', ipv4: ['192.0.2.10'], ipv6: ['2001:db8::10'] },
  ...{
    ingest_address: '192.0.2.10:8081',
    registered_at: at,
    join_token_id: ids.joinToken,
    version: '0.1.0',
    disk: { free_bytes: 412_000_000_000, total_bytes: 500_000_000_000 },
    credential: 'active',
    healthy: true,
    ingest: nodeProcess,
    delivery: nodeProcess,
    segments: totals,
  },
  unowned: { open_segments: 0, sealed_segments: 0, parked_segments: 0, quarantined_segments: 0, bytes: 0 },
  ...{ blocked_logs: 0, scrub_findings: 0 },
}

const joinToken = {
  ...{ id: ids.joinToken, name: 'frankfurt, rack 4', region: 'fra', status: 'active', uses: 0, uses_max: 1 },
  ...{ created_at: at, expires_at: '2026-11-21T08:15:30.123Z', revoked_at: null },
}

const nodeLog = {
  ...{
    endpoint_id: ids.endpoint,
    endpoint_name: 'checkout events',
    account_id: ids.account,
    owner: 'active',
    ...totals,
    records: 4310,
    first_segment_seq: 42,
    oldest_sealed_at: at,
  },
  ...{ blocked_by: null, append_blocked_by: null, closed: false, scrub_findings: 0, scrub_finding: null },
}

const nodeRemoval = {
  ...{ node_id: ids.node, region: 'fra', reported_at: at, segments: totals, endpoints: 1, logs: [nodeLog], losses: 1 },
  note: `the node is silent since ${at}: what it accepted after its last report is not counted`,
}

export const nodesExamples: Examples = {
  createJoinToken: {
    request: { name: 'frankfurt, rack 4', region: 'fra', uses_max: 1, ttl: '24h' },
    response: {
      ...joinToken,
      join_token: 'ing_join_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY.Nw_ylmtlKDdDtKpPO1aCj9eZkHuBo95L7yAX9u4pt8w',
      root_sha256: '37:0F:F2:96:6B:65:28:37:43:B4:AA:4F:3B:56:82:8F:D7:99:90:7B:81:A3:DE:4B:EF:20:17:F6:EE:29:B7:CC',
    },
  },
  listJoinTokens: { response: page(joinToken) },
  revokeJoinToken: {},
  listNodes: { response: page(node) },
  changeNode: { request: { name: 'fra-1' }, response: node },
  removeNode: { response: nodeRemoval },
  revokeNodeCredential: {},
  listNodeSegments: { response: page(nodeLog) },
}
