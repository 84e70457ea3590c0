import { expect, test } from 'vitest'
import { seededRandom } from '#lib/random.ts'
import { newId } from '#model/id.ts'
import type { EndpointLag } from '#model/node-protocol.ts'
import { aLag } from '../../../test/support/lags.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { LagReports } from './lag-report.ts'
import { lagReportLimits } from './limits.ts'

const many = lagReportLimits.reportedWhole + 100
const ids = Array.from({ length: many }, newId)
const lags = (change: (index: number) => Partial<EndpointLag> = () => ({})) => ids.map((id, index) => aLag(id, change(index)))

function accepted(rows: readonly EndpointLag[]) {
  const clock = new ManualClock()
  const reports = new LagReports({ clock, random: seededRandom(1) })
  const first = reports.next(rows)
  reports.accept()
  return { clock, reports, first }
}

test('few logs are reported whole each time', () => {
  const { reports } = accepted([aLag(ids[0] ?? '')])
  const { lag, lag_base } = reports.next([aLag(ids[0] ?? '')])
  expect([lag.length, lag_base]).toEqual([1, undefined])
})

test('of many logs, a report has those that a status may depend on, at once', () => {
  const { reports, first } = accepted(lags())
  expect([first.lag.length, first.lag_base]).toEqual([many, undefined])
  const nothing = reports.next(lags())
  expect(nothing).toEqual({ lag: [], lag_gone: [], lag_base: first.lag_version, lag_version: first.lag_version })
  reports.accept()
  const view = { view_id: newId(), since: '2026-11-20T08:00:00.000Z' }
  const news: readonly Partial<EndpointLag>[] = [
    { blocked_by: 'a reason' },
    { parked_segments: 1 },
    { quarantined_segments: 1 },
    { quarantined_first_seq: 2 },
    { quarantined_last_seq: 2 },
    { closed: true },
    { failing_view: view },
    { undelivered_segments: 0 },
  ]
  const changed = reports.next(lags((index) => news[index] ?? {}))
  expect(changed.lag.map(({ endpoint_id }) => endpoint_id)).toEqual(ids.slice(0, news.length))
  expect(changed.lag_base).toBe(first.lag_version)
  expect(changed.lag_version).not.toBe(first.lag_version)
})

test('numbers alone are reported later, each row within a bound, and a few at a time', () => {
  const { clock, reports } = accepted(lags())
  const seen = new Set<string>()
  let most = 0
  for (let second = 0; second <= lagReportLimits.refreshMsMax / 1000; second += 2) {
    const { lag } = reports.next(lags(() => ({ undelivered_bytes: 10 + second })))
    reports.accept()
    most = Math.max(most, lag.length)
    for (const { endpoint_id } of lag) seen.add(endpoint_id)
    clock.advance(2_000)
  }
  expect(seen.size).toBe(many)
  expect(most).toBeLessThan(many)
})

test('names the logs that are gone, and adds those that are new', () => {
  const { reports } = accepted(lags())
  const added = aLag(newId())
  const { lag, lag_gone } = reports.next([...lags().slice(2), added])
  expect([lag, lag_gone]).toEqual([[added], ids.slice(0, 2)])
})

test('a report that may be lost is repeated; after a rejection all logs are sent', () => {
  const { reports, first } = accepted(lags())
  const blocked = () => lags((index) => (index === 0 ? { blocked_by: 'a reason' } : {}))
  expect(reports.next(blocked()).lag).toHaveLength(1)
  const again = reports.next(blocked())
  expect([again.lag.length, again.lag_base]).toEqual([1, first.lag_version])
  reports.reject()
  const whole = reports.next(blocked())
  expect([whole.lag.length, whole.lag_base]).toEqual([many, undefined])
})

test('a report says as of when the rows are that control then has, in whole seconds', () => {
  const few = accepted([]).reports
  expect(few.next([aLag(ids[0] ?? '')], 10_700)).toMatchObject({ counted_at: 10_000 })
  expect(few.next([aLag(ids[0] ?? '')])).not.toHaveProperty('counted_at')

  const { clock, reports } = accepted(lags())
  const next = (bytes: number, at: number) => {
    const report = reports.next(
      lags(() => ({ undelivered_bytes: bytes })),
      at,
    )
    reports.accept()
    return report
  }
  const same = aLag(ids[0] ?? '').undelivered_bytes
  next(same, 10_000)
  expect(next(same, 20_000).counted_at).toBe(20_000)
  // Numbers alone differ: most rows are sent later, and control has those of before.
  expect(next(same + 1, 22_000).counted_at).toBe(20_000)
  clock.advance(lagReportLimits.refreshMsMax)
  expect(next(same + 1, 82_000).counted_at).toBe(82_000)
})
