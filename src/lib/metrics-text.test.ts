import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { MetricsText } from './metrics-text.ts'

test('requests share a text that is written after them, and others get four times as long in between', async () => {
  const clock = new ManualClock()
  let written = 0
  const registry = {
    contentType: 'text/plain' as const,
    metrics: async () => {
      clock.advance(10)
      written += 1
      return `${written}`
    },
  }
  const text = new MetricsText(registry as never, clock)
  const first = Array.from({ length: 1_000 }, () => text.metrics())
  expect(new Set(await Promise.all(first))).toEqual(new Set(['1']))
  const second = Array.from({ length: 1_000 }, () => text.metrics())
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate)
  clock.advance(39)
  await new Promise(setImmediate)
  expect(written).toBe(1)
  clock.advance(1)
  expect(new Set(await Promise.all(second))).toEqual(new Set(['2']))
  expect(text.contentType).toBe('text/plain')
})

test('a failure reaches those who asked, and nobody after them', async () => {
  let calls = 0
  const metrics = async () => {
    calls += 1
    if (calls === 1) throw new Error('a collector failed')
    return 'text'
  }
  const text = new MetricsText({ contentType: 'text/plain', metrics } as never, new ManualClock())
  await expect(text.metrics()).rejects.toThrow('a collector failed')
  expect(await text.metrics()).toBe('text')
})
