/**
 * An example of every request and every response in the description, but errors (openapi-problems.ts).
 *
 * Law: the service would accept or return each of them. The contract tests check them against the schemas.
 */
import { effectiveQuotas } from '#model/quota.ts'
import type { RouteScope } from './authenticate.ts'
import { referToProblems } from './openapi-problems.ts'
import { bucketPolicy, trustPolicy } from './services/destination-policies.ts'

const at = '2026-11-20T08:15:30.123Z'
const id = (last: string) => `4f8c1f0e-6a53-4c0e-9d3b-${last.padStart(12, '0')}`
const ids = {
  endpoint: id('e1'),
  destination: id('d1'),
  view: id('a1'),
  draft: id('a2'),
  binding: id('b1'),
  key: id('c1'),
  node: id('f1'),
  account: id('ac'),
  job: id('51'),
  joinToken: id('70'),
}
const actor = `key:${ids.key}`

const definition = {
  columns: [
    { name: 'event_type', type: 'VARCHAR', path: '$.type', required: true },
    { name: 'at', type: 'TIMESTAMP', path: '$.at', cast_failures: 'dlq' },
    { name: 'amount', type: 'DOUBLE', path: '$.order.amount' },
  ],
  filters: [{ condition: "event_type != 'heartbeat'", description: 'skip heartbeats' }],
}

const target = {
  name: 'lake',
  bucket: 'example-lake',
  prefix: 'raw/events',
  region: 'eu-central-1',
  role_arn: 'arn:aws:iam::123456789012:role/ingest',
  kms_key_arn: null,
  path_style: false,
}
const destination = {
  id: ids.destination,
  ...target,
  external_id: 'inlet-0aZ9bY8cX7dW6eV5fU4gT3hS2iR1jQ0k',
  status: 'valid',
  validated_at: at,
  last_error: null,
  created_at: at,
  updated_at: at,
  trust_policy: trustPolicy({ external_id: 'inlet-0aZ9bY8cX7dW6eV5fU4gT3hS2iR1jQ0k' }, 'arn:aws:iam::210987654321:role/inlet'),
  bucket_policy: bucketPolicy(target),
}
const pending = { ...destination, status: 'pending', validated_at: null }

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
  segment_bytes: 67_108_864,
  segment_max_age_seconds: 60,
  output_formats: ['parquet_views', 'parquet'],
  mqtt_config,
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
const totals = { open_segments: 1, sealed_segments: 2, parked_segments: 0, quarantined_segments: 0, bytes: 25_165_824 }
const nodeProcess = { healthy: true, reasons: [], applied_epoch: 42, leaving: false, last_seen_at: at }
const node = {
  ...{ id: ids.node, region: 'fra', ipv4: ['192.0.2.10'], ipv6: ['2001:db8::10'], ingest_address: '192.0.2.10:8081' },
  ...{
    registered_at: at,
    join_token_id: ids.joinToken,
    credential: 'active',
    healthy: true,
    ingest: nodeProcess,
    delivery: nodeProcess,
    segments: totals,
  },
  unowned: { open_segments: 0, sealed_segments: 0, parked_segments: 0, quarantined_segments: 0, bytes: 0 },
  blocked_logs: 0,
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
    oldest_sealed_at: at,
  },
  ...{ blocked_by: null, append_blocked_by: null, closed: false },
}
const nodeRemoval = {
  ...{ node_id: ids.node, region: 'fra', reported_at: at, segments: totals, endpoints: 1, logs: [nodeLog] },
  note: `the node is silent since ${at}: what it accepted after its last report is not counted`,
}
const deploying = { ...endpoint, status: 'deploying', status_reasons: ['no node serves region fra'], dns_ipv4: [], dns_ipv6: [] }

const view = {
  id: ids.view,
  name: 'orders',
  version: 1,
  definition,
  format: 'json',
  status: 'published',
  description: 'Orders as they arrive',
  tags: ['sales'],
  created_by: actor,
  created_at: at,
  published_at: at,
}
const draft = { ...view, status: 'draft', published_at: null }
const next = { ...draft, id: ids.draft, version: 2 }

const attachment = { is_required: false, activated_at: at, canary_start_ts: null }
const binding = {
  id: ids.binding,
  endpoint_id: ids.endpoint,
  endpoint_name: 'checkout events',
  view_id: ids.view,
  view_name: 'orders',
  view_version: 1,
  ...attachment,
  activated_by: actor,
  deactivated_at: null,
  status: 'active',
}

const key = {
  id: ids.key,
  name: 'warehouse loader',
  prefix: 'ing_live_aB3d',
  scopes: ['ingest', 'metrics'],
  created_at: at,
  revoked_at: null,
}

const { endpoints, views, view_versions, api_keys, bytes_per_day, records_per_second } = effectiveQuotas({})
const quotaUse = {
  account_id: ids.account,
  weight: 1,
  quotas: {
    endpoints: { limit: endpoints, used: 3 },
    views: { limit: views, used: 2 },
    view_versions: { limit: view_versions, used: 7 },
    api_keys: { limit: api_keys, used: 4 },
    bytes_per_day: { limit: bytes_per_day, used: 1_254_000_000, resets_at: '2026-11-21T00:00:00.000Z' },
    records_per_second: { limit: records_per_second, used: 310 },
  },
}
const account = { id: ids.account, name: 'acme', status: 'active', weight: 1, quotas: effectiveQuotas({}), created_at: at }
const first_key = {
  ...key,
  name: 'first key',
  scopes: ['ingest', 'metrics', 'admin'],
  api_key: 'ing_live_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY',
}

const segment = 'dt=2026-11-20/4f8c1f0e-k3v9x2m7q1-000000000042'
const commit = {
  id: `${ids.node}-k3v9x2m7q1-000000000042`,
  node_id: ids.node,
  seq: 42,
  records_damaged: 0,
  wal_bytes: 67_104_233,
  duration_ms: 812,
  uploaded_at: at,
  artifacts: {
    parquet: { key: `raw/events/${ids.endpoint}/parquet/${segment}.parquet`, bytes: 9_120_334 },
    'views/orders/v1': { key: `raw/events/${ids.endpoint}/views/orders/v1/${segment}.parquet`, bytes: 4_030_113 },
  },
}

const dlqFile = {
  endpoint_id: ids.endpoint,
  endpoint_name: 'checkout events',
  segment_seq: 42,
  s3_key: `raw/events/${ids.endpoint}/dlq/orders/v1/${segment}.ndjson.gz`,
  s3_bucket: 'example-lake',
  region: 'eu-central-1',
  bytes: 2_311,
  rows: 17,
  created_at: at,
  download_url: 'https://inlet.example.com/objects/example-lake/raw/events/…?expires=1795168530&signature=…',
}

const counts = { processed: 1_000, accepted: 880, dropped: 103, dlq: 17, failed: 0 }
const all_time = { processed: 52_000, accepted: 46_000, dropped: 5_900, dlq: 100, failed: 0 }
const rates = { error_rate_pct: 1.7, has_errors: true }
const columnDetail = {
  columns: [
    {
      name: 'amount',
      type: 'DECIMAL(12,2)',
      last_24h: {
        ...{ values: 871, nulls: 9, null_rate_pct: 1.02, cast_failures: 20, cast_nulls: 3, cast_dlq: 17, missing: 0 },
        ...{ min: '0.50', max: '1290.00' },
      },
      all_time: {
        ...{ values: 45_900, nulls: 100, null_rate_pct: 0.22, cast_failures: 103, cast_nulls: 3, cast_dlq: 100, missing: 0 },
        ...{ min: '0.01', max: '9800.00' },
      },
    },
  ],
  unmapped_paths: [
    {
      path: '$.order.coupon',
      types: ['string', 'object'],
      ...{ records: 41, sampled_records: 600, seen_pct: 6.83, last_seen_at: at },
    },
  ],
}
const versionOf = { view_id: ids.view, view_name: 'orders', view_version: 1 }

const job = {
  id: ids.job,
  kind: 'backfill',
  status: 'running',
  ...{ view_id: ids.draft, view_name: 'orders', view_version: 2, from_version: null },
  endpoint_id: ids.endpoint,
  endpoint_name: 'checkout events',
  from: '2026-11-01T00:00:00.000Z',
  to: null,
  segments: { total: 1_440, done: 320, skipped: 4, failed: 0 },
  counters: { processed: 320_000, accepted: 301_200, dropped: 18_700, dlq: 100, failed: 0 },
  created_by: actor,
  created_at: at,
  started_at: at,
  finished_at: null,
  last_error: null,
}
const reasons = [{ outcome: 'skipped', reason: 'the segment already has an output of this view version', segments: 4 }]

const auditEvent = {
  ...{ id: id('a7'), at, account_id: ids.account, actor, address: '203.0.113.7', operation: 'createKey', resource_id: ids.key },
  ...{ result: 'succeeded', status: 201, error: null, request_id: id('a8'), unrecorded: 0 },
}

const page = (item: unknown) => ({ items: [item], total: 1, limit: 50, offset: 0, next_offset: null })

export type Example = { readonly request?: unknown; readonly response?: unknown }

/** By operation id. Operations without a response body have none. */
export const examples: Readonly<Record<string, Example>> = {
  exchangeToken: {
    request: { api_key: 'ing_live_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY', scope: 'admin', ttl: '15m' },
    response: { access_token: 'eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.…', token_type: 'Bearer', expires_in: 900 },
  },
  createAccount: { request: { name: 'acme' }, response: { ...account, first_key } },
  listAccounts: { response: page(account) },
  getAccount: { response: account },
  changeAccount: { request: { status: 'suspended' }, response: { ...account, status: 'suspended' } },
  getAccountQuotas: { response: quotaUse },
  getQuotas: { response: quotaUse },
  createKey: {
    request: { name: 'warehouse loader', scopes: ['ingest', 'metrics'] },
    response: { ...key, api_key: 'ing_live_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY' },
  },
  listKeys: { response: page(key) },
  revokeKey: { response: { ...key, revoked_at: at } },
  createDestination: {
    request: {
      name: target.name,
      bucket: target.bucket,
      prefix: target.prefix,
      region: target.region,
      role_arn: target.role_arn,
    },
    response: pending,
  },
  listDestinations: { response: page({ ...destination, ref_count: 1 }) },
  getDestination: { response: { ...destination, ref_count: 1 } },
  changeDestination: { request: { prefix: 'raw/events' }, response: pending },
  deleteDestination: {},
  validateDestination: { response: destination },
  createEndpoint: {
    request: {
      region: 'fra',
      name: 'checkout events',
      destination_id: ids.destination,
      output_formats: ['parquet_views', 'parquet'],
      mqtt_config: {},
    },
    response: deploying,
  },
  listEndpoints: { response: page(endpoint) },
  getEndpoint: { response: endpoint },
  changeEndpoint: { request: { segment_max_age_seconds: 60, mqtt_config: null }, response: { ...endpoint, mqtt_config: null } },
  deleteEndpoint: { response: forcedDeletion },
  pauseEndpoint: { response: { ...endpoint, status: 'paused', status_reasons: ['the endpoint is paused'] } },
  resumeEndpoint: { response: endpoint },
  listCommits: { response: { items: [commit], next_cursor: null } },
  createView: {
    request: { name: 'orders', definition, description: 'Orders as they arrive', tags: ['sales'] },
    response: draft,
  },
  listViews: { response: page({ ...view, usage_count: 1 }) },
  getView: {
    response: {
      ...view,
      versions: [{ id: ids.view, version: 1, status: 'published', published_at: at, created_by: actor }],
      endpoints: [{ id: ids.endpoint, endpoint_name: 'checkout events', region: 'fra', binding_id: ids.binding, ...attachment }],
    },
  },
  changeView: { request: { description: 'Orders as they arrive', tags: ['sales'] }, response: draft },
  deleteView: {},
  publishView: { response: view },
  createViewVersion: { request: { copy_from_version: 1 }, response: next },
  archiveView: { response: { ...view, status: 'archived' } },
  previewView: {
    request: {
      definition,
      samples: ['{"type":"order","at":"2026-11-20T08:15:30Z","order":{"amount":12.5}}', '{"type":"order","at":"yesterday"}'],
    },
    response: {
      success: false,
      rows: [{ event_type: 'order', at: '2026-11-20T08:15:30.000000Z', amount: 12.5 }],
      columns: [
        { name: 'event_type', type: 'VARCHAR', nullCount: 0, totalCount: 1, nullRate: 0, sampleValues: ['order'] },
        {
          name: 'at',
          type: 'TIMESTAMP',
          nullCount: 0,
          totalCount: 1,
          nullRate: 0,
          sampleValues: ['2026-11-20T08:15:30.000000Z'],
        },
        { name: 'amount', type: 'DOUBLE', nullCount: 0, totalCount: 1, nullRate: 0, sampleValues: [12.5] },
      ],
      rowCount: 1,
      counts: { processed: 2, accepted: 1, dropped: 0, dlq: 1, failed: 0 },
      compiledSql: 'SELECT value_0 AS event_type, …',
      warnings: [],
      errors: [
        {
          sample_index: 1,
          column: 'at',
          code: 'cast_failed',
          message: 'the value "yesterday" of column "at" is not of type TIMESTAMP',
        },
      ],
      executionTimeMs: 21.4,
    },
  },
  suggestView: {
    request: { samples: ['{"type":"order","order":{"amount":12.5}}', '{"type":"order","order":{}}'] },
    response: {
      definition: {
        columns: [
          { name: 'type', type: 'VARCHAR', path: '$.type' },
          { name: 'order_amount', type: 'DOUBLE', path: '$.order.amount' },
        ],
      },
      warnings: [],
      sample_count: 2,
      columns: [
        { name: 'type', path: '$.type', type: 'VARCHAR', found: 2, nulls: 0, missing: 0 },
        { name: 'order_amount', path: '$.order.amount', type: 'DOUBLE', found: 1, nulls: 0, missing: 1 },
      ],
    },
  },
  listDlqFiles: { response: { ...versionOf, files: [dlqFile], total: 1 } },
  getViewMetrics: {
    response: {
      ...versionOf,
      endpoints: [
        {
          endpoint_id: ids.endpoint,
          endpoint_name: 'checkout events',
          last_24h: counts,
          all_time,
          ...rates,
          held_since: null,
          error_count_24h: 17,
          total_error_count: 100,
          last_error_at: at,
          last_error_code: 'cast_failed',
          last_error_message: 'the value "yesterday" of column "at" is not of type TIMESTAMP',
          last_updated_at: at,
          ...columnDetail,
        },
      ],
      aggregated: { last_24h: counts, all_time, ...rates, total_error_count_24h: 17, ...columnDetail },
    },
  },
  backfillView: { request: { endpoint_id: ids.endpoint, from: '2026-11-01T00:00:00.000Z' }, response: job },
  redriveView: {
    request: { endpoint_id: ids.endpoint, from_version: 1 },
    response: { ...job, kind: 'redrive', from_version: 1, from: null },
  },
  listAuditEvents: { response: { items: [auditEvent], next_cursor: auditEvent.id } },
  listInstallationAuditEvents: { response: { items: [auditEvent], next_cursor: null } },
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
  removeNode: { response: nodeRemoval },
  revokeNodeCredential: {},
  listNodeSegments: { response: page(nodeLog) },
  listJobs: { response: page(job) },
  getJob: { response: { ...job, reasons } },
  pauseJob: { response: { ...job, status: 'paused' } },
  resumeJob: { response: job },
  cancelJob: { response: { ...job, status: 'canceled', finished_at: at } },
  attachView: { request: { view_id: ids.view, is_required: false }, response: { ...binding, warnings: [] } },
  listBindings: { response: { items: [binding] } },
  detachView: {},
}

type Content = Record<string, { schema?: unknown; example?: unknown; examples?: Record<string, { readonly $ref: string }> }>
export type DescribedOperation = {
  readonly operationId: string
  readonly 'x-scope': RouteScope
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}

/** Adds the examples to an operation of the OpenAPI description. */
export function addExamples({ operationId, requestBody, responses }: DescribedOperation, isChange: boolean): void {
  const { request, response } = examples[operationId] ?? {}
  for (const media of Object.values(requestBody?.content ?? {})) media.example = request
  for (const [status, { content = {} }] of Object.entries(responses)) {
    for (const media of Object.values(content)) {
      if (Number(status) < 400) media.example = response
      else {
        media.examples = referToProblems(Number(status), { operationId, isChange })
      }
    }
  }
}
