import { at, type Examples, ids } from './shared.ts'

const seriesWindow = { since: '2026-11-20T07:15:40.000Z', until: at, step_seconds: 10 }

export const seriesExamples: Examples = {
  getEndpointSeries: {
    response: {
      endpoint_id: ids.endpoint,
      ...seriesWindow,
      buckets: [
        {
          at: '2026-11-20T08:15:00.000Z',
          records: 12_000,
          bytes: 4_800_000,
          requests: 240,
          refused: { quota_exceeded: 3 },
          ack_latency_ms: { p50: 2.46, p99: 14.7 },
          commits: 1,
          committed_records: 11_400,
          commit_lag_ms: { p50: 1_210, max: 1_210 },
          undelivered_bytes_max: 2_400_000,
        },
      ],
    },
  },
  getViewSeries: {
    response: {
      view_name: 'orders',
      endpoint_id: null,
      ...seriesWindow,
      versions: [
        {
          view_id: ids.view,
          view_version: 1,
          buckets: [
            { at: '2026-11-20T08:15:00.000Z', accepted: 11_200, dropped: 150, dlq: 50, failed: 0, rows: 11_200, duplicates: 0 },
          ],
        },
      ],
    },
  },
}
