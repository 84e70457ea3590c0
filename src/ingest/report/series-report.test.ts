import { expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import type { SeriesReport as Report } from '#model/node-protocol.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { EndpointCounts } from '../gate/endpoint-counters.ts'
import { reportLimits } from './limits.ts'
import { SeriesReport } from './series-report.ts'

const { seriesReportMs, seriesBucketMs, seriesLiveItemsMax, seriesManyMs, seriesItemsKept } = reportLimits

/** Reports to a control that is there or not. */
async function reporting() {
  const clock = new ManualClock()
  const counts = new EndpointCounts()
  const reports: Report[] = []
  const control = {
    isAway: false,
    async reportSeries(report: Report) {
      reports.push(report)
      if (control.isAway) throw new Error('control is away')
    },
  }
  const series = new SeriesReport({
    ...system,
    nodeId: newId(),
    counts,
    control,
    clock,
    logger: createLogger('ingest', 'silent'),
  })
  await series.start()
  const pass = async () => {
    clock.advance(seriesReportMs)
    // The report is stored, and the next one planned.
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate)
  }
  return { clock, counts, reports, control, pass, stop: () => series.stop(new AbortController().signal) }
}

const recordsOf = ({ items }: Report) => items.map(({ records }) => records)

test('what is counted is reported once, in the bucket in which it happened', async () => {
  const { counts, reports, pass, stop } = await reporting()
  const [one, other] = [newId(), newId()]
  for (const records of [1, 2, 4, 8]) {
    counts.of(one).accepted(1, records, 10, 2)
    await pass()
  }
  counts.of(other).refused('endpoint_paused')
  await stop()
  expect(reports.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5])
  expect(reports.flatMap(recordsOf)).toEqual([1, 2, 4, 8, 0])
  const times = reports.flatMap(({ items }) => items.map(({ at }) => Date.parse(at)))
  for (const time of times) expect(time % seriesBucketMs).toBe(0)
  expect(new Set(times).size).toBeGreaterThanOrEqual(2)
  expect(new Set(reports.map(({ run }) => run)).size).toBe(1)
})

test('nothing is reported while nothing happens', async () => {
  const { reports, pass, stop } = await reporting()
  await pass()
  await stop()
  expect(reports).toEqual([])
})

test('a report that control missed is repeated unchanged, and later counts follow', async () => {
  const { counts, reports, control, pass, stop } = await reporting()
  const id = newId()
  control.isAway = true
  for (const records of [1, 2, 4]) {
    counts.of(id).accepted(1, records, 10, 2)
    await pass()
  }
  expect(reports.length).toBeGreaterThan(1)
  for (const report of reports) expect(report).toEqual(reports[0])
  control.isAway = false
  const before = reports.length
  await pass()
  await stop()
  expect(reports[before]).toEqual(reports[0])
  expect(
    reports
      .slice(before)
      .flatMap(recordsOf)
      .reduce((sum, records) => sum + records, 0),
  ).toBe(7)
})

test('many endpoints are reported once a minute, in their buckets', async () => {
  const { counts, reports, pass, stop } = await reporting()
  const ids = Array.from({ length: seriesLiveItemsMax + 1 }, newId)
  for (let passedMs = 0; passedMs < 2 * seriesManyMs; passedMs += seriesReportMs) {
    for (const id of ids) counts.of(id).accepted(1, 1, 1, 1)
    await pass()
  }
  const buckets = reports.flatMap(({ items }) => items.map(({ endpoint_id, at }) => `${endpoint_id} ${at}`))
  expect(buckets.length).toBeLessThanOrEqual((ids.length * 2 * seriesManyMs) / seriesBucketMs + 2 * ids.length)
  await stop()
  const sent = (ids.length * 2 * seriesManyMs) / seriesReportMs
  expect(reports.flatMap(recordsOf).reduce((sum, records) => sum + records, 0)).toBe(sent)
})

test('the oldest buckets are dropped when control is away for long', async () => {
  const { counts, reports, control, pass, stop } = await reporting()
  control.isAway = true
  const ids = Array.from({ length: seriesItemsKept / 5 }, newId)
  for (let bucket = 0; bucket < 8; bucket += 1) {
    for (const id of ids) counts.of(id).refused('no_room')
    await pass()
    await pass()
  }
  control.isAway = false
  const before = reports.length
  await stop()
  const items = reports.slice(before).flatMap((report) => report.items)
  // The kept buckets, and those of the report that was in flight.
  expect(items.length).toBeGreaterThanOrEqual(seriesItemsKept)
  expect(items.length).toBeLessThanOrEqual(seriesItemsKept + 500)
})
