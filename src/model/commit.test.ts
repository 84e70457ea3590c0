import { expect, test } from 'vitest'
import { boundQuality, type SegmentCommit, type ViewOutcome } from './commit.ts'
import { newId } from './id.ts'
import { commitLimits, definitionLimits, qualityLimits } from './limits.ts'
import { CommitBatch, nodeBodyPartsMax } from './node-protocol.ts'
import { parseJsonBody, requireValid } from './request-body.ts'
import { JsonKind } from './view-quality.ts'

const at = '2026-11-20T08:00:00.000Z'

test('control accepts a commit with as many views, columns and paths as there may be', () => {
  const column = { name: 'a', type: 'BIGINT', values: 1, nulls: 0, cast_nulls: 0, cast_dlq: 0, missing: 0, min: '1', max: '2' }
  const quality = {
    columns: Array(definitionLimits.columnsMax).fill(column),
    sampled_records: 1,
    unmapped: Array(qualityLimits.pathsMax).fill({ path: '$.a', types: JsonKind.options, records: 1 }),
  }
  const counts = { processed: 2, accepted: 1, dropped: 0, dlq: 1, failed: 0, cast_nulls: 0, errors: { cast_failed: 1 } }
  const last_error = { code: 'cast_failed', message: 'x', at }
  const view: ViewOutcome = { view_id: newId(), view_name: 'v', view_version: 1, ...counts, last_error, quality }
  const file = { key: 'k', bytes: 1, rows: 1, sha256: 'x', view_id: newId(), view_version: 1 }
  const names = Array.from({ length: 2 * commitLimits.viewsMax }, (_, index) => [`views/v${index}/v1`, file])
  const commit: SegmentCommit = {
    ...{ id: 'x', endpoint_id: newId(), node_id: newId(), log: 'x', seq: 1, records: 2, records_damaged: 0, wal_bytes: 1 },
    ...{ sealed_at: at, uploaded_at: at, duration_ms: 1, destination: { id: newId(), bucket: 'b', region: 'r' } },
    artifacts: Object.fromEntries(names),
    views: boundQuality(Array(commitLimits.viewsMax).fill(view)),
  }
  const body = parseJsonBody(Buffer.from(JSON.stringify({ commits: [commit] })), { partsMax: nodeBodyPartsMax.commits })
  expect(requireValid(CommitBatch, body).commits).toEqual([commit])
})
