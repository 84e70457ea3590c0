import { expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { hurriedClock } from '../../../test/support/hurried-clock.ts'
import { Endpoints } from '../segments/endpoints.ts'
import { deliveryLimits } from '../segments/limits.ts'
import { ConfigurationCheck } from './configuration-check.ts'
import { conversionLimits } from './limits.ts'

function furnished(isCurrent: (call: number) => Promise<boolean>) {
  let calls = 0
  const clock = hurriedClock()
  const stop = new AbortController()
  const check = new ConfigurationCheck({
    ...system,
    isCurrent: () => isCurrent(++calls),
    endpoints: new Endpoints(),
    clock,
    logger: createLogger('delivery', 'silent'),
  })
  const wait = () => check.waitUntilCurrent(stop.signal)
  return { wait, stop, elapsed: clock.monotonic, calls: () => calls }
}
const away = () => Promise.reject(new Error('control is away'))

test('waits until control confirms the configuration', async () => {
  const { wait, calls } = furnished(async (call) => call === 3)
  await wait()
  expect(calls()).toBe(3)
})

test('waits for a control that is starting, and then goes on with what it knows, without waiting again', async () => {
  const { wait, elapsed, calls } = furnished(away)
  await wait()
  expect(elapsed()).toBeGreaterThanOrEqual(deliveryLimits.controlWaitMsMax)
  const [before, asked] = [elapsed(), calls()]
  await wait()
  expect(elapsed()).toBe(before)
  expect(calls() - asked).toBeLessThanOrEqual(1)
})

test('waits less for a control that was there before', async () => {
  const { wait, elapsed } = furnished((call) => (call === 1 ? Promise.resolve(true) : away()))
  await wait()
  await wait()
  expect(elapsed()).toBeGreaterThanOrEqual(conversionLimits.configurationWaitMsMax)
  expect(elapsed()).toBeLessThan(conversionLimits.configurationWaitMsMax + 2 * conversionLimits.configurationDelayMsMax)
})

test('waits again once control is back', async () => {
  let isAway = true
  const { wait, calls } = furnished(async (call) => (isAway ? away() : call % 2 === 0))
  await wait()
  isAway = false
  await wait()
  await new Promise(setImmediate)
  const asked = calls()
  await wait()
  expect(calls()).toBeGreaterThan(asked)
})

test('many segments share one question, and none relies on one that was sent before', async () => {
  const answers: ((isCurrent: boolean) => void)[] = []
  const { wait, calls } = furnished(() => new Promise((resolve) => answers.push(resolve)))
  const first = wait()
  await new Promise(setImmediate)
  const others = [wait(), wait(), wait()]
  answers[0]?.(true)
  await first
  await new Promise(setImmediate)
  expect(calls()).toBe(2)
  answers[1]?.(true)
  await Promise.all(others)
  expect(calls()).toBe(2)
})

test('a stop ends the wait at once', async () => {
  const { wait, stop } = furnished(() => new Promise(() => undefined))
  const waiting = wait()
  await new Promise(setImmediate)
  stop.abort(new Error('stopped'))
  await expect(waiting).rejects.toThrow('stopped')
})
