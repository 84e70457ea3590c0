import { expect, test, vi } from 'vitest'
import { Waits } from './sender.ts'

test('the longest wait counts requests that began later, and those that still wait', () => {
  const now = vi.spyOn(performance, 'now')
  const at = (ms: number) => void now.mockReturnValue(ms)
  const waits = new Waits()
  at(0)
  const early = waits.begin('a')
  at(100)
  const late = waits.begin('a')
  waits.begin('b')
  at(900)
  early()
  at(300)
  late()
  expect(waits.longest('a', 0)).toBe(900)
  expect(waits.longest('a', 50)).toBe(200)
  at(1_000)
  expect(waits.longest('b', 0)).toBe(900)
  expect(waits.longest('b', 600)).toBe(400)
})
