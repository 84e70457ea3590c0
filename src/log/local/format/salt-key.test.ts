import { Buffer } from 'node:buffer'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Files } from '#lib/files.ts'
import { seededRandom } from '#lib/random.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { FaultyDisk } from '../../../../test/support/faulty-files.ts'
import { oneRecord } from '../../../../test/support/frames.ts'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { LocalLogWriter } from '../log-writer.ts'
import { LocalSegmentSource } from '../segment-source.ts'
import { computeSalt, readSaltKey } from './salt-key.ts'

const directory = '/data/wal'
const keyPath = `${directory}/salt-key`
let disk: FaultyDisk
let files: Files
let segments: LocalSegmentSource
const clock = new ManualClock()

beforeEach(() => {
  disk = new FaultyDisk(seededRandom(5))
  files = disk.mount()
  segments = new LocalSegmentSource({ directory, files, clock })
})

test('a salt follows from the key and the name, and nothing else', () => {
  const segment = { logName: 'log', seq: 7, incarnation: 'abcdefghij' }
  const key = Buffer.alloc(32, 1)
  expect(computeSalt(key, segment)).toEqual(computeSalt(Buffer.from(key), { ...segment }))
  for (const other of [{ logName: 'gol' }, { seq: 8 }, { incarnation: 'abcdefghik' }]) {
    expect(computeSalt(key, { ...segment, ...other })).not.toEqual(computeSalt(key, segment))
  }
  expect(computeSalt(Buffer.alloc(32, 2), segment)).not.toEqual(computeSalt(key, segment))
})

describe('the key', () => {
  test('is created once, and is durable before the first segment', async () => {
    await append('a')
    const key = await readSaltKey(files, directory)
    disk.crash()
    mount()
    expect(await readSaltKey(files, directory)).toEqual(key)
    await append('b')
    expect(await readSaltKey(files, directory)).toEqual(key)
    expect(key?.isReplacement).toBe(false)
  })

  test.each(['missing', 'damaged', 'unreadable'])(
    'that is %s is replaced, and older segments are still delivered',
    async (how) => {
      await append('a')
      const before = await readSaltKey(files, directory)
      if (how === 'missing') await files.remove(keyPath)
      if (how === 'damaged') disk.damage(keyPath, (bytes) => bytes.set([(bytes[3] ?? 0) ^ 1], 3))
      if (how === 'unreadable') {
        disk.fault = ({ kind, path }) => (kind === 'read' && path === keyPath ? { error: 'EIO' } : undefined)
      }
      expect(await delivered()).toEqual(['a'])
      await append('b')
      disk.fault = () => undefined
      expect((await readSaltKey(files, directory))?.secret).not.toEqual(before?.secret)
      expect((await readSaltKey(files, directory))?.isReplacement).toBe(true)
      expect(await delivered()).toEqual(['a', 'b'])
    },
  )

  test('that was lost: an open file without a header is kept, not removed, although none of its frames can be found', async () => {
    await append('a', false)
    await files.remove(keyPath)
    const [path = ''] = disk.paths().filter((name) => name.endsWith('.open'))
    disk.damage(path, (bytes) => bytes.fill(0, 0, 128))
    mount()
    await append('b')
    expect((await segments.list()).map(({ state }) => state)).toEqual(['quarantined', 'sealed'])
  })

  test('of another WAL: its segments are not believed', async () => {
    await append('a')
    const text = (await files.read(keyPath)) ?? new Uint8Array()
    const [segment] = await segments.list()
    const other = new FaultyDisk(seededRandom(6))
    disk = other
    mount()
    await append('x')
    await files.remove(keyPath)
    const file = await files.open(keyPath, 'create')
    await file.write([text], 0)
    await file.close()
    expect(segment?.seq).toBe(0)
    await expect(delivered()).rejects.toThrow('the header was not written with the salt-key of this WAL')
  })
})

async function append(name: string, seals = true): Promise<void> {
  const wal = new LocalLogWriter({ ...system, directory, files, clock, logger: createLogger('test', 'silent') })
  await wal.start()
  wal.configure('log', { segmentBytes: 10_000, segmentMaxAgeMs: 60_000, seqAbove: -1 })
  await wal.append('log', oneRecord({ envelope: name }))
  if (seals) await wal.stop(new AbortController().signal)
  else disk.kill()
  mount()
}

async function delivered(): Promise<readonly string[]> {
  const names: string[] = []
  for (const segment of await segments.list()) {
    const reader = await segments.open(segment)
    for await (const frames of reader.frames(1_000)) names.push(...frames.map(({ envelope }) => Buffer.from(envelope).toString()))
    await reader.close()
  }
  return names
}

function mount(): void {
  files = disk.mount()
  segments = new LocalSegmentSource({ directory, files, clock })
}
