import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import { EpochFeed } from './epoch-feed.ts'
import { clusterLimits } from './limits.ts'

/** A clock whose timers the test fires. */
function manualClock() {
  const timers = new Map<() => void, number>()
  const clock: Clock = {
    ...systemClock,
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
      if (database.fails) throw new Error('the database is unreachable')
      return database.epoch
    },
    clock,
    logger: createLogger('test', 'silent'),
  })
  await feed.start()
  /** Waits until the epoch differs from `known` and returns it. */
  const waitForOther = async (known: number, waitMs: number, signal: AbortSignal) => {
    await feed.waitUntil(() => database.epoch !== known, waitMs, signal)
    return feed.current
  }
  return { feed, waitForOther, database, fire, timers, never: new AbortController().signal }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('EpochFeed', () => {
  test('returns at once if the epoch already differs, higher or lower', async () => {
    const { waitForOther, never } = await started(5)
    expect(await waitForOther(4, 1_000, never)).toBe(5)
    expect(await waitForOther(9, 1_000, never)).toBe(5)
    expect(await waitForOther(5, 0, never)).toBe(5)
  })

  test('wakes waiters at a change of this process', async () => {
    const { feed, waitForOther, database, never } = await started()
    const waiting = waitForOther(1, 1_000, never)
    await turn()
    database.epoch = 2
    await feed.notifyChanged()
    expect(await waiting).toBe(2)
  })

  test('wakes waiters at a change of another process at the next poll', async () => {
    const { waitForOther, database, fire, never } = await started()
    const waiting = waitForOther(1, 9_999, never)
    await turn()
    database.epoch = 2
    fire(clusterLimits.epochPollMs)
    expect(await waiting).toBe(2)
  })

  test('ends a wait at its timeout, when the caller aborts, and at stop, and leaves no timer', async () => {
    const { feed, waitForOther, fire, timers, never } = await started()
    const timedOut = waitForOther(1, 5, never)
    await turn()
    fire(5)
    expect(await timedOut).toBe(1)
    const gone = new AbortController()
    const abandoned = waitForOther(1, 9_999, gone.signal)
    await turn()
    gone.abort()
    expect(await abandoned).toBe(1)
    const stopped = waitForOther(1, 9_999, never)
    await turn()
    await feed.stop()
    expect(await stopped).toBe(1)
    expect(await waitForOther(1, 9_999, never)).toBe(1)
    expect(timers.size).toBe(0)
  })

  test('calls listeners before it wakes waiters, and calls a failed listener again', async () => {
    const { feed, waitForOther, database, never } = await started()
    const calls: number[] = []
    let fails = true
    feed.subscribe(async (epoch) => {
      if (fails) throw new Error('cannot load')
      calls.push(epoch)
    })
    const waiting = waitForOther(1, 9_999, never).then((epoch) => calls.push(-epoch))
    await turn()
    database.epoch = 2
    await feed.notifyChanged()
    expect(calls).toEqual([])
    fails = false
    await feed.notifyChanged()
    await waiting
    expect(calls).toEqual([2, -2])
  })

  test('survives a database outage', async () => {
    const { feed, waitForOther, database, fire, never } = await started()
    const waiting = waitForOther(1, 9_999, never)
    await turn()
    database.fails = true
    await feed.notifyChanged()
    fire(clusterLimits.epochPollMs)
    await turn()
    database.fails = false
    database.epoch = 3
    fire(clusterLimits.epochPollMs)
    expect(await waiting).toBe(3)
  })

  test('rejects waiters beyond its bound until others are done', async () => {
    const { feed, waitForOther, database, never } = await started()
    const waiting = Array.from({ length: clusterLimits.snapshotWaitersMax }, () => waitForOther(1, 9_999, never))
    await turn()
    await expect(waitForOther(1, 9_999, never)).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 1 })
    database.epoch = 2
    await feed.notifyChanged()
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([2]))
    expect(await waitForOther(1, 9_999, never)).toBe(2)
  })
})
