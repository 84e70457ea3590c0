import { describe, expect, test } from 'vitest'
import { GiB, MiB } from '#lib/bytes.ts'
import type { Clock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import { Admission } from './admission.ts'

/** A disk and a log whose state the test sets, and a clock whose timer it fires. */
async function setUp() {
  const state = { walBytes: 0, freeBytes: 10 * GiB, failure: undefined as string | undefined, unreadable: false }
  let timer: (() => void) | undefined
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    setTimer: (callback) => {
      timer = callback
      return () => {
        timer = undefined
      }
    },
  }
  const admission = new Admission({
    storage: {
      bytesOnDisk: () => state.walBytes,
      health: () => ({ healthy: state.failure === undefined, reasons: state.failure === undefined ? [] : [state.failure] }),
    },
    freeBytes: async () => {
      if (state.unreadable) throw new Error('EIO')
      return state.freeBytes
    },
    maxInFlightBytes: 10 * MiB,
    diskBudgetBytes: GiB,
    diskReserveBytes: 256 * MiB,
    clock,
    logger: createLogger('test', 'silent'),
  })
  await admission.start()
  const look = async () => {
    const due = timer
    timer = undefined
    due?.()
    await expect.poll(() => timer).toBeDefined()
  }
  return { admission, state, look, timer: () => timer }
}

const refused = (detail: string) => expect.objectContaining({ code: 'unavailable', message: expect.stringContaining(detail) })

describe('admission', () => {
  test('refuses before it has looked at the disk', () => {
    const admission = new Admission({
      storage: { bytesOnDisk: () => 0, health: () => ({ healthy: true, reasons: [] }) },
      freeBytes: async () => 10 * GiB,
      maxInFlightBytes: 1,
      diskBudgetBytes: 1,
      diskReserveBytes: 0,
      clock: { now: () => 0, monotonic: () => 0, setTimer: () => () => undefined },
      logger: createLogger('test', 'silent'),
    })
    expect(() => admission.admit(0)).toThrow(refused('not been looked at'))
  })

  test('bytes in flight are bounded, and a refused reservation reserves nothing', async () => {
    const { admission } = await setUp()
    admission.reserve(6 * MiB)
    expect(() => admission.reserve(5 * MiB)).toThrow(refused('in memory'))
    expect(admission.inFlightBytes).toBe(6 * MiB)
    admission.reserve(4 * MiB)
    admission.release(10 * MiB)
    expect(admission.inFlightBytes).toBe(0)
    expect(admission.reasons()).toEqual([])
  })

  test('the disk budget counts what is on disk, in flight and announced; room is noticed at once', async () => {
    const { admission, state } = await setUp()
    state.walBytes = GiB - 3 * MiB
    admission.reserve(MiB)
    admission.admit(2 * MiB)
    expect(() => admission.admit(2 * MiB + 1)).toThrow(refused('with a budget of'))
    state.walBytes = 0
    admission.admit(2 * MiB + 1)
  })

  test('the disk reserve is held also between two looks, and recovers with the next', async () => {
    const { admission, state, look } = await setUp()
    state.freeBytes = 300 * MiB
    await look()
    admission.admit(0)
    state.walBytes = 45 * MiB
    expect(() => admission.admit(0)).toThrow(refused('with a reserve of'))
    expect(admission.reasons()).toHaveLength(1)
    state.freeBytes = GiB
    await look()
    admission.admit(0)
  })

  test('an unhealthy WAL and an unreadable disk refuse, with their reasons, and recover', async () => {
    const { admission, state, look } = await setUp()
    state.failure = 'io_error: the disk failed'
    state.unreadable = true
    await look()
    expect(() => admission.admit(0)).toThrow(refused('EIO'))
    expect(admission.reasons()).toEqual([expect.stringContaining('EIO'), 'io_error: the disk failed'])
    state.failure = undefined
    state.unreadable = false
    await look()
    expect(admission.reasons()).toEqual([])
  })

  test('looks no more after its stop', async () => {
    const { admission, timer } = await setUp()
    expect(timer()).toBeDefined()
    await admission.stop()
    expect(timer()).toBeUndefined()
  })

  test('of open connections lets nothing more be read at half of the bytes in flight, or without a disk', async () => {
    const { admission, state, look } = await setUp()
    admission.take(5 * MiB)
    expect(admission.noRoomBecause()).toBeUndefined()
    admission.take(1)
    expect(admission.noRoomBecause()).toContain('in memory')
    // What was read must go somewhere, and requests have the other half.
    admission.reserve(5 * MiB - 1)
    expect(() => admission.reserve(1)).toThrow(refused('in memory'))
    admission.take(20 * MiB)
    expect(admission.inFlightBytes).toBe(30 * MiB)
    admission.release(30 * MiB)
    expect(admission.noRoomBecause()).toBeUndefined()
    state.failure = 'fdatasync failed'
    await look()
    expect(admission.noRoomBecause()).toBe('fdatasync failed')
    state.failure = undefined
    await look()
    state.walBytes = GiB + 1
    expect(admission.noRoomBecause()).toContain('budget')
    state.walBytes = 0
    expect(admission.noRoomBecause()).toBeUndefined()
  })
})
