import { expect, test } from 'vitest'
import { binOf, durationBins, quantileOf } from './duration-histogram.ts'

function binned(durations: readonly number[]): Record<string, number> {
  const bins: Record<string, number> = {}
  for (const ms of durations) bins[binOf(ms)] = (bins[binOf(ms)] ?? 0) + 1
  return bins
}

test('a quantile is wrong by a tenth at most', () => {
  for (const ms of [0.11, 0.5, 1, 3.3, 12, 250, 4_000, 3_600_000, 70_000_000]) {
    const found = quantileOf(binned([ms]), 0.5) ?? 0
    expect(found / ms, `${ms} ms`).toBeGreaterThan(0.9)
    expect(found / ms, `${ms} ms`).toBeLessThan(1.1)
  }
})

test('quantiles are those of all durations', () => {
  const bins = binned([...Array.from({ length: 98 }, () => 2), 500, 500])
  expect(quantileOf(bins, 0.5)).toBeCloseTo(2, 0)
  expect(quantileOf(bins, 0.98)).toBeCloseTo(2, 0)
  expect(quantileOf(bins, 0.99)).toBeGreaterThan(450)
  expect(quantileOf({}, 0.5)).toBeNull()
})

test('every duration has a bin', () => {
  for (const ms of [0, -5, Number.NaN]) expect(binOf(ms)).toBe(0)
  for (const ms of [1e12, Number.POSITIVE_INFINITY]) expect(binOf(ms)).toBe(durationBins - 1)
})
