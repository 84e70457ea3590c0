import { expect, test, vi } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import { hourMs } from '#lib/time-units.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { CheckedClock } from './checked-clock.ts'

function make() {
  const machine = new ManualClock()
  const logger = createLogger('test', 'silent')
  const warn = vi.spyOn(logger, 'warn')
  const clock = new CheckedClock({ machine, logger })
  return { machine, clock, warn, start: machine.now() }
}

test.each([hourMs, -hourMs])('a jump of the machine’s clock by %d ms changes nothing, and is reported', (jump) => {
  const { machine, clock, warn, start } = make()
  clock.observe(start, clock.monotonic())
  machine.advance(5_000)
  machine.jump(jump)
  expect(clock.now()).toBe(start + 5_000)
  clock.observe(start + 5_000, clock.monotonic())
  const problem = `the clock of this machine is 3600 s ${jump > 0 ? 'ahead of' : 'behind'} that of control, which is used: set both by NTP`
  expect(clock.problem).toBe(problem)
  clock.observe(start + 5_000, clock.monotonic())
  expect(warn.mock.calls).toEqual([[problem]])
  machine.jump(-jump)
  expect(clock.problem).toBeUndefined()
})

test.each([40_000, -40_000])('a machine that starts %d ms off follows control from its first answer on', (off) => {
  const { machine, clock, start } = make()
  const time = start - off
  expect(clock.now()).toBe(start)
  // Slow, but better than nothing.
  const askedAt = clock.monotonic()
  machine.advance(8_000)
  clock.observe(time + 4_000, askedAt)
  expect(clock.now()).toBe(time + 8_000)
  expect(clock.problem).toContain(`40 s ${off > 0 ? 'ahead of' : 'behind'}`)
})

test('an answer corrects only what its round trip proves', () => {
  const { machine, clock, start } = make()
  clock.observe(start, clock.monotonic())
  const askedAt = clock.monotonic()
  machine.advance(400)
  // Anything from `start` to `start + 400` may have been the time at which control answered.
  for (const said of [start + 1, start + 399]) clock.observe(said, askedAt)
  expect(clock.now()).toBe(start + 400)
  clock.observe(start + 1_400, askedAt)
  expect(clock.now()).toBe(start + 1_600)
  machine.advance(10_000)
  clock.observe(start, askedAt)
  expect(clock.now()).toBe(start + 11_600)
})

test('control that does not say the time, or does not answer, changes nothing', async () => {
  const { machine, clock, start } = make()
  clock.observe(undefined, clock.monotonic())
  expect([clock.now(), clock.problem]).toEqual([start, undefined])
  const control = { fetchLastHeartbeat: () => Promise.reject(new Error('control is away')) }
  const options = { machine, logger: createLogger('test', 'silent') }
  expect((await CheckedClock.start(options, control, 'n')).now()).toBe(start)
  const there = { fetchLastHeartbeat: () => Promise.resolve({ seconds_ago: null, time: start + hourMs }) }
  expect((await CheckedClock.start(options, there, 'n')).now()).toBe(start + hourMs)
})

test('nothing is surely old because of a correction, or before the time was checked', () => {
  const { machine, clock, start } = make()
  expect(clock.surelyBefore(hourMs)).toBe(Number.NEGATIVE_INFINITY)
  clock.observe(start, clock.monotonic())
  expect(clock.surelyBefore(hourMs)).toBe(start - hourMs)
  clock.observe(start + 5 * hourMs, clock.monotonic())
  expect(clock.surelyBefore(hourMs)).toBe(start - hourMs)
  machine.advance(hourMs)
  expect(clock.surelyBefore(hourMs)).toBe(start + 5 * hourMs)
  // Back, and forward again.
  clock.observe(start, clock.monotonic())
  clock.observe(start + 5 * hourMs, clock.monotonic())
  expect(clock.surelyBefore(hourMs)).toBe(start - hourMs)
})

test('without control, what is older than this process is surely old once it has run for so long', () => {
  const { machine, clock, start } = make()
  machine.advance(hourMs)
  expect(clock.surelyBefore(hourMs)).toBe(start)
})
