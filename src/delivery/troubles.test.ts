import { expect, test } from 'vitest'
import { deliveryLimits } from '#model/limits.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { until } from '../../test/support/until.ts'
import { type Trouble, Troubles } from './troubles.ts'

const { retryDelayMsMin, retryDelayMsMax } = deliveryLimits
const never = new AbortController().signal

function inTrouble() {
  const clock = new ManualClock()
  const troubles = new Troubles({ clock })
  troubles.failed('dead', 'write', new Error('no bucket'))
  const granted: Disposable[] = []
  const trouble = (): Trouble => {
    const found = troubles.find('dead')
    if (found === undefined) throw new Error('there is no trouble')
    return found
  }
  const wait = (signal = never) =>
    trouble()
      .turn(signal)
      .then((turn) => granted.push(turn))
  return { clock, troubles, granted, trouble, wait }
}

test('one of all who wait tries, after the back-off; the next one after the next back-off', async () => {
  const { clock, troubles, granted, wait } = inTrouble()
  const waiting = [1, 2, 3].map(() => wait())
  await Promise.resolve()
  expect(granted).toHaveLength(0)
  clock.advance(retryDelayMsMin)
  await until('a first try', () => granted.length === 1)
  troubles.failed('dead', 'write', new Error('still no bucket'))
  granted[0]?.[Symbol.dispose]()
  await Promise.resolve()
  expect(granted).toHaveLength(1)
  clock.advance(retryDelayMsMax)
  await until('a second try', () => granted.length === 2)
  expect(troubles.find('dead')?.reason).toBe('still no bucket')
  troubles.succeeded('dead', 'read')
  expect(troubles.find('dead')).toBeDefined()
  // One success, and nobody waits any more.
  troubles.succeeded('dead', 'write')
  granted[1]?.[Symbol.dispose]()
  await Promise.all(waiting)
  expect(troubles.find('dead')).toBeUndefined()
  expect(troubles.find('well')).toBeUndefined()
})

test('what fails together is one failure', async () => {
  const { clock, troubles, granted, wait } = inTrouble()
  for (let n = 0; n < 20; n += 1) troubles.failed('dead', 'write', new Error('no bucket'))
  const waiting = wait()
  clock.advance(retryDelayMsMin)
  await waiting
  expect(granted).toHaveLength(1)
})

test('who is told to stop does not hold up the next', async () => {
  const { clock, granted, wait } = inTrouble()
  const stop = new AbortController()
  const stopped = wait(stop.signal)
  const next = wait()
  stop.abort(new Error('stopped'))
  await expect(stopped).rejects.toThrow('stopped')
  clock.advance(retryDelayMsMin)
  await next
  expect(granted).toHaveLength(1)
})
