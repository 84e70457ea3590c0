import { expect, test, vi } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { DatabaseClock } from './database-clock.ts'
import { clusterLimits } from './limits.ts'

const logger = createLogger('test', 'silent')
const databaseStart = Date.UTC(2027, 0, 1)

/** A machine whose wall clock is wrong by weeks, and a database whose clock is right. */
async function openClock(): Promise<{
  clock: DatabaseClock
  machine: ManualClock
  database: { readonly time: number; slowMs: number; isAway: boolean; aheadMs: number }
}> {
  const machine = new ManualClock()
  const database = {
    slowMs: 0,
    isAway: false,
    aheadMs: 0,
    get time() {
      return databaseStart + machine.monotonic() + this.aheadMs
    },
  }
  const readTime = async () => {
    if (database.isAway) throw new Error('the database is away')
    const { time } = database
    await Promise.resolve()
    machine.advance(database.slowMs)
    return time
  }
  return { clock: await DatabaseClock.open({ readTime, clock: machine, logger }), machine, database }
}

test('tells the time of the database, which the clock of the machine does not change', async () => {
  const { clock, machine } = await openClock()
  expect(clock.now()).toBe(databaseStart)
  vi.spyOn(machine, 'now').mockReturnValue(0)
  machine.advance(5_000)
  expect(clock.now()).toBe(databaseStart + 5_000)
})

test('goes on while the database is away, and follows it afterwards', async () => {
  const { clock, machine, database } = await openClock()
  await clock.start()
  database.isAway = true
  machine.advance(10 * clusterLimits.databaseClockMs)
  expect(clock.now()).toBe(database.time)
  // A standby whose clock differs took over.
  Object.assign(database, { isAway: false, aheadMs: 3_000 })
  await vi.waitFor(() => {
    machine.advance(clusterLimits.databaseClockMs)
    expect(clock.now()).toBe(database.time)
  })
  await clock.stop()
})

test('ignores a response that was long on its way', async () => {
  const { clock, machine, database } = await openClock()
  await clock.start()
  Object.assign(database, { slowMs: clusterLimits.databaseClockRoundTripMsMax + 2, aheadMs: 60_000 })
  machine.advance(clusterLimits.databaseClockMs)
  await clock.stop()
  expect(clock.now()).toBe(database.time - 60_000)
})
