import { describe, expect, test } from 'vitest'
import { GiB, MiB } from '#lib/bytes.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { createLogger, type Logger } from '#lib/telemetry.ts'
import { accountId, anEndpoint } from '../../../test/support/ingest-node.ts'
import { FairShares } from './fair-shares.ts'
import { NodeRoom } from './node-room.ts'

const endpoint = anEndpoint()

/** A disk and a WAL whose state the test sets, and a clock whose timer it fires. */
async function setUp(endpoints = [endpoint]) {
  const disk = new FairShares(GiB)
  const state = { freeBytes: 10 * GiB, failure: undefined as string | undefined, unreadable: false }
  const walBytes = { value: 0 }
  /** Sets how much of the WAL belongs to an endpoint. */
  const setWalBytes = (bytes: number, { id } = endpoint) => {
    disk.share(id).force(bytes - (log.get(id) ?? 0))
    walBytes.value += bytes - (log.get(id) ?? 0)
    log.set(id, bytes)
  }
  const log = new Map<string, number>()
  let timer: (() => void) | undefined
  const clock: Clock = {
    ...systemClock,
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
  const nodeRoom = new NodeRoom({
    log: {
      usage: {
        get bytes() {
          return walBytes.value
        },
      },
      health: () => ({ healthy: state.failure === undefined, reasons: state.failure === undefined ? [] : [state.failure] }),
    },
    space: async () => {
      if (state.unreadable) throw new Error('EIO')
      return { free_bytes: state.freeBytes, total_bytes: 100 * GiB }
    },
    maxInFlightBytes: 10 * MiB,
    disk,
    diskReserveBytes: 256 * MiB,
    clock,
    logger,
  })
  await nodeRoom.start()
  nodeRoom.configure(endpoints)
  const check = async () => {
    const due = timer
    timer = undefined
    due?.()
    await expect.poll(() => timer).toBeDefined()
  }
  return { nodeRoom, room: nodeRoom.room(endpoint.id), disk, setWalBytes, state, check, logged, timer: () => timer }
}

const rejected = (detail: string) => expect.objectContaining({ outcome: 'no_room', message: expect.stringContaining(detail) })

describe('the room of a node', () => {
  test('rejects before the first disk check', () => {
    const nodeRoom = new NodeRoom({
      log: { usage: { bytes: 0 }, health: () => ({ healthy: true, reasons: [] }) },
      space: async () => ({ free_bytes: 10 * GiB, total_bytes: 100 * GiB }),
      maxInFlightBytes: 1,
      disk: new FairShares(1),
      diskReserveBytes: 0,
      clock: { ...systemClock, now: () => 0, monotonic: () => 0 },
      logger: createLogger('test', 'silent'),
    })
    expect(() => nodeRoom.room('any').requireRoom(0)).toThrow(rejected('not been checked'))
  })

  test('bounds bytes in flight; a rejected reservation reserves nothing', async () => {
    const { nodeRoom, room } = await setUp()
    room.reserve(6 * MiB)
    expect(() => room.reserve(5 * MiB)).toThrow(rejected('in memory'))
    expect(nodeRoom.inFlightBytes).toBe(6 * MiB)
    room.reserve(4 * MiB)
    room.release(10 * MiB)
    expect(nodeRoom.inFlightBytes).toBe(0)
    expect(nodeRoom.reasons()).toEqual([])
  })

  test('the disk budget counts bytes on disk, in flight and announced; freed space is available at once', async () => {
    const { room, setWalBytes } = await setUp()
    setWalBytes(GiB - 3 * MiB)
    room.reserve(MiB)
    room.requireRoom(2 * MiB)
    expect(() => room.requireRoom(2 * MiB + 1)).toThrow(rejected('the disk budget'))
    setWalBytes(0)
    room.requireRoom(2 * MiB + 1)
  })

  test('keeps the disk reserve between two checks, and recovers with the next check', async () => {
    const { nodeRoom, state, check, room, setWalBytes } = await setUp()
    state.freeBytes = 300 * MiB
    await check()
    room.requireRoom(0)
    setWalBytes(45 * MiB)
    expect(() => room.requireRoom(0)).toThrow(rejected('its reserve'))
    expect(nodeRoom.reasons()).toHaveLength(1)
    state.freeBytes = GiB
    await check()
    room.requireRoom(0)
  })

  test('rejects with a reason while the WAL is unhealthy or the disk unreadable, and recovers', async () => {
    const { nodeRoom, state, check, room } = await setUp()
    state.failure = 'io_error: the disk failed'
    state.unreadable = true
    await check()
    expect(() => room.requireRoom(0)).toThrow(rejected('EIO'))
    expect(nodeRoom.reasons()).toEqual([expect.stringContaining('EIO'), 'io_error: the disk failed'])
    state.failure = undefined
    state.unreadable = false
    await check()
    expect(nodeRoom.reasons()).toEqual([])
  })

  test('logs each outage and its end, and nothing at a healthy start', async () => {
    const { check, logged, setWalBytes } = await setUp()
    expect(logged).toEqual([])
    setWalBytes(2 * GiB)
    await check()
    await check()
    expect(logged).toEqual(['ingest stopped accepting data'])
    setWalBytes(0)
    await check()
    expect(logged.slice(1)).toEqual(['ingest accepting data'])
  })

  test('says whether it rejects for want of room', async () => {
    const { nodeRoom, state, check, setWalBytes } = await setUp()
    expect(nodeRoom.isDiskFull()).toBe(false)
    setWalBytes(GiB + 1)
    expect(nodeRoom.isDiskFull()).toBe(true)
    setWalBytes(0)
    state.failure = 'io_error: the disk failed'
    await check()
    expect(nodeRoom.isDiskFull()).toBe(false)
    state.failure = 'disk_full: the disk is full (ENOSPC)'
    expect(nodeRoom.isDiskFull()).toBe(true)
  })

  test('the share of one endpoint leaves room for others; the message says whose share, and has no numbers', async () => {
    const other = anEndpoint({ account_id: accountId('b') })
    const { nodeRoom, room, setWalBytes } = await setUp([endpoint, other])
    setWalBytes(512 * MiB)
    const refused = rejected('the account uses up its share of the disk of this node')
    expect(() => room.requireRoom(1)).toThrow(refused)
    expect(() => room.reserve(1)).toThrow(refused)
    expect([room.backpressureReason(), nodeRoom.inFlightBytes]).toEqual([undefined, 0])
    room.forceReserve(1)
    expect(room.backpressureReason()).toMatch(/^the account uses up its share of the disk\D*$/)
    nodeRoom.room(other.id).reserve(MiB)
    expect(nodeRoom.room(other.id).backpressureReason()).toBeUndefined()
    expect(nodeRoom.fullEndpoints()).toMatchObject([{ endpoint_id: endpoint.id }])
    expect([nodeRoom.reasons(), nodeRoom.refusals]).toEqual([[], new Map([['disk_account', 2]])])
    setWalBytes(0)
    expect(nodeRoom.fullEndpoints()).toEqual([])
    setWalBytes(2 * GiB)
    expect(nodeRoom.reasons()).toEqual([expect.stringMatching(/^\D*$/)])
  })

  test('bounds what connections hold unread, apart from bytes in flight', async () => {
    const { nodeRoom, room } = await setUp()
    expect([room.tryHold(10 * MiB), room.tryHold(1)]).toEqual([true, false])
    room.reserve(10 * MiB)
    room.release(10 * MiB)
    expect([room.tryHold(-10 * MiB), room.tryHold(10 * MiB), nodeRoom.inFlightBytes]).toEqual([true, true, 0])
  })

  test('stops checking after stop', async () => {
    const { nodeRoom, timer } = await setUp()
    expect(timer()).toBeDefined()
    await nodeRoom.stop()
    expect(timer()).toBeUndefined()
  })

  test('applies back-pressure at half of the bytes in flight, or while the disk rejects', async () => {
    const { nodeRoom, state, check, room, setWalBytes } = await setUp()
    room.forceReserve(5 * MiB)
    expect(room.backpressureReason()).toBeUndefined()
    room.forceReserve(1)
    expect(room.backpressureReason()).toContain('in memory')
    // Bytes that were read are counted even above the bound; requests can use the other half.
    room.reserve(5 * MiB - 1)
    expect(() => room.reserve(1)).toThrow(rejected('in memory'))
    room.forceReserve(20 * MiB)
    expect(nodeRoom.inFlightBytes).toBe(30 * MiB)
    room.release(30 * MiB)
    expect(room.backpressureReason()).toBeUndefined()
    state.failure = 'fdatasync failed'
    await check()
    expect(room.backpressureReason()).toBe('fdatasync failed')
    state.failure = undefined
    await check()
    setWalBytes(GiB + 1)
    expect(room.backpressureReason()).toContain('budget')
    setWalBytes(0)
    expect(room.backpressureReason()).toBeUndefined()
  })
})
