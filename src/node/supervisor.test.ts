import { describe, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import { until } from '../../test/support/until.ts'
import { type ChildSpec, Supervisor } from './supervisor.ts'

const logger = createLogger('test', 'silent')

function child(name: string, program: string, onMessage: (message: unknown) => void = () => undefined): ChildSpec {
  return { name, command: process.execPath, args: ['-e', program], environment: {}, onMessage }
}

/** Program of a child that sends a message and exits on SIGTERM. */
const stoppableProgram = (name: string) => `
  process.on('SIGTERM', () => process.send('stopping ${name}', () => process.exit(0)))
  process.send('up ${name}')
  setInterval(() => {}, 1000)`

describe('Supervisor', () => {
  test('restarts a killed child and leaves the other running', async () => {
    const messages: unknown[] = []
    const supervisor = new Supervisor({
      children: ['a', 'b'].map((name) => child(name, stoppableProgram(name), (message) => messages.push(message))),
      clock: systemClock,
      logger,
    })
    await supervisor.start()
    await until('both to start', () => messages.length === 2)
    const { a = 0, b = 0 } = supervisor.pids()
    process.kill(a, 'SIGKILL')
    await until('a to restart', () => messages.filter((message) => message === 'up a').length === 2)
    expect(supervisor.pids()['b']).toBe(b)
    expect(supervisor.pids()['a']).not.toBe(a)
    await supervisor.stop(AbortSignal.timeout(5_000))
  })

  test('stops children one at a time, last started first', async () => {
    const messages: unknown[] = []
    const supervisor = new Supervisor({
      children: ['a', 'b', 'c'].map((name) => child(name, stoppableProgram(name), (message) => messages.push(message))),
      clock: systemClock,
      logger,
    })
    await supervisor.start()
    await until('all to start', () => messages.length === 3)
    await supervisor.stop(AbortSignal.timeout(5_000))
    expect(messages.slice(3)).toEqual(['stopping c', 'stopping b', 'stopping a'])
    expect(supervisor.pids()).toEqual({})
  })

  test('kills a child that is still running at the deadline', async () => {
    const messages: unknown[] = []
    const stubborn = `process.on('SIGTERM', () => process.send('SIGTERM received')); process.send('up'); setInterval(() => {}, 1000)`
    const supervisor = new Supervisor({
      children: [child('stubborn', stubborn, (message) => messages.push(message))],
      clock: systemClock,
      logger,
    })
    await supervisor.start()
    await until('the child to start', () => messages.includes('up'))
    const deadline = new AbortController()
    const stopped = supervisor.stop(deadline.signal)
    await until('the child to receive SIGTERM', () => messages.includes('SIGTERM received'))
    deadline.abort()
    await stopped
    expect(supervisor.pids()).toEqual({})
  })

  test('restarts a failing child with growing delays', async () => {
    const delays: number[] = []
    const supervisor = new Supervisor({
      children: [child('broken', 'process.exit(3)')],
      clock: {
        ...systemClock,
        setTimer: (callback, delayMs) => {
          delays.push(delayMs)
          return systemClock.setTimer(callback, delays.length < 6 ? 0 : 60_000)
        },
      },
      logger,
    })
    await supervisor.start()
    await until('six failures', () => delays.length === 6)
    await supervisor.stop(AbortSignal.timeout(5_000))
    expect(delays[5]).toBeGreaterThan(3_000)
    expect(delays[0]).toBeLessThanOrEqual(200)
  })
})
