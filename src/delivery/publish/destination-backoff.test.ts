import { expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { until } from '../../../test/support/until.ts'
import { deliveryLimits } from '../segments/limits.ts'
import { DestinationBackoff, type Outage } from './destination-backoff.ts'

const { retryDelayMsMin, retryDelayMsMax } = deliveryLimits
const never = new AbortController().signal

function withOutage() {
  const clock = new ManualClock()
  const backoff = new DestinationBackoff({ ...system, clock })
  backoff.recordFailure('dead', 'write', new Error('no bucket'))
  const granted: Disposable[] = []
  const outage = (): Outage => {
    const found = backoff.find('dead')
    if (found === undefined) throw new Error('there is no outage')
    return found
  }
  const wait = (signal = never) =>
    outage()
      .acquire(signal)
      .then((permit) => granted.push(permit))
  return { clock, backoff, granted, wait }
}

test('one waiter tries after the back-off, and the next one after the next back-off', async () => {
  const { clock, backoff, granted, wait } = withOutage()
  const waiting = [1, 2, 3].map(() => wait())
  await Promise.resolve()
  expect(granted).toHaveLength(0)
  clock.advance(retryDelayMsMin)
  await until('a first try', () => granted.length === 1)
  backoff.recordFailure('dead', 'write', new Error('still no bucket'))
  granted[0]?.[Symbol.dispose]()
  await Promise.resolve()
  expect(granted).toHaveLength(1)
  clock.advance(retryDelayMsMax)
  await until('a second try', () => granted.length === 2)
  expect(backoff.find('dead')?.reason).toBe('still no bucket')
  backoff.recordSuccess('dead', 'read')
  expect(backoff.find('dead')).toBeDefined()
  // After one success, no request waits any more.
  backoff.recordSuccess('dead', 'write')
  granted[1]?.[Symbol.dispose]()
  await Promise.all(waiting)
  expect(backoff.find('dead')).toBeUndefined()
  expect(backoff.find('healthy')).toBeUndefined()
})

test('requests that fail together count as one failure', async () => {
  const { clock, backoff, granted, wait } = withOutage()
  for (let n = 0; n < 20; n += 1) backoff.recordFailure('dead', 'write', new Error('no bucket'))
  const waiting = wait()
  clock.advance(retryDelayMsMin)
  await waiting
  expect(granted).toHaveLength(1)
})

test('a waiter that is aborted does not delay the next', async () => {
  const { clock, granted, wait } = withOutage()
  const stop = new AbortController()
  const stopped = wait(stop.signal)
  const next = wait()
  stop.abort(new Error('stopped'))
  await expect(stopped).rejects.toThrow('stopped')
  clock.advance(retryDelayMsMin)
  await next
  expect(granted).toHaveLength(1)
})
