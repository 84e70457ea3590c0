import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { Durations } from './durations.ts'
import { observableMetrics } from './metrics.ts'

test('a duration counts in every bucket that it fits into, its bound included', () => {
  const durations = new Durations([0.001, 0.01, 0.1])
  for (const ms of [0.5, 1, 1.5, 10, 200]) durations.observe(ms)
  expect(durations.cumulative()).toEqual([2, 4, 4])
  expect(durations.count).toBe(5)
  expect(durations.sumSeconds).toBeCloseTo(0.213)
})

test('several durations at once, and one below zero, which a clock may give', () => {
  const durations = new Durations([0.001])
  durations.observe(2, 10)
  durations.observe(-1, 3)
  expect([durations.cumulative(), durations.count, durations.sumSeconds]).toEqual([[3], 13, 0.02])
})

test('their text is a histogram, one for each value of the label', async () => {
  const registry = new Registry()
  registry.setDefaultLabels({ process: 'test' })
  const one = new Durations([0.5, 1])
  one.observe(700)
  one.observe(2_000)
  observableMetrics(registry).histograms('inlet_test_seconds', 'a test', 'of', () => [['one', one]])
  expect(await registry.metrics()).toBe(
    `# HELP inlet_test_seconds a test
# TYPE inlet_test_seconds histogram
inlet_test_seconds_bucket{le="0.5",of="one",process="test"} 0
inlet_test_seconds_bucket{le="1",of="one",process="test"} 1
inlet_test_seconds_bucket{le="+Inf",of="one",process="test"} 2
inlet_test_seconds_sum{of="one",process="test"} 2.7
inlet_test_seconds_count{of="one",process="test"} 2
`,
  )
})
