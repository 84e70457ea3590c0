import { describe, expect, test } from 'vitest'
import { GiB, MiB } from '#lib/bytes.ts'
import type { Clock } from '#lib/clock.ts'
import { createLogger, type Logger } from '#lib/telemetry.ts'
import { Admission } from './admission.ts'

/** A disk and a WAL whose state the test sets, and a clock whose timer it fires. */
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
  const logged: string[] = []
  const logger = {
    error: (_: object, message: string) => logged.push(message),
    notice: (message: string) => logged.push(message),
  } as unknown as Logger
  const admission = new Admission({
    wal: {
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
    logger,
  })
  await admission.start()
  const check = async () => {
    const due = timer
    timer = undefined
    due?.()
    await expect.poll(() => timer).toBeDefined()
  }
  return { admission, state, check, logged, timer: () => timer }
}

const rejected = (detail: string) => expect.objectContaining({ outcome: 'no_room', message: expect.stringContaining(detail) })

describe('admission', () => {
  test('rejects before the first disk check', () => {
    const admission = new Admission({
      wal: { bytesOnDisk: () => 0, health: () => ({ healthy: true, reasons: [] }) },
      freeBytes: async () => 10 * GiB,
      maxInFlightBytes: 1,
      diskBudgetBytes: 1,
      diskReserveBytes: 0,
      clock: { now: () => 0, monotonic: () => 0, setTimer: () => () => undefined },
      logger: createLogger('test', 'silent'),
    })
    expect(() => admission.admit(0)).toThrow(rejected('not been checked'))
  })

  test('bounds bytes in flight; a rejected reservation reserves nothing', async () => {
    const { admission } = await setUp()
    admission.reserve(6 * MiB)
    expect(() => admission.reserve(5 * MiB)).toThrow(rejected('in memory'))
    expect(admission.inFlightBytes).toBe(6 * MiB)
    admission.reserve(4 * MiB)
    admission.release(10 * MiB)
    expect(admission.inFlightBytes).toBe(0)
    expect(admission.reasons()).toEqual([])
  })

  test('the disk budget counts bytes on disk, in flight and announced; freed space is available at once', async () => {
    const { admission, state } = await setUp()
    state.walBytes = GiB - 3 * MiB
    admission.reserve(MiB)
    admission.admit(2 * MiB)
    expect(() => admission.admit(2 * MiB + 1)).toThrow(rejected('the budget is'))
    state.walBytes = 0
    admission.admit(2 * MiB + 1)
  })

  test('keeps the disk reserve between two checks, and recovers with the next check', async () => {
    const { admission, state, check } = await setUp()
    state.freeBytes = 300 * MiB
    await check()
    admission.admit(0)
    state.walBytes = 45 * MiB
    expect(() => admission.admit(0)).toThrow(rejected('the reserve is'))
    expect(admission.reasons()).toHaveLength(1)
    state.freeBytes = GiB
    await check()
    admission.admit(0)
  })

  test('rejects with a reason while the WAL is unhealthy or the disk unreadable, and recovers', async () => {
    const { admission, state, check } = await setUp()
    state.failure = 'io_error: the disk failed'
    state.unreadable = true
    await check()
    expect(() => admission.admit(0)).toThrow(rejected('EIO'))
    expect(admission.reasons()).toEqual([expect.stringContaining('EIO'), 'io_error: the disk failed'])
    state.failure = undefined
    state.unreadable = false
    await check()
    expect(admission.reasons()).toEqual([])
  })

  test('logs each outage and its end, and nothing at a healthy start', async () => {
    const { state, check, logged } = await setUp()
    expect(logged).toEqual([])
    state.walBytes = 2 * GiB
    await check()
    await check()
    expect(logged).toEqual(['ingest stopped accepting data'])
    state.walBytes = 0
    await check()
    expect(logged.slice(1)).toEqual(['ingest accepting data'])
  })

  test('says whether it rejects for want of room', async () => {
    const { admission, state, check } = await setUp()
    expect(admission.isDiskFull()).toBe(false)
    state.walBytes = GiB + 1
    expect(admission.isDiskFull()).toBe(true)
    state.walBytes = 0
    state.failure = 'io_error: the disk failed'
    await check()
    expect(admission.isDiskFull()).toBe(false)
    state.failure = 'disk_full: the disk is full (ENOSPC)'
    expect(admission.isDiskFull()).toBe(true)
  })

  test('stops checking after stop', async () => {
    const { admission, timer } = await setUp()
    expect(timer()).toBeDefined()
    await admission.stop()
    expect(timer()).toBeUndefined()
  })

  test('applies back-pressure at half of the bytes in flight, or while the disk rejects', async () => {
    const { admission, state, check } = await setUp()
    admission.forceReserve(5 * MiB)
    expect(admission.backpressureReason()).toBeUndefined()
    admission.forceReserve(1)
    expect(admission.backpressureReason()).toContain('in memory')
    // Bytes that were read are counted even above the bound; requests can use the other half.
    admission.reserve(5 * MiB - 1)
    expect(() => admission.reserve(1)).toThrow(rejected('in memory'))
    admission.forceReserve(20 * MiB)
    expect(admission.inFlightBytes).toBe(30 * MiB)
    admission.release(30 * MiB)
    expect(admission.backpressureReason()).toBeUndefined()
    state.failure = 'fdatasync failed'
    await check()
    expect(admission.backpressureReason()).toBe('fdatasync failed')
    state.failure = undefined
    await check()
    state.walBytes = GiB + 1
    expect(admission.backpressureReason()).toContain('budget')
    state.walBytes = 0
    expect(admission.backpressureReason()).toBeUndefined()
  })
})
