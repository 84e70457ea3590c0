import { expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { deliveryLimits } from '../segments/limits.ts'
import { KnownCommits } from './known-commits.ts'

const known = { id: 'a', records: 3 }

/** Each wait ends at once, and takes a second of this clock. */
function furnished(find: () => Promise<readonly (typeof known)[]>) {
  let now = 0
  const clock = {
    ...systemClock,
    monotonic: () => now,
    setTimer: (callback: () => void) => {
      now += 1_000
      return systemClock.setTimer(callback, 0)
    },
  }
  const reported: (string | null)[] = []
  const run = { signal: new AbortController().signal, report: (reason: string | null) => reported.push(reason) }
  const commits = new KnownCommits({ ...system, find, clock, logger: createLogger('delivery', 'silent') })
  return { ask: () => commits.find('a', run), reported, elapsed: () => now }
}

test('waits for a control that is starting', async () => {
  let attempts = 0
  const { ask, reported } = furnished(async () => {
    attempts += 1
    if (attempts < 4) throw new Error('control is away')
    return [known]
  })
  expect(await ask()).toEqual(known)
  expect(reported).toEqual([...Array(3).fill(expect.stringContaining('control is away')), null])
})

test('no longer waits once control has been away for long', async () => {
  const { ask, elapsed } = furnished(() => Promise.reject(new Error('control is away')))
  expect(await ask()).toBeUndefined()
  expect(elapsed()).toBe(deliveryLimits.controlWaitMsMax)
  expect(await ask()).toBeUndefined()
  expect(elapsed()).toBe(deliveryLimits.controlWaitMsMax)
})
