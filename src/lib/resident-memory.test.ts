import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { residentBytesOf, residentMemoryOf } from './resident-memory.ts'

test('the resident memory of a process, and its peak, are at least what Node says', () => {
  const { rss } = process.memoryUsage()
  const { bytes, peakBytes } = residentMemoryOf(process.pid) ?? { bytes: 0, peakBytes: 0 }
  expect(bytes).toBeGreaterThan(rss / 2)
  expect(peakBytes).toBeGreaterThanOrEqual(bytes)
})

test('a process that is gone has none, and does not spoil the sum', async () => {
  const child = spawn(process.execPath, ['-e', ''])
  await once(child, 'exit')
  const { pid = 0 } = child
  expect(residentMemoryOf(pid)).toBeUndefined()
  expect(residentBytesOf([pid])).toBe(0)
  expect(residentBytesOf([pid, process.pid])).toBeGreaterThan(0)
})
