import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { Recent } from './recent.ts'

test('a thing is made once, until nobody used it for long', () => {
  const clock = new ManualClock()
  const recent = new Recent<number>({ clock, max: 10, idleMs: 1_000 })
  let made = 0
  const get = (key: string) => recent.get(key, () => ++made)
  expect([get('a'), get('a'), get('b')]).toEqual([1, 1, 2])
  clock.advance(999)
  expect(get('a')).toBe(1)
  clock.advance(1)
  expect(get('c')).toBe(3)
  expect(recent.size).toBe(2)
  expect([get('a'), get('b')]).toEqual([1, 4])
})

test('beyond the bound the one goes that was used longest ago', () => {
  const recent = new Recent<string>({ clock: new ManualClock(), max: 2, idleMs: 1_000 })
  const first = {}
  const objects = new Recent<object>({ clock: new ManualClock(), max: 2, idleMs: 1_000 })
  objects.get('a', () => first)
  objects.get('b', () => ({}))
  expect(objects.get('a', () => ({}))).toBe(first)
  objects.get('c', () => ({}))
  expect(objects.get('a', () => ({}))).toBe(first)
  expect(objects.size).toBe(2)
  expect(recent.size).toBe(0)
})
