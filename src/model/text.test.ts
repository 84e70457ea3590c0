import { expect, test } from 'vitest'
import { properName } from './text.ts'

test('a name that is too long is not normalized, which takes time that grows with the square of its length', () => {
  const startedAt = process.cpuUsage()
  const { error } = properName(128).safeParse(`a${'\u0301\u0316'.repeat(100_000)}`)
  expect(error?.issues).toMatchObject([{ code: 'too_big' }])
  // It took 24 s.
  expect(process.cpuUsage(startedAt).user).toBeLessThan(1_000_000)
})
