import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { systemClock } from './clock.ts'
import { FairSlots } from './fair-slots.ts'

const never = new AbortController().signal

/** Starts work that ends when the test says so, or as soon as its slot is wanted. */
function start(slots: FairSlots, tenant: string, use: Partial<Parameters<FairSlots['run']>[1]> = {}) {
  const finish = Promise.withResolvers<string>()
  const starts: AbortSignal[] = []
  const ended = slots.run({ tenant, member: tenant, weight: 1 }, { signal: never, ...use }, (signal) => {
    starts.push(signal)
    const aborted = Promise.withResolvers<never>()
    signal.addEventListener('abort', () => aborted.reject(signal.reason))
    return Promise.race([finish.promise, aborted.promise])
  })
  ended.catch(() => undefined)
  return { starts, ended, finish }
}

function slotsOf(capacity: number): FairSlots {
  return new FairSlots({ capacity, clock: systemClock })
}

test('work of a tenant that holds more than its share is ended for another tenant, and repeated', async () => {
  const slots = slotsOf(2)
  const [older, younger] = [start(slots, 'a'), start(slots, 'a')]
  await setImmediate()
  const other = start(slots, 'b')
  await setImmediate()
  expect(older.starts.map(({ aborted }) => aborted)).toEqual([false])
  expect(younger.starts.map(({ aborted }) => aborted)).toEqual([true])
  expect(other.starts).toHaveLength(1)
  other.finish.resolve('built')
  expect(await other.ended).toBe('built')
  await setImmediate()
  expect(younger.starts.map(({ aborted }) => aborted)).toEqual([true, false])
  younger.finish.resolve('built at last')
  expect(await younger.ended).toBe('built at last')
})

test('work of low priority gives its slot to other work, and is repeated', async () => {
  const slots = slotsOf(1)
  const low = start(slots, 'a', { priority: 'low' })
  await setImmediate()
  const normal = start(slots, 'a')
  await setImmediate()
  expect([low.starts.length, normal.starts.length]).toEqual([1, 1])
  normal.finish.reject(new Error('the work fails'))
  await expect(normal.ended).rejects.toThrow('the work fails')
  await setImmediate()
  expect(low.starts).toHaveLength(2)
})

test('an abort ends waiting and work', async () => {
  const slots = slotsOf(1)
  const abort = new AbortController()
  const running = start(slots, 'a', { signal: abort.signal })
  const waiting = start(slots, 'b', { signal: abort.signal })
  const next = start(slots, 'b')
  abort.abort(new Error('enough'))
  await expect(running.ended).rejects.toThrow('enough')
  await expect(waiting.ended).rejects.toThrow('enough')
  await expect(start(slots, 'c', { signal: abort.signal }).ended).rejects.toThrow('enough')
  await setImmediate()
  expect([waiting.starts.length, next.starts.length]).toEqual([0, 1])
})

test('with a maximum lead, the last slot of a tenant is for another one after that time', async () => {
  const clock = new ManualClock()
  const slots = new FairSlots({ capacity: 2, leadMsMax: 500, clock })
  const [older, younger] = [start(slots, 'a'), start(slots, 'b')]
  const other = start(slots, 'c')
  clock.advance(499)
  await setImmediate()
  expect([older, younger, other].map(({ starts }) => starts.map(({ aborted }) => aborted))).toEqual([[false], [false], []])
  clock.advance(101)
  await setImmediate()
  expect([older, younger, other].map(({ starts }) => starts.map(({ aborted }) => aborted))).toEqual([[false], [true], [false]])
  other.finish.resolve('done')
  await setImmediate()
  expect(younger.starts.map(({ aborted }) => aborted)).toEqual([true, false])
})
