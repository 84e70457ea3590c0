import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { Periodic, type PeriodicOptions } from './periodic.ts'
import { seededRandom } from './random.ts'
import type { Logger } from './telemetry.ts'

function setUp(options: Partial<PeriodicOptions> = {}) {
  const clock = new ManualClock()
  const runs: number[] = []
  const logged: string[] = []
  const log = (level: string) => (first: unknown, second?: string) => void logged.push(`${level}: ${second ?? String(first)}`)
  const logger = { notice: log('notice'), warn: log('warn'), error: log('error') } as unknown as Logger
  const periodic = new Periodic({
    name: 'test',
    intervalMs: 1_000,
    run: () => void runs.push(clock.monotonic()),
    failure: 'run failed',
    clock,
    logger,
    ...options,
  })
  const advance = async (ms: number) => {
    clock.advance(ms)
    await setImmediate()
  }
  return { periodic, runs, logged, advance }
}

describe('Periodic', () => {
  test('runs after each interval until it is stopped', async () => {
    const { periodic, runs, advance } = setUp()
    await periodic.start()
    expect(runs).toEqual([])
    await advance(1_000)
    await advance(1_000)
    await periodic.stop()
    await advance(5_000)
    expect(runs).toEqual([1_000, 2_000])
  })

  test('runs at the start if asked to', async () => {
    const { periodic, runs } = setUp({ runAtStart: true })
    await periodic.start()
    expect(runs).toEqual([0])
    await periodic.stop()
  })

  test('runNow ends the interval early and starts a new one', async () => {
    const { periodic, runs, advance } = setUp()
    periodic.runNow()
    expect(runs, 'before the start').toEqual([])
    await periodic.start()
    await advance(400)
    periodic.runNow()
    await advance(0)
    await advance(999)
    expect(runs).toEqual([400])
    await advance(1)
    expect(runs).toEqual([400, 1_400])
    await periodic.stop()
    periodic.runNow()
    expect(runs).toHaveLength(2)
  })

  test('runNow during a run starts one more run after it', async () => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let started = 0
    const { periodic } = setUp({ runAtStart: true, run: () => gates[started++]?.promise })
    await periodic.start()
    periodic.runNow()
    periodic.runNow()
    await setImmediate()
    expect(started).toBe(1)
    gates[0]?.resolve()
    await setImmediate()
    expect(started).toBe(2)
    gates[1]?.resolve()
    await setImmediate()
    expect(started).toBe(2)
    await periodic.stop()
  })

  test('stop aborts the run in progress, waits for it, and does not log its error', async () => {
    const { periodic, logged } = setUp({
      runAtStart: true,
      run: async (signal) => {
        const { promise, reject } = Promise.withResolvers<void>()
        signal.addEventListener('abort', () => reject(signal.reason))
        await promise
      },
    })
    await periodic.start()
    await periodic.stop()
    expect(logged).toEqual([])
  })

  test('logs every failure and runs again', async () => {
    const { periodic, logged, advance } = setUp({ run: () => Promise.reject(new Error('no')) })
    await periodic.start()
    await advance(1_000)
    await advance(1_000)
    expect(logged).toEqual(['error: run failed', 'error: run failed'])
    await periodic.stop()
  })

  test('with a recovery message, logs an outage once, after enough failures, and its end', async () => {
    const outcomes = [false, true, false, false, false, true, true]
    const { periodic, logged, advance } = setUp({
      run: () => (outcomes.shift() === false ? Promise.reject(new Error('no')) : undefined),
      recovery: 'run restored',
      failuresBeforeLog: 2,
      level: 'warn',
    })
    await periodic.start()
    for (const _ of [...outcomes]) await advance(1_000)
    expect(logged).toEqual(['warn: run failed', 'notice: run restored'])
    await periodic.stop()
  })

  test('waits longer after each failure if it has a maximum delay', async () => {
    const { periodic, runs, advance } = setUp({ failureDelay: { msMax: 8_000, random: seededRandom(3) } })
    const failing = setUp({ failureDelay: { msMax: 8_000, random: seededRandom(3) }, run: () => Promise.reject(new Error('no')) })
    await Promise.all([periodic.start(), failing.periodic.start()])
    for (let second = 0; second < 60; second++) await Promise.all([advance(1_000), failing.advance(1_000)])
    expect(runs).toHaveLength(60)
    expect(failing.logged.length).toBeGreaterThan(60 / 8)
    expect(failing.logged.length).toBeLessThan(25)
    await Promise.all([periodic.stop(), failing.periodic.stop()])
  })
})
