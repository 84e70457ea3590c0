import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { sleep, systemClock } from './clock.ts'

describe('sleep', () => {
  test.each(['the time is over', 'the signal aborts'])('ends when %s, and leaves no listener', async (end) => {
    const clock = new ManualClock()
    const stopping = new AbortController()
    const sleeping = sleep(clock, 1_000, stopping.signal)
    expect(getEventListeners(stopping.signal, 'abort')).toHaveLength(1)
    if (end === 'the time is over') clock.advance(1_000)
    else stopping.abort()
    await sleeping
    expect(getEventListeners(stopping.signal, 'abort')).toEqual([])
  })
})

test('the next turn comes after what was already queued', async () => {
  const order: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  systemClock.nextTurn(() => resolve(void order.push('turn')))
  void Promise.resolve().then(() => order.push('microtask'))
  await promise
  expect(order).toEqual(['microtask', 'turn'])
})

test('a timeout may be a difference of two times of the monotonic clock', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  systemClock.timeout(0.5).addEventListener('abort', () => resolve())
  await promise
})
