import { expect, test } from 'vitest'
import { percentOf } from './view-metrics.ts'

test.each([
  [0, 0, 0],
  [0, 7, 0],
  [7, 7, 100],
  [1, 3, 33.33],
  [1, 1_000_000, 0.01],
  [999_999, 1_000_000, 99.99],
])('%i of %i are %d per cent: 0 and 100 only if they are exact', (part, whole, pct) => {
  expect(percentOf(part, whole)).toBe(pct)
})
