import { commitId, type SegmentCommit } from '../../src/model/commit.ts'

/** A commit of a segment without views. */
export function aCommit(changes: Partial<SegmentCommit> & { readonly seq: number }): SegmentCommit {
  const node_id = changes.node_id ?? '11111111-1111-4111-8111-111111111111'
  const log = changes.log ?? 'abcdefghij'
  return {
    id: commitId(node_id, log, changes.seq),
    endpoint_id: '22222222-2222-4222-8222-222222222222',
    node_id,
    log,
    records: 1,
    records_damaged: 0,
    wal_bytes: 100,
    sealed_at: '2026-11-20T08:00:00.000Z',
    uploaded_at: '2026-11-20T08:00:01.000Z',
    duration_ms: 5,
    destination: { id: '33333333-3333-4333-8333-333333333333', bucket: 'local', region: 'local' },
    artifacts: {},
    views: [],
    ...changes,
  }
}
