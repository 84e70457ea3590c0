import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '#lib/clock.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { until } from '../../test/support/until.ts'
import { type ChildSpec, Supervisor } from './supervisor.ts'

const logger = createLogger('test', 'silent')

function child(name: string, program: string, onMessage: (message: unknown) => void = () => undefined): ChildSpec {
  return { name, command: process.execPath, args: ['-e', program], environment: {}, onMessage }
}

const ready = `process.send({ type: 'ready' });`

/** Program of a child that exits when it is told to stop, and is ready as soon as it may start. */
const stoppableProgram = (name: string) => `
  process.on('message', ({ type }) => {
    if (type === 'stop') process.send('stopping ${name}', () => process.exit(0))
    else process.send('up ${name}', () => process.send({ type: 'ready' }))
  })`

function supervise(children: readonly ChildSpec[]): Supervisor {
  return new Supervisor({ ...system, children, logger })
}

const stop = (supervisor: Supervisor) => supervisor.stop(AbortSignal.timeout(5_000))

describe('Supervisor', () => {
  test('restarts a killed child and leaves the other running', async () => {
    const messages: unknown[] = []
    const supervisor = supervise(
      ['a', 'b'].map((name) => child(name, stoppableProgram(name), (message) => messages.push(message))),
    )
    await supervisor.start()
    const { a = 0, b = 0 } = supervisor.pids()
    process.kill(a, 'SIGKILL')
    await until('a to restart', () => messages.filter((message) => message === 'up a').length === 2)
    expect(supervisor.pids()['b']).toBe(b)
    expect(supervisor.pids()['a']).not.toBe(a)
    await stop(supervisor)
  })

  test('stops children one at a time, last started first', async () => {
    const messages: unknown[] = []
    const names = ['a', 'b', 'c']
    const supervisor = supervise(names.map((name) => child(name, stoppableProgram(name), (message) => messages.push(message))))
    await supervisor.start()
    await until('all to start', () => messages.length === 3)
    await stop(supervisor)
    expect(messages.slice(3)).toEqual(['stopping c', 'stopping b', 'stopping a'])
    expect(supervisor.pids()).toEqual({})
  })

  test('kills a child that is still running at the deadline', async () => {
    const messages: unknown[] = []
    const stubborn = `process.on('message', ({ type }) => type === 'stop' && process.send('told to stop')); ${ready}`
    const supervisor = supervise([child('stubborn', stubborn, (message) => messages.push(message))])
    await supervisor.start()
    const deadline = new AbortController()
    const stopped = supervisor.stop(deadline.signal)
    await until('the child to be told', () => messages.includes('told to stop'))
    deadline.abort()
    await stopped
    expect(supervisor.pids()).toEqual({})
  })

  test('restarts a child that was ready with growing delays, also if it cannot start again', async () => {
    const delays: number[] = []
    const clock: Clock = {
      ...systemClock,
      setTimer: (callback, delayMs) => {
        delays.push(delayMs)
        return systemClock.setTimer(callback, delays.length < 6 ? 0 : 60_000)
      },
    }
    const directory = await mkdtemp(join(tmpdir(), 'inlet-supervisor-'))
    const mark = JSON.stringify(join(directory, 'mark'))
    const readyOnce = `
      const { existsSync, writeFileSync } = require('node:fs')
      if (existsSync(${mark})) process.exit(3)
      writeFileSync(${mark}, '')
      process.send({ type: 'ready' }, () => process.exit(0))`
    const supervisor = new Supervisor({ ...system, children: [child('broken', readyOnce)], clock, logger })
    await supervisor.start()
    await until('six ends', () => delays.length === 6)
    await stop(supervisor)
    expect(delays[5]).toBeGreaterThan(3_000)
    expect(delays[0]).toBeLessThanOrEqual(200)
    await rm(directory, { recursive: true })
  })
})

describe('the start', () => {
  test.each([
    [
      `process.send({ type: 'failed', reason: 'the port is taken' }); process.exitCode = 1; process.disconnect()`,
      /^the port is taken$/,
    ],
    ['process.exit(3)', /^broken ended before it was ready \(exit code 3\); its log above says why$/],
    [`process.kill(process.pid, 'SIGKILL')`, /^broken ended before it was ready \(SIGKILL\)/],
  ])('fails if a child ends before it is ready: %s', async (program, message) => {
    const supervisor = supervise([child('fine', stoppableProgram('fine')), child('broken', program)])
    await expect(supervisor.start()).rejects.toThrow(message)
    expect(supervisor.pids()).toEqual({ fine: expect.any(Number) })
    await stop(supervisor)
    expect(supervisor.pids()).toEqual({})
  })

  test('of the next children waits until the first one is ready', async () => {
    const messages: unknown[] = []
    const first = `process.on('message', ({ type }) => {
      if (type === 'stop') process.exit(0)
      else process.send('first', () => process.send({ type: 'ready' }))
    })`
    const keep = (message: unknown) => messages.push(message)
    const supervisor = supervise([
      { ...child('first', first, keep), startsFirst: true },
      child('second', stoppableProgram('second'), keep),
    ])
    await supervisor.start()
    await stop(supervisor)
    expect(messages).toEqual(['first', 'up second', 'stopping second'])
  })

  test('of the next children does not happen if the first one fails', async () => {
    const messages: unknown[] = []
    const second = child('second', stoppableProgram('second'), (message) => messages.push(message))
    const supervisor = supervise([{ ...child('first', 'process.exit(1)'), startsFirst: true }, second])
    await expect(supervisor.start()).rejects.toThrow('first ended')
    await stop(supervisor)
    expect(messages).toEqual(['stopping second'])
  })

  test('ends when it is stopped meanwhile', async () => {
    const slow = `process.on('message', ({ type }) => type === 'stop' && process.exit(0))`
    const supervisor = supervise([{ ...child('slow', slow), startsFirst: true }, child('next', stoppableProgram('next'))])
    const started = supervisor.start()
    await stop(supervisor)
    await started
    expect(supervisor.pids()).toEqual({})
  })
})
