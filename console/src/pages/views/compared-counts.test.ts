import { expect, test } from 'vitest'
import type { ComparedColumn, ComparedSide, ViewComparison } from '../../api/view-comparisons.ts'
import {
  aboutMatching,
  aboutSample,
  aboutUnread,
  aboutWindow,
  countRows,
  reasonOfDrop,
  signed,
  stateOf,
  titleOfChange,
  titleOfRowChange,
} from './compared-counts.ts'

const side = (more: Partial<ComparedSide>): ComparedSide => ({
  ...{
    view_id: null,
    version: null,
    expand: null,
    rows: 0,
    duplicates: 0,
    dedupe_within: null,
    accepted: 0,
    dropped: 0,
    dlq: 0,
    cast_nulls: 0,
    dead_letters: [],
  },
  ...more,
})

test('dead letters stand by reason, also those of one side alone', () => {
  const before = side({ rows: 9, dlq: 1, dead_letters: [{ error_code: 'invalid_json', column: null, records: 1 }] })
  const after = side({
    ...{ rows: 7, dlq: 3 },
    dead_letters: [
      { error_code: 'cast_failed', column: 'a', records: 2 },
      { error_code: 'invalid_json', column: null, records: 1 },
    ],
  })
  expect(countRows(before, after).map(({ name, before: one, after: other }) => [name, one, other, signed(other - one)])).toEqual([
    ['Rows', 9, 7, '−2'],
    ['Dropped', 0, 0, ''],
    ['Dead letters', 1, 3, '+2'],
    ['– invalid_json', 1, 1, ''],
    ['– cast_failed: a', 0, 2, '+2'],
    ['Values that became NULL', 0, 0, ''],
  ])
})

test('a column is new, lost, changed or the same', () => {
  const half = { type: 'BIGINT', nulls: 1, null_rate_pct: 1, cast_nulls: 0 }
  const column = (more: Partial<ComparedColumn>): ComparedColumn => ({
    ...{ name: 'a', before: half, after: half, values_differ: 0, samples: [] },
    ...more,
  })
  expect(stateOf(column({}))).toBe('same')
  expect(stateOf(column({ before: null }))).toBe('new')
  expect(stateOf(column({ after: null }))).toBe('lost')
  expect(stateOf(column({ after: { ...half, type: 'DOUBLE' } }))).toBe('changed')
  expect(stateOf(column({ after: { ...half, nulls: 2 } }))).toBe('changed')
  expect(stateOf(column({ values_differ: 1 }))).toBe('changed')
})

test('words say what changed, and how much was read', () => {
  expect(titleOfChange({ before: 'accepted', after: 'dlq', records: 1, samples: [] })).toBe(
    '1 record: a row before, a dead letter now',
  )
  const read = (more: Partial<ViewComparison>) =>
    aboutSample({ records_read: 5, records_stored: 10, is_complete: false, bounded_by: ['time'], ...more } as ViewComparison)
  expect(read({})).toBe('The newest 5 records of 10 of the last 24 hours were read: the time was over.')
  expect(read({ records_read: 10, is_complete: true, bounded_by: [] })).toBe('All 10 records of the last 24 hours were read.')
  expect(read({ records_read: 0, records_stored: 0 })).toBe('Nothing was delivered in the last 24 hours.')
})

test('words say which rows are lost, and why values are not compared', () => {
  expect(titleOfRowChange({ change: 'lost', rows: 1, samples: [] })).toBe('1 row of accepted records: only before')
  expect(titleOfRowChange({ change: 'new', rows: 2_000, samples: [] })).toBe('2,000 rows of accepted records: only now')
  expect([reasonOfDrop('duplicate'), reasonOfDrop(null)]).toEqual(['a duplicate', ''])
  const matched = (matched_by: ViewComparison['matched_by']) =>
    aboutMatching({ matched_by, before: side({}), after: side({ expand: '$.items[*]' }) } as ViewComparison)
  expect(matched('item')).toBeUndefined()
  expect(matched(null)).toBe(
    'Before, each record is a row, and now each element of $.items[*]: their rows cannot be matched. Counts and records are compared.',
  )
  const window = (before: string | null, after: string | null) =>
    aboutWindow({ before: side({ dedupe_within: before }), after: side({ dedupe_within: after }) } as ViewComparison)
  expect(window(null, null)).toBeUndefined()
  expect(window(null, '24h')).toContain('dedupe_within (24h) is not applied here')
  expect(window('1h', null)).toContain('(1h)')
  const about = (unread_files: ViewComparison['unread_files']) => aboutUnread({ unread_files } as unknown as ViewComparison)
  expect(about([])).toBeUndefined()
  expect(about([{ reason: 'gone', files: 2 }])).toBe('2 files no longer in the bucket')
  expect(countRows(side({}), side({ duplicates: 3 }))[1]).toMatchObject({ name: 'Duplicate rows', before: 0, after: 3 })
})
