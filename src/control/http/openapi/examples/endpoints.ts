import { at, type Examples, ids, page, segment, storedRecord } from './shared.ts'

const mqtt_config = { enabled: true, max_connections: 1000, keepalive_max_s: 300, qos_max: 1 }

const endpoint = {
  id: ids.endpoint,
  name: 'checkout events',
  region: 'fra',
  status: 'active',
  status_reasons: [],
  lag: {
    open_segments: 1,
    undelivered_segments: 1,
    parked_segments: 0,
    quarantined_segments: 0,
    undelivered_bytes: 8_388_608,
    oldest_sealed_at: '2026-11-20T08:15:30.123Z',
    oldest_age_seconds: 1.5,
  },
  destination_id: ids.destination,
  destination_name: 'lake',
  destination_status: 'valid',
  created_at: at,
  dns_ipv4: ['192.0.2.10'],
  dns_ipv6: ['2001:db8::10'],
  ingest_host: 'k3v9x2m7q1za.fra.ingest.example.com',
  ingest_url: `https://k3v9x2m7q1za.fra.ingest.example.com/v1/ingest?endpoint=${ids.endpoint}`,
  segment_bytes: 67_108_864,
  segment_max_age_seconds: 60,
  output_formats: ['parquet_views', 'parquet'],
  mqtt_config,
  compaction: { period: 'day', except_views: [], remove_after_hours: 168 },
  kept_headers: ['x-hub-signature-256', 'x-github-event', 'x-github-delivery'],
  kept_fields: ['address_masked', 'key_name'],
  copies: 1,
}

const forcedDeletion = {
  abandoned: [
    {
      node_id: ids.node,
      region: 'fra',
      reported_at: at,
      open_segments: 0,
      sealed_segments: 2,
      parked_segments: 1,
      quarantined_segments: 0,
      bytes: 25_165_824,
      is_current: false,
      note: `delivery of the node is silent since ${at}: its disk may hold other segments than these`,
    },
  ],
}

const deploying = {
  ...endpoint,
  status: 'deploying',
  status_reasons: ['no node serves region fra; regions with nodes: nyc, sfo'],
  dns_ipv4: [],
  dns_ipv6: [],
}

const delivered = {
  id: `${ids.node}-k3v9x2m7q1-000000000042`,
  node_id: ids.node,
  seq: 42,
  records: 51_207,
  records_damaged: 0,
  wal_bytes: 67_104_233,
  duration_ms: 812,
  sealed_at: '2026-11-20T08:15:29.011Z',
  uploaded_at: at,
  bucket: 'example-lake',
}

const artifacts = {
  parquet: { key: `raw/events/${ids.endpoint}/parquet/${segment}.parquet`, bytes: 9_120_334, sha256: '3a7b'.repeat(16) },
  'views/orders/v1': {
    key: `raw/events/${ids.endpoint}/views/orders/v1/${segment}.parquet`,
    bytes: 4_030_113,
    sha256: '91fe'.repeat(16),
  },
}

const commit = { ...delivered, artifacts }

export const endpointsExamples: Examples = {
  createEndpoint: {
    request: {
      region: 'fra',
      name: 'checkout events',
      destination_id: ids.destination,
      output_formats: ['parquet_views', 'parquet'],
      mqtt_config: {},
      compaction: { period: 'day' },
      kept_headers: ['X-Hub-Signature-256', 'X-GitHub-Event', 'X-GitHub-Delivery'],
      kept_fields: ['address_masked', 'key_name'],
    },
    response: deploying,
  },
  listEndpoints: { response: page(endpoint) },
  getEndpoint: { response: endpoint },
  changeEndpoint: {
    request: { segment_max_age_seconds: 60, mqtt_config: null },
    response: { ...endpoint, mqtt_config: null, warnings: [] },
  },
  deleteEndpoint: { response: forcedDeletion },
  pauseEndpoint: { response: { ...endpoint, status: 'paused', status_reasons: ['the endpoint is paused'] } },
  resumeEndpoint: { response: endpoint },
  listRegions: { response: { items: [{ region: 'fra' }, { region: 'nyc' }] } },
  sendTestEvent: {
    request: { record: '{"type":"order","amount":12.5}' },
    response: {
      url: `https://k3v9x2m7q1za.fra.ingest.example.com/v1/ingest?endpoint=${ids.endpoint}`,
      record: '{"type":"order","amount":12.5}',
      ...{ sent_at: at, acknowledged_after_ms: 3.217, node_id: ids.node, segment_seq: 42 },
    },
  },
  listCommitFiles: {
    response: {
      ...delivered,
      files: Object.entries(artifacts).map(([kind, file]) => ({
        ...{ kind, ...file },
        download_url: `https://inlet.example.com/objects/example-lake/${file.key}?expires=1795168530&signature=…`,
      })),
    },
  },
  listCommits: { response: { items: [commit], next_cursor: null, may_lack_commits_since: null } },
  listRecords: { response: { items: [{ ...storedRecord, commit_id: commit.id }] } },
}
