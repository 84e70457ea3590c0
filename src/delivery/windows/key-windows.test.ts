import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { systemFiles } from '#lib/files.ts'
import { StorageFailure } from '#lib/storage-failure.ts'
import { createLogger } from '#lib/telemetry.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { type CommittedKeys, KeysUnreadable, KeyWindows, type KeyWindowsOptions, type WindowView } from './key-windows.ts'
import { windowLimits } from './limits.ts'
import { IndexThread } from './thread.ts'

const signal = new AbortController().signal
const second = 1_000_000
let directory = ''
let thread = new IndexThread()
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'inlet-windows-'))
  thread = new IndexThread()
})
afterEach(async () => {
  await thread.stop()
  rmSync(directory, { recursive: true })
})

const viewOf = (id: string): WindowView => ({
  ...{ view_id: id, name: id, version: 1 },
  definition: { columns: [{ name: 'id', type: 'VARCHAR', path: '$.id' }], dedupe_by: ['id'], dedupe_within: '100s' },
})
const view = viewOf('once')
const segment = (seq: number, endpointId = 'log') => ({
  endpointId,
  id: `${endpointId}-${seq}`,
  seq,
  sealedAtMicros: (1_000 + seq) * second,
})
const keyOf = (name: string) => createHash('sha256').update(name).digest().subarray(0, 16)

function fileOf(...names: readonly string[]): string {
  const path = join(directory, 'keys')
  writeFileSync(path, Buffer.concat(names.map(keyOf)))
  return path
}

/** Windows over commits that a test sets. */
async function open(
  change: Partial<Omit<KeyWindowsOptions, 'committed'>> & { readonly committed?: Partial<CommittedKeys> } = {},
) {
  const log: string[] = []
  const clock = new ManualClock()
  const windows = new KeyWindows({
    ...{ directory: join(directory, 'windows'), bytesMax: 64 * MiB, indexes: thread.indexes, files: systemFiles, clock },
    usersOf: (endpointId) => ({ account: endpointId.split('-')[0] ?? '', views: new Set(['once', 'other']) }),
    logger: createLogger('test', 'debug', undefined, { write: (line) => log.push(line) }),
    ...change,
    committed: { isCommitted: async () => true, read: async () => 0, ...change.committed },
  })
  await windows.open()
  return { windows, clock, log }
}

async function known(windows: KeyWindows, seq: number, ...names: readonly string[]): Promise<readonly string[]> {
  const found = await windows.find(await windows.prepare(view, segment(seq), signal), Buffer.concat(names.map(keyOf)))
  return names.filter((_, at) => found[at] === 1)
}

describe('a segment that was registered and not committed', () => {
  test('is taken out when it is parked', async () => {
    const { windows } = await open()
    await windows.prepare(view, segment(1), signal)
    await windows.register(view, segment(1), fileOf('a'))
    await windows.confirm('log', 'log-1')
    await windows.prepare(view, segment(2), signal)
    await windows.register(view, segment(2), fileOf('b'))
    await windows.forget('log', 'log-2')
    // A commit stays, whatever is said of its segment later.
    await windows.forget('log', 'log-1')
    expect(await known(windows, 3, 'a', 'b')).toEqual(['a'])
  })

  test.each([
    [true, ['a']],
    [false, []],
  ])('counts after a start if control has its commit: %s', async (isCommitted, expected) => {
    const before = await open()
    await before.windows.prepare(view, segment(1), signal)
    await before.windows.register(view, segment(1), fileOf('a'))
    const { windows } = await open({ committed: { isCommitted: async () => isCommitted } })
    // The segment itself may be converted again.
    expect(await known(windows, 1, 'a')).toEqual([])
    expect(await known(windows, 2, 'a')).toEqual(expected)
  })
})

describe('an index that may lack keys', () => {
  test('is compared with the commits: at its first use, and after a gap', async () => {
    const asked: number[] = []
    const { windows } = await open({
      committed: {
        read: async ({ add, registered, sinceMicros }) => {
          asked.push(sinceMicros / second)
          if (!(await registered(['log-0'])).has('log-0')) await add(segment(0), fileOf('a'))
          return 0
        },
      },
    })
    for (const seq of [1, 2, 4]) {
      const prepared = await windows.prepare(view, segment(seq), signal)
      expect(await windows.find(prepared, keyOf('a'))).toEqual(Uint8Array.of(1))
      expect(prepared).not.toHaveProperty('heldSeconds')
      await windows.register(view, segment(seq), null)
      await windows.confirm('log', `log-${seq}`)
    }
    expect(asked).toEqual([901, 904])
  })

  test('begins anew after a time without progress', async () => {
    const { windows, clock, log } = await open({
      committed: {
        read: async () => {
          throw new Error('control is away')
        },
      },
    })
    const why = 'the index of dedupe_within of once v1 is being rebuilt: control is away'
    await expect(windows.prepare(view, segment(1), signal)).rejects.toThrow(why)
    await clock.advance(windowLimits.rebuildMs)
    await expect(windows.prepare(view, segment(1), signal)).rejects.toThrow(why)
    await clock.advance(1)
    expect(await windows.prepare(view, segment(1), signal)).toMatchObject({ heldSeconds: 0 })
    expect(log.join('')).toContain('begins anew')
    await windows.register(view, segment(1), fileOf('a'))
    await windows.confirm('log', 'log-1')
    expect(await windows.prepare(view, segment(2), signal)).toMatchObject({ heldSeconds: 1 })
  })

  test('begins anew at once if nothing can be read', async () => {
    const { windows } = await open({
      committed: {
        read: async () => {
          throw new KeysUnreadable('denied')
        },
      },
    })
    expect(await windows.prepare(view, segment(1), signal)).toMatchObject({ heldSeconds: 0 })
  })
})

test('a disk that fails is a fault of the node, and passes', async () => {
  const { windows } = await open()
  const path = join(directory, 'windows', 'log', 'once.db')
  mkdirSync(path, { recursive: true })
  await expect(windows.prepare(view, segment(1), signal)).rejects.toThrow(StorageFailure)
  rmSync(path, { recursive: true })
  await windows.prepare(view, segment(1), signal)
  await windows.register(view, segment(1), fileOf('a'))
  expect(await known(windows, 2, 'a')).toEqual(['a'])
})

test('indexes share the disk by account: the largest of the one that takes most is shortened', async () => {
  const many = (name: string, count: number) => fileOf(...Array.from({ length: count }, (_, at) => `${name} ${at}`))
  const { windows, log } = await open({ bytesMax: 1_000_000 })
  const fill = async (endpointId: string, seq: number, count: number, of = view) => {
    await windows.prepare(of, segment(seq, endpointId), signal)
    await windows.register(of, segment(seq, endpointId), many(`${endpointId} ${of.name} ${seq}`, count))
    await windows.confirm(endpointId, `${endpointId}-${seq}`)
    windows.end(endpointId)
  }
  await fill('small-1', 1, 5_000)
  await fill('large-1', 1, 10_000)
  await fill('large-1', 2, 2_000, viewOf('other'))
  expect(log.join('')).not.toContain('too much disk')
  await fill('large-1', 60, 20_000)
  expect(log.join('')).toContain('too much disk')
  expect(await windows.prepare(view, segment(61, 'large-1'), signal)).toMatchObject({ heldSeconds: 36 })
  expect(await windows.prepare(view, segment(61, 'small-1'), signal)).not.toHaveProperty('heldSeconds')
})

test('an index whose view is no longer bound is removed', async () => {
  const { windows, clock } = await open({ usersOf: () => ({ account: 'a', views: new Set(['once']) }) })
  for (const each of [viewOf('gone'), view]) {
    await windows.prepare(each, segment(1), signal)
    await windows.register(each, segment(1), fileOf('a'))
  }
  windows.end('log')
  await clock.advance(windowLimits.cleanIntervalMs)
  await windows.register(view, segment(2), null)
  const isThere = (name: string) => existsSync(join(directory, 'windows', 'log', `${name}.db`))
  expect([isThere('once'), isThere('gone')]).toEqual([true, false])
})
