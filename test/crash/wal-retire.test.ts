/** Logs of deleted endpoints are removed once they are empty, whatever crashes in between. Uses the disk of faulty-files.ts. */
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
/** Files of the directory itself. */
const ownFiles = [`${directory}/open-segments`, `${directory}/salt-key`]
const never = new AbortController().signal
const noLogs: ReadonlySet<string> = new Set()
const allLogs: ReadonlySet<string> = new Set(['log', 'other'])
let disk: FaultyDisk
let clock: ManualClock
let files: Files
let segments: LocalSegmentSource
let wal: LocalLogWriter

beforeEach(async () => {
  disk = new FaultyDisk(seededRandom(11))
  clock = new ManualClock()
  mount()
  wal = await newWal()
  wal.configure('log', settings())
})

describe('a log that is retired', () => {
  test('is sealed at once, and removed with its high-water file after its last segment', async () => {
    const waiting = append()
    wal.endUnowned(noLogs)
    expect(await waiting).toBe(0)
    await turns()
    expect(await states()).toEqual(['log sealed'])
    await upkeep()
    expect(await logs()).toEqual(['log'])
    await deliver()
    await upkeep()
    expect(await logs()).toEqual([])
    disk.crash()
    mount()
    expect(await logs()).toEqual([])
    expect(disk.paths()).toEqual(ownFiles)
  })

  test('is kept while it has a quarantined file', async () => {
    await append()
    wal.endUnowned(noLogs)
    await turns()
    const [segment] = await segments.list()
    if (segment === undefined) throw new Error('no segment')
    const kept = await segments.quarantine(segment, 'a test')
    await upkeep()
    expect(await states()).toEqual(['log quarantined'])
    await files.remove(kept)
    await upkeep()
    expect(await logs()).toEqual([])
  })

  test('is kept while a segment waits for its recovery', async () => {
    await append()
    disk.fault = ({ kind, path }) => (kind === 'sync' && path.includes('/log/') ? { error: 'EIO' } : undefined)
    wal.endUnowned(noLogs)
    await upkeep()
    await upkeep()
    expect(await states()).toEqual(['log open'])
    disk.fault = () => undefined
    await upkeep()
    expect(await states()).toEqual(['log sealed'])
    await deliver()
    await upkeep()
    expect(await logs()).toEqual([])
  })

  test('is sealed by a stop that follows at once', async () => {
    await append()
    wal.endUnowned(noLogs)
    await wal.stop(never)
    expect(await states()).toEqual(['log sealed'])
  })
})

describe('a log found at the start', () => {
  beforeEach(async () => {
    await append()
    await wal.stop(never)
    wal = await newWal()
  })

  test('is kept until a configuration is applied', async () => {
    await deliver()
    await upkeep()
    await upkeep()
    expect(await logs()).toEqual(['log'])
  })

  test('is removed once it is empty and a configuration does not claim it', async () => {
    wal.configure('other', settings())
    wal.endUnowned(new Set(['other']))
    await upkeep()
    expect(await logs()).toEqual(['log'])
    await deliver()
    await upkeep()
    expect(await logs()).toEqual([])
  })

  test('is kept if a configuration claims it', async () => {
    wal.configure('log', settings())
    wal.endUnowned(allLogs)
    await deliver()
    await upkeep()
    expect(await logs()).toEqual(['log'])
    expect(await append()).toBe(1)
  })
})

describe('an endpoint that comes back with a restored database', () => {
  test.each(['sealed', 'empty', 'removed'] as const)('while its log is %s: the seq continues', async (when) => {
    await append()
    await rotate()
    await append()
    wal.endUnowned(noLogs)
    if (when !== 'sealed') {
      await turns()
      await deliver()
    }
    if (when === 'removed') await upkeep()
    expect(await logs()).toEqual(when === 'removed' ? [] : ['log'])
    wal.configure('log', settings())
    wal.endUnowned(allLogs)
    expect(await append()).toBe(2)
    await upkeep()
    await wal.stop(never)
    expect((await segments.list()).map(({ seq }) => seq).at(-1)).toBe(2)
  })

  test('during the removal: its new segment is kept', async () => {
    await append()
    wal.endUnowned(noLogs)
    await turns()
    await deliver()
    const appended: Promise<number>[] = []
    disk.fault = ({ kind }) => {
      if (kind !== 'removeDirectory' || appended.length > 0) return undefined
      wal.configure('log', settings())
      wal.endUnowned(allLogs)
      appended.push(append())
      return undefined
    }
    await upkeep()
    expect(await Promise.all(appended)).toEqual([1])
    await upkeep()
    expect(await states()).toEqual(['log open'])
    disk.crash()
    mount()
    wal = await newWal()
    expect(await states()).toEqual(['log sealed'])
  })

  test('and is deleted and restored again: the seq continues', async () => {
    for (let seq = 0; seq < 4; seq += 1) {
      expect(await append()).toBe(seq)
      wal.endUnowned(noLogs)
      if (seq % 2 === 0) wal.configure('log', settings())
      await turns()
      await deliver()
      await upkeep()
      wal.configure('log', settings())
    }
  })
})

describe('the removal', () => {
  /** Two segments were delivered and committed. */
  async function emptied(): Promise<void> {
    await append()
    await rotate()
    await append()
    wal.endUnowned(noLogs)
    await turns()
    await deliver()
  }

  test('stops at a file that the listing missed, and keeps the high-water mark', async () => {
    await append()
    wal.endUnowned(noLogs)
    await turns()
    const { list } = files
    let hidden = false
    // A listing during a rename may show neither name.
    Object.assign(files, {
      list: async (path: string) => {
        const entries = await list(path)
        if (hidden || !path.endsWith('/log')) return entries
        hidden = true
        return entries.filter(({ name }) => name === 'high-water')
      },
    })
    await wal.stop(never)
    wal = await newWal()
    wal.endUnowned(noLogs)
    hidden = false
    await upkeep()
    expect(hidden).toBe(true)
    expect(await states()).toEqual(['log sealed'])
    await deliver()
    await wal.stop(never)
    wal = await newWal()
    wal.configure('log', settings())
    expect(await append()).toBe(1)
  })

  test('is retried if the disk fails', async () => {
    await emptied()
    let failures = 0
    disk.fault = ({ kind }) => (kind === 'removeDirectory' && failures++ < 2 ? { error: 'EIO' } : undefined)
    await upkeep()
    expect(await logs()).toEqual(['log'])
    await upkeep()
    await upkeep()
    expect(await logs()).toEqual([])
  })

  test.each(['crash before', 'crash after', 'kill before', 'kill after'] as const)(
    'with a %s at each step: the next start finishes it, or continues above control’s last commit',
    async (fault) => {
      for (let at = 0; ; at += 1) {
        disk = new FaultyDisk(seededRandom(at))
        clock = new ManualClock()
        mount()
        wal = await newWal()
        wal.configure('log', settings())
        await emptied()
        const operations: DiskOperation[] = []
        disk.fault = (operation) => (operations.push(operation) === at + 1 ? fault : undefined)
        await upkeep()
        if (operations.length <= at) return
        disk.fault = () => undefined
        mount()
        wal = await newWal()
        if (at % 2 === 0) {
          wal.endUnowned(noLogs)
          // A power cut may bring removed segments back; delivery knows their commits, and removes them again.
          await deliver()
          await upkeep()
          expect(await logs()).toEqual([])
          expect(disk.paths()).toEqual(ownFiles)
        } else {
          wal.configure('log', { ...settings(), seqAbove: 1 })
          wal.endUnowned(allLogs)
          await upkeep()
          expect(await append()).toBe(2)
        }
      }
    },
  )
})

function settings() {
  return { segmentBytes: 10_000, segmentMaxAgeMs: 60_000, seqAbove: -1 }
}

function mount(): void {
  files = disk.mount()
  segments = new LocalSegmentSource({ directory, files })
}

async function newWal(): Promise<LocalLogWriter> {
  const made = new LocalLogWriter({ directory, files, clock, logger: createLogger('test', 'silent') })
  await made.start()
  return made
}

async function append(logName = 'log'): Promise<number> {
  return (await wal.append(logName, oneRecord())).seq
}

/** Lets the open segment reach its age. */
async function rotate(): Promise<void> {
  clock.advance(60_000)
  await turns()
}

/** Runs the WAL's upkeep. */
async function upkeep(): Promise<void> {
  clock.advance(1_000)
  await turns()
}

async function deliver(): Promise<void> {
  for (const segment of await segments.list()) if (segment.state === 'sealed') await segments.remove(segment)
}

async function states(): Promise<readonly string[]> {
  return (await segments.list()).map(({ logName, state }) => `${logName} ${state}`)
}

async function logs(): Promise<readonly string[]> {
  return (await files.list(directory)).flatMap(({ name }) => (ownFiles.includes(`${directory}/${name}`) ? [] : name)).sort()
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 60; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
