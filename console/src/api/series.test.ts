import { expect, test } from 'vitest'
import { secondsOver, timesOf, timesUntilNow, valuesAt } from './series.ts'

const window = { since: '2026-11-20T08:00:00.000Z', until: '2026-11-20T08:00:35.000Z', step_seconds: 10 }
const start = Date.parse(window.since)

test('a chart has a time for each bucket that is over', () => {
  expect(timesOf(window)).toEqual([start, start + 10_000, start + 20_000])
  expect(timesOf({ ...window, until: window.since })).toEqual([])
})

test('a chart of counts has the bucket that is not over, too', () => {
  expect(timesUntilNow(window)).toEqual([start, start + 10_000, start + 20_000, start + 30_000])
  expect(timesUntilNow({ ...window, until: window.since })).toEqual([start])
})

test('a rate divides by what is over of its bucket', () => {
  expect(secondsOver(window, start)).toBe(10)
  expect(secondsOver(window, start + 30_000)).toBe(5)
  expect(secondsOver({ ...window, until: window.since }, start)).toBe(1)
})

test('buckets that the API leaves out are nothing, or not measured', () => {
  const buckets = [{ at: '2026-11-20T08:00:10.000Z', records: 7 }]
  const records = (empty: 0 | null) => valuesAt(timesOf(window), buckets, (bucket) => bucket.records, empty)
  expect(records(0)).toEqual([0, 7, 0])
  expect(records(null)).toEqual([null, 7, null])
})
