import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { Departure } from './departure.ts'

/** A node that begins to leave. `record` is what control says; null: DNS still names the node. */
function leaving({ secondsMin = 0, secondsMax = 60, known = null as number | null } = {}) {
  const clock = new ManualClock()
  const warned: string[] = []
  const logger = createLogger('test', 'silent')
  logger.warn = (text: unknown) => void warned.push(String(text))
  const calls: string[] = []
  const departure = new Departure({
    ...{ secondsMin, secondsMax, clock, logger },
    announce: async () => void calls.push('announced'),
    endConnections: async () => void calls.push('ended'),
    isFenced: () => false,
  })
  const record = (may_stop_in_seconds: number | null) => departure.onHeartbeatRecorded({ may_stop_in_seconds })
  record(known)
  void departure.leave().then(() => calls.push('left'))
  const pass = async (seconds: number) => {
    clock.advance(seconds * 1000)
    await setImmediate()
    return calls.at(-1)
  }
  return { record, pass, calls, warned, departure }
}

describe('a node that leaves', () => {
  test('stops at once where no DNS is managed', async () => {
    const { pass, calls, departure } = leaving({ known: 0 })
    await pass(0)
    expect(calls).toEqual(['announced', 'left'])
    expect(departure.isLeaving).toBe(true)
  })

  test('serves until records no longer name it and resolvers have forgotten them, then ends its connections', async () => {
    const { record, pass, calls, warned } = leaving()
    expect(await pass(10)).toBe('announced')
    record(null)
    expect(await pass(2)).toBe('announced')
    record(30)
    expect(await pass(20)).toBe('announced')
    record(10)
    expect(await pass(9)).toBe('announced')
    await pass(1)
    expect(calls).toEqual(['announced', 'ended', 'left'])
    expect(warned).toEqual([])
  })

  test('goes on although control cannot be asked any more', async () => {
    const { record, pass } = leaving()
    record(30)
    expect(await pass(29)).toBe('announced')
    expect(await pass(1)).toBe('left')
  })

  test('stops at the latest after the maximum, and says that DNS may still name it', async () => {
    const { record, pass, warned } = leaving({ secondsMax: 20 })
    record(null)
    expect(await pass(19)).toBe('announced')
    expect(await pass(1)).toBe('left')
    expect(warned).toHaveLength(1)
  })

  test('gives load balancers the minimum, although no DNS is managed', async () => {
    const { pass, calls } = leaving({ known: 0, secondsMin: 5 })
    expect(await pass(4)).toBe('announced')
    await pass(1)
    expect(calls).toEqual(['announced', 'ended', 'left'])
  })
})
