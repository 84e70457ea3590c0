import { at, type Examples, ids, page, segment, storedRecord } from './shared.ts'

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
  redriven_at: null,
  download_url: 'https://inlet.example.com/objects/example-lake/raw/events/…?expires=1795168530&signature=…',
}

const counts = { processed: 1_000, accepted: 880, dropped: 103, dlq: 17, failed: 0, rows: 880, duplicates: 12, redriven: 0 }

const all_time = {
  processed: 52_000,
  accepted: 46_000,
  dropped: 5_900,
  dlq: 100,
  failed: 0,
  rows: 46_000,
  duplicates: 600,
  redriven: 0,
}

const rates = { error_rate_pct: 1.7, has_errors: true }

const columnDetail = {
  columns: [
    {
      name: 'amount',
      type: 'DECIMAL(12,2)',
      hidden: false,
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

const ofEndpoint = {
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
  last_error_message: 'the value "yesterday" of column "sent_at" is not of type TIMESTAMP',
  last_updated_at: at,
}

const aggregated = { last_24h: counts, all_time, ...rates, total_error_count_24h: 17 }

export const dataQualityExamples: Examples = {
  listDlqFiles: { response: { ...versionOf, files: [dlqFile], total: 1, may_lack_commits_since: null } },
  listViewMetrics: { response: page({ ...versionOf, endpoints: [ofEndpoint], aggregated }) },
  listDlqRecords: {
    response: {
      items: [
        {
          ...storedRecord,
          endpoint_id: ids.endpoint,
          ...{ error_code: 'cast_failed', column: 'amount', item: null },
          message: 'the value "twelve" of column "amount" is not of type DOUBLE',
        },
      ],
    },
  },
  listDlqReasons: {
    response: {
      items: [
        {
          ...{ error_code: 'cast_failed', column: 'amount', rows: 14 },
          message: 'the value "twelve" of column "amount" is not of type DOUBLE',
          last_ingested_at: '2026-11-20T08:15:30.123456Z',
        },
      ],
      files_read: 2,
      rows_read: 14,
    },
  },
  getViewMetrics: {
    response: {
      ...versionOf,
      endpoints: [{ ...ofEndpoint, ...columnDetail }],
      aggregated: { ...aggregated, ...columnDetail },
    },
  },
}
