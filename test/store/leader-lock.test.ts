/** Several control processes on one Postgres: one of them leads at a time, and another one takes over. */
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { systemClock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import { ElectedLeadership } from '#store/cluster/leadership.ts'
import { openStore } from '#store/store.ts'
import { newStore, postgresUrl } from '../support/databases.ts'
import { until } from '../support/until.ts'
import { aWire } from '../support/wire.ts'

const logger = createLogger('test', 'silent')

/** Starts the leadership of one process. */
async function aProcess(url: string) {
  const store = await openStore(url)
  const newLock = must(store.newLeaderLock, 'the lock of Postgres')
  const leadership = new ElectedLeadership({ newLock, clock: systemClock, logger })
  await leadership.start()
  return {
    leadership,
    /** Resolves when the work of the leader is aborted. */
    work: leadership.whileLeading(
      (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true })),
    )(new AbortController().signal),
    async [Symbol.asyncDispose]() {
      await leadership.stop()
      await store.close()
    },
  }
}

const countLeaders = (processes: readonly { readonly leadership: ElectedLeadership }[]) =>
  processes.filter(({ leadership }) => leadership.isLeader).length

describe.skipIf(postgresUrl === undefined)('the leader on Postgres (skipped without INLET_TEST_POSTGRES)', () => {
  test('is one of the processes that start together, and another one when it stops', async () => {
    await using store = await newStore('postgres')
    const started = await Promise.all([aProcess(store.url), aProcess(store.url), aProcess(store.url)])
    for (let left: readonly (typeof started)[number][] = started; left.length > 0; ) {
      await until('one process leads', () => countLeaders(left) === 1)
      const leader = must(
        left.find(({ leadership }) => leadership.isLeader),
        'the leader',
      )
      await leader[Symbol.asyncDispose]()
      left = left.filter((other) => other !== leader)
      expect(countLeaders(left)).toBeLessThanOrEqual(1)
    }
  })

  test('of another installation in the same database does not count', async () => {
    await using one = await newStore('postgres')
    await using other = await newStore('postgres')
    await using first = await aProcess(one.url)
    await using second = await aProcess(other.url)
    expect(countLeaders([first, second])).toBe(2)
  })

  test('ends its work at once when the database ends its connection', async () => {
    await using store = await newStore('postgres')
    await using leader = await aProcess(store.url)
    await using follower = await aProcess(store.url)
    expect([leader.leadership.isLeader, follower.leadership.isLeader]).toEqual([true, false])
    await sql`select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objid = 'epoch'::regclass::oid`.execute(
      store.db,
    )
    await leader.work
    await until('a process leads again', () => countLeaders([leader, follower]) === 1)
  })

  test('that is cut off stops leading before another one begins, although no connection was closed', async () => {
    await using store = await newStore('postgres')
    await using wire = await aWire(store.url)
    await using leader = await aProcess(wire.url)
    await using follower = await aProcess(store.url)
    expect(leader.leadership.isLeader).toBe(true)
    wire.freeze()
    let overlapped = false
    await until(
      'the other process leads',
      () => {
        overlapped ||= leader.leadership.isLeader && follower.leadership.isLeader
        return follower.leadership.isLeader
      },
      20_000,
    )
    await leader.work
    expect([overlapped, leader.leadership.isLeader]).toEqual([false, false])
    wire.thaw()
  })
})
