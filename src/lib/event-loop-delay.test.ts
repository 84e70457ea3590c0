import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { until } from '../../test/support/until.ts'
import { EventLoopDelay } from './event-loop-delay.ts'

function hold(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** Holds the loop, and waits until a monitor that has seen nothing longer knows. */
async function holdMeasured(ms: number): Promise<void> {
  const probe = new EventLoopDelay(new ManualClock())
  await until('the delay to be measured', () => {
    hold(ms)
    return probe.longestMs >= ms - 20
  })
}

test('knows the longest delay of the last one to two minutes', async () => {
  const clock = new ManualClock()
  const delay = new EventLoopDelay(clock)
  await holdMeasured(400)
  expect(delay.longestMs).toBeGreaterThanOrEqual(380)
  clock.advance(60_000)
  expect(delay.longestMs).toBeGreaterThanOrEqual(380)
  await holdMeasured(100)
  clock.advance(60_000)
  expect(delay.longestMs).toBeGreaterThanOrEqual(80)
  expect(delay.longestMs).toBeLessThan(380)
})
