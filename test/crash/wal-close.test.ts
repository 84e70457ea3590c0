/**
 * The log of an endpoint that is being deleted ends as closed, whatever crashes in between: then no segment is open, and none is opened any
 * more. Uses the disk of faulty-files.ts.
 */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Files } from '#lib/files.ts'
import { seededRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { type DiskOperation, FaultyDisk } from '../support/faulty-files.ts'
import { oneRecord } from '../support/frames.ts'
import { ManualClock } from '../support/manual-clock.ts'

const directory = '/data/wal'
const faults = ['crash before', 'crash after', 'kill before', 'kill after'] as const
let disk: FaultyDisk
let clock: ManualClock
let files: Files
let segments: LocalSegmentSource
let wal: LocalLogWriter

beforeEach(() => begin(11))

async function begin(seed: number): Promise<void> {
  disk = new FaultyDisk(seededRandom(seed))
  clock = new ManualClock()
  await restart()
  wal.configure('log', settings)
}

describe('a log that is closed', () => {
  test('commits what it accepted, seals, and says that it is closed', async () => {
    const waiting = append()
    void wal.end('log', 'closed')
    await expect(append()).rejects.toMatchObject({ reason: 'stopping' })
    expect(await waiting).toBe(0)
    await turns()
    expect(await state()).toBe('closed: sealed')
    await deliver()
    await upkeep()
    expect(await state()).toBe('closed: ')
    disk.crash()
    await restart()
    expect(await state()).toBe('closed: ')
  })

  test('is not held by a directory that is named like a segment', async () => {
    for (const suffix of ['open', 'poisoned']) await files.makeDirectory(`${directory}/log/000000000001-abcdefghij.${suffix}`)
    void wal.end('log', 'closed')
    await turns()
    expect(await state()).toBe('closed: ')
  })

  test('is not marked before its last group is durable', async () => {
    await append()
    const last = append()
    void wal.end('log', 'closed')
    expect(await state()).toBe('open')
    await last
    await turns()
    expect(await state()).toBe('closed: sealed')
  })

  test('gets a directory if it never had data, also after a restart', async () => {
    void wal.end('log', 'closed')
    void wal.end('other', 'closed')
    await turns()
    expect(await segments.logNames()).toEqual(['log', 'other'])
    expect(await state()).toBe('closed: ')
    await expect(append('other')).rejects.toMatchObject({ reason: 'stopping' })
    disk.crash()
    await restart()
    void wal.end('log', 'closed')
    await turns()
    expect(await state()).toBe('closed: ')
  })

  test('is marked before a stop that follows at once has ended', async () => {
    await append()
    void wal.end('log', 'closed')
    await wal.stop(new AbortController().signal)
    expect(await state()).toBe('closed: sealed')
  })

  test('is not closed while a segment waits for its recovery', async () => {
    await append()
    disk.fault = ({ kind, path }) => (kind === 'sync' && path.includes('/log/') ? { error: 'EIO' } : undefined)
    void wal.end('log', 'closed')
    await upkeep()
    await upkeep()
    expect(await state()).toBe('open')
    disk.fault = () => undefined
    await upkeep()
    await upkeep()
    expect(await state()).toBe('closed: sealed')
  })

  test.each(['ENOSPC', 'EIO'])('is marked once an %s is over', async (error) => {
    await append()
    disk.fault = ({ path }) => (path.includes('closed') ? { error } : undefined)
    void wal.end('log', 'closed')
    await upkeep()
    expect(await state()).toBe('sealed')
    disk.fault = () => undefined
    await upkeep()
    expect(await state()).toBe('closed: sealed')
  })

  test('writes again if its endpoint is active again: the mark is removed first, durably', async () => {
    await append()
    void wal.end('log', 'closed')
    await turns()
    wal.configure('log', settings)
    const operations: string[] = []
    disk.fault = ({ kind, path }) => void operations.push(`${kind} ${path.split('/').at(-1)}`)
    expect(await append()).toBe(1)
    const removed = operations.indexOf('remove closed')
    expect(removed).toBeGreaterThanOrEqual(0)
    expect(operations[removed + 1]).toBe('syncDirectory log')
    expect(operations.findIndex((operation) => operation.startsWith('open 000000000001'))).toBeGreaterThan(removed + 1)
    expect(await state()).toBe('sealed open')
  })

  test('and configured in the same turn ends as open', async () => {
    await append()
    void wal.end('log', 'closed')
    wal.configure('log', settings)
    expect(await append()).toBe(1)
    await upkeep()
    expect(await state()).toBe('sealed open')
  })

  test('is removed with its mark once the endpoint is gone', async () => {
    await append()
    void wal.end('log', 'closed')
    await turns()
    wal.endUnowned(new Set())
    await upkeep()
    expect(await state()).toBe('closed: sealed')
    await deliver()
    await upkeep()
    expect(await segments.logNames()).toEqual([])
  })

  test('and that comes back with a restored database is closed again', async () => {
    void wal.end('log', 'closed')
    await turns()
    wal.endUnowned(new Set())
    void wal.end('log', 'closed')
    await upkeep()
    expect(await state()).toBe('closed: ')
  })
})

test.each(faults)('with a %s at each step of closing: the next start finishes it, and no record is lost', async (fault) => {
  for (let at = 0; ; at += 1) {
    await begin(at)
    await append()
    await append()
    const operations: DiskOperation[] = []
    disk.fault = (operation) => (operations.push(operation) === at + 1 ? fault : undefined)
    void wal.end('log', 'closed')
    await upkeep()
    disk.fault = () => undefined
    await restart()
    if (await isClosed()) expect(await state()).toBe('closed: sealed')
    void wal.end('log', 'closed')
    await upkeep()
    expect(await state()).toBe('closed: sealed')
    if (operations.length <= at) return
  }
})

test.each(faults)('with a %s at each step of opening it again: no segment is beside the mark', async (fault) => {
  for (let at = 0; ; at += 1) {
    await begin(at)
    void wal.end('log', 'closed')
    await turns()
    wal.configure('log', settings)
    const operations: DiskOperation[] = []
    disk.fault = (operation) => (operations.push(operation) === at + 1 ? fault : undefined)
    const seq = await append().catch(() => undefined)
    disk.fault = () => undefined
    mount()
    const { isClosed, segments: found } = await segments.readLog('log')
    if (isClosed) expect([found, seq]).toEqual([[], undefined])
    if (operations.length <= at) return
    await restart()
  }
})

const settings = { segmentBytes: 10_000, segmentMaxAgeMs: 60_000, seqAbove: -1 }

function mount(): void {
  files = disk.mount()
  segments = new LocalSegmentSource({ directory, files })
}

async function restart(): Promise<void> {
  mount()
  wal = new LocalLogWriter({ directory, files, clock, logger: createLogger('test', 'silent') })
  await wal.start()
}

async function append(logName = 'log'): Promise<number> {
  return (await wal.append(logName, oneRecord())).seq
}

async function isClosed(): Promise<boolean> {
  return (await segments.readLog('log')).isClosed
}

async function state(): Promise<string> {
  const log = await segments.readLog('log')
  return `${log.isClosed ? 'closed: ' : ''}${log.segments.map((segment) => segment.state).join(' ')}`
}

async function deliver(): Promise<void> {
  for (const segment of await segments.list()) if (segment.state === 'sealed') await segments.remove(segment)
}

/** Runs the WAL's upkeep. */
async function upkeep(): Promise<void> {
  clock.advance(1_000)
  await turns()
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 60; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
