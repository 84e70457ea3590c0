import { attachment } from './bindings.ts'
import { actor, at, type Examples, ids, page, segment } from './shared.ts'

const definition = {
  columns: [
    { name: 'event_type', type: 'VARCHAR', path: '$.type', required: true },
    { name: 'sent_at', type: 'TIMESTAMP', path: '$.at', cast_failures: 'dlq' },
    { name: 'amount', type: 'DOUBLE', path: '$.order.amount' },
    { name: 'tag', type: 'VARCHAR', path: '$.tag' },
  ],
  filters: [{ condition: "event_type != 'heartbeat'", description: 'skip heartbeats' }],
}

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

const reserved = {
  path: 'definition.columns.3.name',
  code: 'reserved_word',
  message: 'is a reserved word in Redshift: queries there must quote it. Another name, such as tag_, needs no quotes',
}

const next = { ...draft, id: ids.draft, version: 2 }

const comparedRecord = {
  ...{ endpoint_id: ids.endpoint, commit_id: segment, segment_seq: 41, record_index: 7 },
  ...{ record: '{"type":"order","at":"yesterday","tag":"VIP"}', record_base64: null, is_cut: false },
}

export const viewsExamples: Examples = {
  createView: {
    request: { name: 'orders', definition, description: 'Orders as they arrive', tags: ['sales'] },
    response: { ...draft, warnings: [] },
  },
  listViews: { response: page({ ...view, usage_count: 1 }) },
  getView: {
    response: {
      ...view,
      versions: [{ id: ids.view, version: 1, status: 'published', published_at: at, created_by: actor }],
      endpoints: [{ id: ids.endpoint, endpoint_name: 'checkout events', region: 'fra', binding_id: ids.binding, ...attachment }],
      shadows: [],
      stopped_canaries: [],
    },
  },
  changeView: { request: { description: 'Orders as they arrive', tags: ['sales'] }, response: { ...draft, warnings: [] } },
  deleteView: {},
  publishView: { response: { ...view, warnings: [reserved] } },
  createViewVersion: { request: { copy_from_version: 1 }, response: next },
  archiveView: { response: { ...view, status: 'archived' } },
  previewView: {
    request: {
      definition,
      samples: [
        '{"type":"order","at":"2026-11-20T08:15:30Z","order":{"amount":12.5},"tag":"vip"}',
        '{"type":"order","at":"yesterday"}',
      ],
    },
    response: {
      success: false,
      rows: [{ event_type: 'order', sent_at: '2026-11-20T08:15:30.000000Z', amount: 12.5, tag: 'vip' }],
      columns: [
        { name: 'event_type', type: 'VARCHAR', nullCount: 0, totalCount: 1, nullRate: 0, sampleValues: ['order'] },
        {
          name: 'sent_at',
          type: 'TIMESTAMP',
          nullCount: 0,
          totalCount: 1,
          nullRate: 0,
          sampleValues: ['2026-11-20T08:15:30.000000Z'],
        },
        { name: 'amount', type: 'DOUBLE', nullCount: 0, totalCount: 1, nullRate: 0, sampleValues: [12.5] },
        { name: 'tag', type: 'VARCHAR', nullCount: 0, totalCount: 1, nullRate: 0, sampleValues: ['vip'] },
      ],
      rowCount: 1,
      counts: { processed: 2, accepted: 1, dropped: 0, dlq: 1, failed: 0, duplicates: 0 },
      compiledSql: 'SELECT value_0 AS event_type, …',
      warnings: [{ sample_index: null, column: 'tag', ...reserved, message: `"tag" ${reserved.message}` }],
      errors: [
        {
          sample_index: 1,
          column: 'at',
          code: 'cast_failed',
          message: 'the value "yesterday" of column "sent_at" is not of type TIMESTAMP',
        },
      ],
      executionTimeMs: 21.4,
    },
  },
  compareView: {
    request: { definition },
    response: {
      view_name: 'orders',
      since: at,
      records_stored: 48_000,
      records_read: 12_000,
      is_complete: false,
      bounded_by: ['time', 'unread_files'],
      unread_files: [{ reason: 'gone', files: 2 }],
      endpoints: [{ endpoint_id: ids.endpoint, endpoint_name: 'shop', records_stored: 48_000, records_read: 12_000 }],
      is_same: false,
      matched_by: 'record',
      before: {
        ...{ view_id: ids.view, version: 1, expand: null, rows: 11_990, duplicates: 0, accepted: 11_990, dropped: 10 },
        ...{ dlq: 0, cast_nulls: 3, dedupe_within: null },
        dead_letters: [],
      },
      after: {
        ...{ view_id: null, version: null, expand: null, rows: 11_987, duplicates: 0, accepted: 11_987, dropped: 10 },
        ...{ dlq: 3, cast_nulls: 0, dedupe_within: null },
        dead_letters: [{ error_code: 'cast_failed', column: 'sent_at', records: 3 }],
      },
      outcome_changes: [
        {
          before: 'accepted',
          after: 'dlq',
          records: 3,
          samples: [
            {
              ...comparedRecord,
              reason_before: null,
              reason_after: {
                error_code: 'cast_failed',
                column: 'sent_at',
                message: 'the value "yesterday" of column "sent_at" is not of type TIMESTAMP',
              },
              dropped_by: null,
            },
          ],
        },
      ],
      row_changes: [],
      columns: [
        {
          name: 'tag',
          before: { type: 'VARCHAR', nulls: 11_000, null_rate_pct: 91.74, cast_nulls: 0 },
          after: { type: 'VARCHAR', nulls: 10_999, null_rate_pct: 91.76, cast_nulls: 0 },
          values_differ: 1,
          samples: [{ ...comparedRecord, item_index: null, value_before: 'VIP', value_after: 'vip', is_value_cut: false }],
        },
      ],
      duration_ms: 812.4,
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
}
