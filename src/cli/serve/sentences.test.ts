import { expect, test } from 'vitest'
import type { CommitEvent } from '#delivery/publish/commit-event.ts'
import { sentences } from './sentences.ts'

const view = { view_name: 'events', view_version: 1, dropped: 0, dlq: 0, failed: 0 }
const commit: CommitEvent = {
  ...{
    segment: 's',
    endpoint: 'e',
    records: 12,
    duration_ms: 9,
    since_sealed_ms: 840,
    views: [view],
    files: ['parquet'],
    is_adopted: false,
  },
}

test.each<[string, Partial<CommitEvent>]>([
  ['12 records → events v1, 0.8 s', {}],
  ['1 record → events v1, 12 s', { records: 1, since_sealed_ms: 12_345 }],
  [
    '12,000 records → events v1 (1,200 dropped, 1 dead letter), 0.8 s',
    { records: 12_000, views: [{ ...view, dropped: 1200, dlq: 1 }] },
  ],
  ['12 records → events v1 (12 failed), 0.8 s', { views: [{ ...view, failed: 12 }] }],
  ['12 records → events v1, events v1, events v1, 2 more views, 0.8 s', { views: [view, view, view, view, view] }],
  ['12 records → raw Parquet, 0.8 s', { views: [] }],
  ['12 records → raw segments, 0.8 s', { views: [], files: ['segment'] }],
  ['12 records → events v1, delivered before the restart', { is_adopted: true }],
])('a commit reads %j', (sentence, fields) => {
  expect(sentences['segment committed']?.({ ...commit, ...fields })).toBe(sentence)
})

test('a required view that fails is described once', () => {
  const reason = 'the required view events v3 failed: too slow; delivery waits until it succeeds or is detached'
  const fields = { segment: 's', endpoint: 'e', view: 'events', version: 3, reason }
  expect(sentences['required view failed; its log waits']?.(fields)).toBe(`endpoint e: ${reason}`)
})
