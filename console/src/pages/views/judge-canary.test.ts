import { expect, test } from 'vitest'
import type { Binding } from '../../api/bindings.ts'
import type { ViewSeries } from '../../api/series.ts'
import type { EndpointViewMetrics, ViewCounts } from '../../api/view-metrics.ts'
import { compareColumns, countBoth, findCanary, findStopped, judgeCanary, timesUntilLast } from './judge-canary.ts'

const at = '2026-11-20T08:00:00.000Z'

function binding(view_version: number, more: Partial<Binding> = {}): Binding {
  return {
    id: `b${view_version}`,
    endpoint_id: 'e',
    endpoint_name: 'events',
    view_id: `v${view_version}`,
    view_name: 'orders',
    view_version,
    is_required: false,
    activated_at: at,
    activated_by: 'cli',
    deactivated_at: null,
    canary_start_ts: null,
    canary_rule: null,
    stopped_reason: null,
    status: 'active',
    ...more,
  }
}

function metrics(accepted: number, dlq: number, more: Partial<EndpointViewMetrics> = {}): EndpointViewMetrics {
  const counts = { processed: accepted + dlq, accepted, dropped: 0, dlq, failed: 0, rows: accepted, duplicates: 0, redriven: 0 }
  return {
    endpoint_id: 'e',
    endpoint_name: 'events',
    last_24h: counts,
    all_time: counts,
    error_rate_pct: 0,
    has_errors: false,
    error_count_24h: 0,
    total_error_count: 0,
    last_error_at: null,
    last_error_code: null,
    last_error_message: null,
    last_updated_at: at,
    held_since: null,
    ...more,
  }
}

function column(name: string, type: string, null_rate_pct: number): NonNullable<EndpointViewMetrics['columns']>[number] {
  const window = {
    values: 1,
    nulls: 0,
    null_rate_pct,
    cast_failures: 0,
    cast_nulls: 0,
    cast_dlq: 0,
    missing: 0,
    min: null,
    max: null,
  }
  return { name, type, hidden: false, last_24h: window, all_time: window }
}

test('the latest attached version is the canary of the others', () => {
  const others = [binding(4, { status: 'detached' }), binding(9, { view_name: 'users' })]
  expect(findCanary([binding(1), binding(3), ...others], 'orders')).toMatchObject({
    canary: { id: 'b3' },
    others: [{ id: 'b1' }],
  })
  expect(findCanary([binding(3), ...others], 'orders')).toBeUndefined()
})

function counts(accepted: number, dlq: number): ViewCounts {
  return { processed: accepted + dlq, accepted, dropped: 0, dlq, failed: 0 }
}

const held = { held_since: at, last_error_message: null }

test.each<[string, ViewCounts, ViewCounts, typeof held | undefined, string]>([
  ['has no figures before its first segment', counts(100, 0), counts(0, 0), undefined, 'note'],
  ['does as well with the same share of few records', counts(1000, 10), counts(100, 1), undefined, 'good'],
  ['does worse with a larger share', counts(1000, 10), counts(100, 3), undefined, 'warn'],
  ['does worse if it holds back the delivery', counts(10, 0), counts(10, 0), held, 'warn'],
  ['cannot be judged if the other version processed nothing', counts(0, 0), counts(100, 10), undefined, 'note'],
])('a canary %s', (_, current, canary, failing, kind) => {
  expect(judgeCanary(current, canary, failing, []).kind).toBe(kind)
})

test('both versions are counted from the first segment of the canary on', () => {
  const bucket = (minute: number, accepted: number, dlq: number) => {
    return { at: `2026-11-20T08:0${minute}:00Z`, accepted, dropped: 0, dlq, failed: 0, rows: accepted, duplicates: 0 }
  }
  const series: ViewSeries = {
    view_name: 'orders',
    endpoint_id: 'e',
    since: at,
    until: at,
    step_seconds: 60,
    versions: [
      { view_id: 'v3', view_version: 3, buckets: [bucket(2, 9, 1), bucket(4, 8, 2)] },
      { view_id: 'v1', view_version: 1, buckets: [bucket(0, 0, 70), bucket(2, 10, 0), bucket(4, 6, 4)] },
    ],
  }
  const versions = { current: binding(1), canary: binding(3) }
  expect(countBoth(series, versions)).toEqual({ before: counts(16, 4), after: counts(17, 3) })
  // The chart ends with the canary's last bucket, also while that is not over.
  expect(timesUntilLast(series, versions.canary)).toEqual([0, 1, 2, 3, 4].map((minute) => Date.parse(at) + minute * 60_000))
  // Its figures of an earlier time as a canary are not those of this one.
  const again = { ...versions, canary: binding(3, { activated_at: '2026-11-20T08:04:30Z' }) }
  expect(countBoth(series, again)).toEqual({ before: counts(6, 4), after: counts(8, 2) })
  expect(timesUntilLast(series, binding(3, { canary_start_ts: '2026-11-20T08:05:00Z' }))).toEqual([])
  expect(countBoth({ ...series, versions: [] }, versions)).toEqual({ before: counts(0, 0), after: counts(0, 0) })
})

test('columns that are new, gone, of another type or emptier are named', () => {
  const current = metrics(1, 0, {
    columns: [
      column('a', 'BIGINT', 0),
      column('b', 'DATE', 0),
      column('c', 'DATE', 1),
      column('d', 'DATE', 1),
      column('f', 'VARCHAR', 0),
    ],
  })
  const canary = metrics(1, 0, {
    columns: [
      column('a', 'DOUBLE', 0),
      column('f', 'DOUBLE', 10),
      column('c', 'DATE', 40),
      column('d', 'DATE', 2),
      column('e', 'DATE', 3),
    ],
  })
  expect(compareColumns(current, canary)).toEqual([
    { name: 'a', difference: 'DOUBLE instead of BIGINT', isWorse: false },
    { name: 'f', difference: 'DOUBLE instead of VARCHAR, NULL in 10 % instead of 0 %', isWorse: true },
    { name: 'c', difference: 'NULL in 40 % instead of 1 %', isWorse: true },
    { name: 'e', difference: 'new, NULL in 3 %', isWorse: false },
    { name: 'b', difference: 'gone', isWorse: true },
  ])
})

test('a canary that rejects no more, but has NULL instead of values, is not as good', () => {
  const counts = { processed: 100, accepted: 100, dropped: 0, dlq: 0, failed: 0 }
  const differing = (isWorse: boolean) => [{ name: 'amount', difference: 'NULL in 10 % instead of 0 %', isWorse }]
  expect(judgeCanary(counts, counts, undefined, differing(true)).kind).toBe('warn')
  expect(judgeCanary(counts, counts, undefined, differing(false)).kind).toBe('good')
})

test('a canary does not lose values that the version in use never had', () => {
  const rejecting = metrics(0, 100, { columns: [column('a', 'DATE', 0)] })
  const repaired = metrics(100, 0, { columns: [column('a', 'DATE', 30)] })
  for (const [current, canary] of [
    [rejecting, repaired],
    [repaired, rejecting],
  ] as const)
    expect(compareColumns(current, canary)).toBeUndefined()
  expect(judgeCanary(rejecting.last_24h, repaired.last_24h, undefined, compareColumns(rejecting, repaired))).toMatchObject({
    kind: 'note',
    title: 'Not enough data to compare the columns',
  })
})

test('a canary whose columns are not known yet is not called as good', () => {
  const same = counts(100, 0)
  expect(compareColumns(metrics(1, 0), metrics(1, 0, { columns: [column('a', 'DATE', 0)] }))).toBeUndefined()
  expect(judgeCanary(same, same, undefined, undefined).kind).toBe('note')
})

test('a canary that its rule stopped is named until the view is attached or detached again', () => {
  const stopped = binding(2, { status: 'detached', deactivated_at: '2026-11-20T09:00:00.000Z', stopped_reason: 'why' })
  expect(findStopped([binding(1), stopped], 'orders')).toBe(stopped)
  expect(findStopped([binding(1), stopped], 'others')).toBeUndefined()
  const next = binding(3, { activated_at: '2026-11-20T09:00:01.000Z' })
  expect(findStopped([binding(1), stopped, next], 'orders')).toBeUndefined()
  expect(findStopped([], 'orders')).toBeUndefined()
})
