import { describe, expect, test } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import type { LeaderLock } from '#store/engines/leader-lock.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { createLeadership, ElectedLeadership } from './leadership.ts'
import { clusterLimits } from './limits.ts'

const logger = createLogger('test', 'silent')
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A lock whose outcome the test decides. */
class SteeredLock implements LeaderLock {
  outcome: 'held' | 'taken' | 'fails' | 'silence' = 'held'
  closed = 0
  term = 1
  async hold(): Promise<number | undefined> {
    if (this.outcome === 'silence') return new Promise(() => undefined)
    if (this.outcome === 'fails') throw new Error('the database is unreachable')
    return this.outcome === 'held' ? this.term : undefined
  }
  async close(): Promise<void> {
    this.closed += 1
  }
}

function aLeadership() {
  const [clock, lock] = [new ManualClock(), new SteeredLock()]
  let onLost: () => void = () => undefined
  const newLock = (lost: () => void) => {
    onLost = lost
    return lock
  }
  const leadership = new ElectedLeadership({ newLock, clock, logger })
  const poll = async () => {
    clock.advance(clusterLimits.leadershipPollMs)
    await turn()
  }
  return { clock, lock, leadership, poll, lose: () => onLost() }
}

/** Starts work that lasts until its signal aborts. */
function beginWork(leadership: ElectedLeadership) {
  const work = { begun: 0, aborted: 0 }
  const run = leadership.whileLeading(async (signal) => {
    work.begun += 1
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    work.aborted += 1
    signal.throwIfAborted()
  })
  return { work, done: run(new AbortController().signal) }
}

describe('leadership', () => {
  test('on SQLite the only process always leads', async () => {
    const leadership = createLeadership({ newLeaderLock: undefined } as Parameters<typeof createLeadership>[0], {
      clock: new ManualClock(),
      logger,
    })
    expect(leadership.isLeader).toBe(true)
  })

  test('is known when start returns, and work runs only while it lasts', async () => {
    const { lock, leadership, poll } = aLeadership()
    lock.outcome = 'taken'
    await leadership.start()
    expect(leadership.isLeader).toBe(false)
    const before = beginWork(leadership)
    await before.done
    expect(before.work).toEqual({ begun: 0, aborted: 0 })
    lock.outcome = 'held'
    await poll()
    expect(leadership.isLeader).toBe(true)
    const { work, done } = beginWork(leadership)
    await poll()
    expect(work).toEqual({ begun: 1, aborted: 0 })
    await leadership.stop()
    await done
    expect([work, leadership.isLeader, lock.closed]).toEqual([{ begun: 1, aborted: 1 }, false, 1])
  })

  test('ends at once when the connection is lost, and returns with the lock', async () => {
    const { leadership, poll, lose } = aLeadership()
    await leadership.start()
    const { work, done } = beginWork(leadership)
    lose()
    await done
    expect([work.aborted, leadership.isLeader]).toEqual([1, false])
    await poll()
    expect(leadership.isLeader).toBe(true)
    await leadership.stop()
  })

  test('ends when the database does not confirm the lock', async () => {
    const { lock, leadership, poll } = aLeadership()
    await leadership.start()
    const { work, done } = beginWork(leadership)
    lock.outcome = 'fails'
    await poll()
    await done
    expect([work.aborted, leadership.isLeader]).toEqual([1, false])
    await leadership.stop()
  })

  test('a process that stood still for too long begins no work, although nobody told it that its term is over', async () => {
    const { clock, lock, leadership } = aLeadership()
    await leadership.start()
    lock.outcome = 'silence'
    clock.advance(clusterLimits.leadershipProofMs)
    expect(leadership.isLeader).toBe(false)
    const { work, done } = beginWork(leadership)
    await done
    expect(work.begun).toBe(0)
  })

  test('a term that ended unnoticed ends the work that was begun in it', async () => {
    const { lock, leadership, poll } = aLeadership()
    await leadership.start()
    expect(leadership.term).toBe(1)
    const { work, done } = beginWork(leadership)
    lock.term = 3
    await poll()
    await done
    expect([work.aborted, leadership.isLeader, leadership.term]).toEqual([1, true, 3])
    await leadership.stop()
    expect(leadership.term).toBe(0)
  })

  test('a failure of the work that has another cause is passed on', async () => {
    const { leadership } = aLeadership()
    await leadership.start()
    const run = leadership.whileLeading(() => Promise.reject(new Error('broken')))
    await expect(run(new AbortController().signal)).rejects.toThrow('broken')
    await leadership.stop()
  })
})
