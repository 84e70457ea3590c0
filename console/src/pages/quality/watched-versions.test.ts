import { expect, test } from 'vitest'
import type { ViewMetrics } from '../../api/view-metrics.ts'
import { watchedVersions } from './watched-versions.ts'

function version(view_name: string, view_version: number, processed: number, error_rate_pct = 0): ViewMetrics {
  const counts = { processed, accepted: processed, dropped: 0, dlq: 0, failed: 0, rows: processed, duplicates: 0, redriven: 0 }
  const rates = { error_rate_pct, has_errors: error_rate_pct > 0, total_error_count_24h: 0 }
  return {
    ...{ view_id: `${view_name} ${view_version}`, view_name, view_version, endpoints: [] },
    aggregated: { last_24h: counts, all_time: counts, ...rates },
  }
}

const all = [version('orders', 3, 10), version('orders', 2, 10, 4), version('orders', 1, 0), version('idle', 1, 0)]
const ids = (shown: readonly ViewMetrics[]) => shown.map(({ view_id }) => view_id)

test('versions that reject most come first, and those that nothing uses are left out', () => {
  const { shown, idle } = watchedVersions(all, false)
  expect(ids(shown)).toEqual(['orders 2', 'idle 1', 'orders 3'])
  expect(idle).toBe(1)
})

test('all are shown if asked for', () => {
  expect(ids(watchedVersions(all, true).shown)).toEqual(['orders 2', 'idle 1', 'orders 3', 'orders 1'])
})
