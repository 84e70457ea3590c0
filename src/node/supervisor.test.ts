import { describe, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import { until } from '../../test/support/until.ts'
import { type ChildSpec, Supervisor } from './supervisor.ts'

const logger = createLogger('test', 'silent')

function child(name: string, program: string, onMessage: (message: unknown) => void = () => undefined): ChildSpec {
  return { name, command: process.execPath, args: ['-e', program], environment: {}, onMessage }
}

/** Says its name when it is told to stop, and ends. */
const polite = (name: string) => `
  process.on('SIGTERM', () => process.send('stopping ${name}', () => process.exit(0)))
  process.send('up ${name}')
  setInterval(() => {}, 1000)`

describe('Supervisor', () => {
  test('starts a killed child again and leaves the other alone', async () => {
    const said: unknown[] = []
    const supervisor = new Supervisor({
      children: ['a', 'b'].map((name) => child(name, polite(name), (message) => said.push(message))),
      clock: systemClock,
      logger,
    })
    await supervisor.start()
    await until('both to be up', () => said.length === 2)
    const { a = 0, b = 0 } = supervisor.pids()
    process.kill(a, 'SIGKILL')
    await until('a to be up again', () => said.filter((message) => message === 'up a').length === 2)
    expect(supervisor.pids()['b']).toBe(b)
    expect(supervisor.pids()['a']).not.toBe(a)
    await supervisor.stop(AbortSignal.timeout(5_000))
  })

  test('stops one after the other, last started first', async () => {
    const said: unknown[] = []
    const supervisor = new Supervisor({
      children: ['a', 'b', 'c'].map((name) => child(name, polite(name), (message) => said.push(message))),
      clock: systemClock,
      logger,
    })
    await supervisor.start()
    await until('all to be up', () => said.length === 3)
    await supervisor.stop(AbortSignal.timeout(5_000))
    expect(said.slice(3)).toEqual(['stopping c', 'stopping b', 'stopping a'])
    expect(supervisor.pids()).toEqual({})
  })

  test('kills at the deadline what does not stop', async () => {
    const said: unknown[] = []
    const deaf = `process.on('SIGTERM', () => process.send('heard')); process.send('up'); setInterval(() => {}, 1000)`
    const supervisor = new Supervisor({
      children: [child('deaf', deaf, (message) => said.push(message))],
      clock: systemClock,
      logger,
    })
    await supervisor.start()
    await until('it to be up', () => said.includes('up'))
    const deadline = new AbortController()
    const stopped = supervisor.stop(deadline.signal)
    await until('it to have heard', () => said.includes('heard'))
    deadline.abort()
    await stopped
    expect(supervisor.pids()).toEqual({})
  })

  test('a child that always fails is tried with growing pauses', async () => {
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
