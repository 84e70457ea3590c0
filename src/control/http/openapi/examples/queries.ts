import { at, type Examples, ids } from './shared.ts'

export const queriesExamples: Examples = {
  runQuery: {
    request: { sql: 'SELECT event_type, count(*) AS events FROM orders GROUP BY ALL', since: '2026-11-20T00:00:00Z' },
    response: {
      columns: [
        { name: 'event_type', type: 'VARCHAR' },
        { name: 'events', type: 'BIGINT' },
      ],
      rows: [
        ['order', '1204'],
        ['refund', '17'],
      ],
      row_count: 2,
      truncated: null,
      tables: [
        {
          ...{ name: 'orders', kind: 'view', view_id: ids.view, view_version: 1, endpoint_id: null },
          ...{ files: 12, bytes: 81_920, missing: 0, complete: true, may_lack_commits_since: null, oldest: at, newest: at },
        },
      ],
      elapsed_ms: 14,
    },
  },
}
