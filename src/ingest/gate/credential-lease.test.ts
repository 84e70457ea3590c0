import { expect, test } from 'vitest'
import { seededRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { CredentialLease } from './credential-lease.ts'

type Control = { answer: () => Promise<boolean>; asked: number }

async function started(seconds: number | null = 30) {
  const clock = new ManualClock()
  const control: Control = { answer: async () => true, asked: 0 }
  let ended = 0
  const lease = new CredentialLease({
    seconds,
    isCurrent: () => {
      control.asked += 1
      return control.answer()
    },
    onEnded: () => {
      ended += 1
    },
    ...{ clock, random: seededRandom(3), logger: createLogger('test', 'silent') },
  })
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 250) {
      clock.advance(Math.min(250, left))
      for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const before = lease.refusal
  await lease.start()
  await pass(1)
  return { clock, control, lease, pass, before, ended: () => ended }
}

test('lasts from the question that control answered, and ends with open connections', async () => {
  const { control, lease, pass, before, ended } = await started()
  expect([before, lease.refusal]).toEqual([expect.stringContaining('since its start'), undefined])
  await pass(20_000)
  expect([control.asked, ended()]).toEqual([5, 0])
  control.answer = () => Promise.reject(new Error('away'))
  await pass(24_000)
  expect(lease.refusal).toBeUndefined()
  await pass(7_000)
  expect(lease.refusal).toMatch(
    /^control has not confirmed the credentials of this node for 3\d s, longer than the lease of 30 s on them$/,
  )
  expect(ended()).toBe(1)
  control.answer = async () => true
  await pass(2_500)
  expect([lease.refusal, ended()]).toEqual([undefined, 1])
  await lease.stop()
})

test('a node that lacks a change is not confirmed', async () => {
  const { control, lease, pass, ended } = await started()
  control.answer = async () => false
  await pass(31_000)
  expect([lease.refusal === undefined, ended()]).toEqual([false, 1])
  await lease.stop()
})

test('an answer counts from its question, however late it is', async () => {
  const { clock, control, lease, pass } = await started()
  const late = Promise.withResolvers<boolean>()
  control.answer = () => late.promise
  await pass(5_250)
  clock.advance(29_000)
  late.resolve(true)
  await pass(250)
  expect(lease.refusal).toBeUndefined()
  control.answer = () => Promise.reject(new Error('away'))
  clock.advance(1_500)
  expect(lease.refusal).toBeDefined()
  await lease.stop()
})

test('a process that stood still has no lease, although no timer has run yet', async () => {
  const { clock, lease } = await started()
  const { monotonic } = clock
  clock.monotonic = () => monotonic.call(clock) + 31_000
  expect(lease.refusal).toBeDefined()
  await lease.stop()
})

test('without a lease nothing is asked, and nothing refused', async () => {
  const { control, lease, pass, before, ended } = await started(null)
  await pass(120_000)
  expect([before, lease.refusal, control.asked, ended()]).toEqual([undefined, undefined, 0, 0])
  await lease.stop()
})
