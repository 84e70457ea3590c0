import { actor, at, type Examples, ids, page } from './shared.ts'

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
  counters: { processed: 320_000, accepted: 301_200, dropped: 18_700, dlq: 100, failed: 0, rows: 301_200, duplicates: 700 },
  created_by: actor,
  created_by_name: 'Ada Lovelace',
  created_at: at,
  started_at: at,
  finished_at: null,
  last_error: null,
}

const reasons = [{ outcome: 'skipped', reason: 'the segment already has an output of this view version', segments: 4 }]

export const jobsExamples: Examples = {
  backfillView: { request: { endpoint_id: ids.endpoint, from: '2026-11-01T00:00:00.000Z' }, response: job },
  redriveView: {
    request: { endpoint_id: ids.endpoint, from_version: 1 },
    response: { ...job, kind: 'redrive', from_version: 1, from: null },
  },
  compactEndpoint: {
    request: { period: 'day', from: '2026-11-01T00:00:00.000Z' },
    response: {
      ...{ ...job, kind: 'compaction', view_id: null, view_name: null, view_version: null },
      segments: { total: 38, done: 12, skipped: 0, failed: 0 },
      counters: { processed: 1_320_000, accepted: 1_320_000, dropped: 0, dlq: 0, failed: 0, rows: 1_320_000, duplicates: 0 },
    },
  },
  listJobs: { response: page(job) },
  getJob: { response: { ...job, reasons } },
  pauseJob: { response: { ...job, status: 'paused' } },
  resumeJob: { response: job },
  cancelJob: { response: { ...job, status: 'canceled', finished_at: at } },
}
