import { describe, expect, test } from 'vitest'
import { randomUuid, seededRandom, systemRandom } from './random.ts'
import { isUuid } from './uuid.ts'

describe.each([
  ['seeded', seededRandom(7)],
  ['system', systemRandom],
])('the %s random', (_, random) => {
  test('gives fractions below one, and bytes', () => {
    const fractions = Array.from({ length: 1_000 }, () => random.fraction())
    expect(Math.min(...fractions)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...fractions)).toBeLessThan(1)
    expect(new Set(random.bytes(1_000)).size).toBeGreaterThan(200)
  })

  test('gives UUIDs of version 4', () => {
    const [first, second] = [randomUuid(random), randomUuid(random)]
    expect(isUuid(first)).toBe(true)
    expect(first[14]).toBe('4')
    expect(second).not.toBe(first)
  })
})

test('the same seed gives the same numbers and bytes', () => {
  const draw = (seed: number) => {
    const { fraction, bytes } = seededRandom(seed)
    return [fraction(), fraction(), ...bytes(8)]
  }
  expect(draw(5)).toEqual(draw(5))
  expect(draw(5)).not.toEqual(draw(6))
})
