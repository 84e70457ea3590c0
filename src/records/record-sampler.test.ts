import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { qualityLimits } from '#model/limits.ts'
import { runs } from '../../test/support/thorough.ts'
import { RecordSampler, SAMPLE_BYTES_MAX, SAMPLES_BYTES_MAX } from './record-sampler.ts'

function sampled(count: number, record: (index: number) => string | Buffer): readonly string[] {
  const sampler = new RecordSampler()
  for (let index = 0; index < count; index += 1) {
    const bytes = Buffer.concat([Buffer.from('before'), Buffer.from(record(index)), Buffer.from('after')])
    sampler.offer(index, bytes, 6, bytes.length - 5)
    bytes.fill(0)
  }
  return sampler.texts()
}

test('samples all of a few records unchanged', () => {
  expect(sampled(qualityLimits.samplesMax, String)).toEqual(
    Array.from({ length: qualityLimits.samplesMax }, (_, index) => `${index}`),
  )
})

test.each([201, 1_000, 54_321, runs(200_000, 1_000_000)])('spreads samples evenly over %i records', (count) => {
  const indexes = sampled(count, String).map(Number)
  const [first, second = 0] = indexes
  expect(first).toBe(0)
  expect(indexes).toEqual(indexes.map((_, position) => position * second))
  expect(indexes.length).toBeLessThanOrEqual(qualityLimits.samplesMax)
  expect(indexes.length).toBeGreaterThanOrEqual(qualityLimits.samplesMax / 2)
  expect(count - (indexes.at(-1) ?? 0)).toBeLessThanOrEqual(second)
})

test('keeps fewer large records, and none that are too large or not text', () => {
  const large = sampled(1_000, (index) => `${index} ${'x'.repeat(30_000)}`)
  expect(large.reduce((sum, text) => sum + text.length, 0)).toBeLessThanOrEqual(SAMPLES_BYTES_MAX)
  expect(large.length).toBeGreaterThanOrEqual(4)
  expect(sampled(10, () => 'x'.repeat(SAMPLE_BYTES_MAX + 1))).toEqual([])
  expect(sampled(4, (index) => (index === 2 ? Buffer.from([0xff]) : 'x'))).toHaveLength(3)
})
