import { describe, expect, test } from 'vitest'
import type { Clock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import { controlLimits } from '../limits.ts'
import { EpochFeed } from './epoch-feed.ts'

/** Timers go off when the test says so. */
function manualClock() {
  const timers = new Map<() => void, number>()
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    setTimer(callback, delayMs) {
      timers.set(callback, delayMs)
      return () => timers.delete(callback)
    },
  }
  const fire = (delayMs: number) => {
    for (const [callback, delay] of [...timers]) {
      if (delay !== delayMs) continue
      timers.delete(callback)
      callback()
    }
  }
  return { clock, fire, timers }
}

async function started(epoch = 1) {
  const database = { epoch, fails: false }
  const { clock, fire, timers } = manualClock()
  const feed = new EpochFeed({
    readEpoch: async () => {
      if (database.fails) throw new Error('the database is away')
      return database.epoch
    },
    clock,
    logger: createLogger('test', 'silent'),
  })
  await feed.start()
  /** Waits for another epoch than `known` and returns it. */
  const waitForOther = async (known: number, waitMs: number, signal: AbortSignal) => {
    await feed.waitUntil(() => database.epoch !== known, waitMs, signal)
    return feed.current
  }
  return { feed, waitForOther, database, fire, timers, never: new AbortController().signal }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('EpochFeed', () => {
  test('answers at once where the epoch is another already, higher or lower', async () => {
    const { waitForOther, never } = await started(5)
    expect(await waitForOther(4, 1_000, never)).toBe(5)
    expect(await waitForOther(9, 1_000, never)).toBe(5)
    expect(await waitForOther(5, 0, never)).toBe(5)
  })

  test('wakes at a change of this process', async () => {
    const { feed, waitForOther, database, never } = await started()
    const waiting = waitForOther(1, 1_000, never)
    await turn()
    database.epoch = 2
    await feed.changed()
    expect(await waiting).toBe(2)
  })

  test('wakes at a change of another process with the next poll', async () => {
    const { waitForOther, database, fire, never } = await started()
    const waiting = waitForOther(1, 9_999, never)
    await turn()
    database.epoch = 2
    fire(controlLimits.epochPollMs)
    expect(await waiting).toBe(2)
  })

  test('gives up after the time, when the caller is gone, and when it stops; no timer is left', async () => {
    const { feed, waitForOther, fire, timers, never } = await started()
    const tired = waitForOther(1, 5, never)
    await turn()
    fire(5)
    expect(await tired).toBe(1)
    const gone = new AbortController()
    const abandoned = waitForOther(1, 9_999, gone.signal)
    await turn()
    gone.abort()
    expect(await abandoned).toBe(1)
    const cut = waitForOther(1, 9_999, never)
    await turn()
    await feed.stop()
    expect(await cut).toBe(1)
    expect(await waitForOther(1, 9_999, never)).toBe(1)
    expect(timers.size).toBe(0)
  })

  test('tells listeners before it wakes those who wait, and asks a listener again that failed', async () => {
    const { feed, waitForOther, database, never } = await started()
    const heard: number[] = []
    let fails = true
    feed.subscribe(async (epoch) => {
      if (fails) throw new Error('cannot load')
      heard.push(epoch)
    })
    const waiting = waitForOther(1, 9_999, never).then((epoch) => heard.push(-epoch))
    await turn()
    database.epoch = 2
    await feed.changed()
    expect(heard).toEqual([])
    fails = false
    await feed.changed()
    await waiting
    expect(heard).toEqual([2, -2])
  })

  test('outlives a database that is away for a while', async () => {
    const { feed, waitForOther, database, fire, never } = await started()
    const waiting = waitForOther(1, 9_999, never)
    await turn()
    database.fails = true
    await feed.changed()
    fire(controlLimits.epochPollMs)
    await turn()
    database.fails = false
    database.epoch = 3
    fire(controlLimits.epochPollMs)
    expect(await waiting).toBe(3)
  })

  test('refuses more waiters than its bound, and takes others when some are done', async () => {
    const { feed, waitForOther, database, never } = await started()
    const waiting = Array.from({ length: controlLimits.snapshotWaitersMax }, () => waitForOther(1, 9_999, never))
    await turn()
    await expect(waitForOther(1, 9_999, never)).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 1 })
    database.epoch = 2
    await feed.changed()
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([2]))
    expect(await waitForOther(1, 9_999, never)).toBe(2)
  })
})
