import { Buffer } from 'node:buffer'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { keysLogName, seqNameOf } from '#copies/key-copies.ts'
import { restoreLog } from '#copies/restore.ts'
import { StoredRequests } from '#ingest/idempotency/stored-requests.ts'
import { type Files, systemFiles } from '#lib/files.ts'
import { systemRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { FrameInput } from '#log/frame.ts'
import type { FindDelivered } from '#log/log-writer.ts'
import type { SegmentRef } from '#log/segment-source.ts'
import { newId } from '#model/id.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import { CopyingNode } from '../../../test/support/copying-node.ts'
import { FaultyStores } from '../../../test/support/faulty-stores.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { until } from '../../../test/support/until.ts'
import { RestoredPieces } from './restored-pieces.ts'

const logger = createLogger('test', 'silent')
const machine = new ManualClock()
const clock = new CheckedClock({ machine, logger })
clock.observe(machine.now(), machine.monotonic())
const endpoint = newId()
const lostNode = newId()

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-restored-'))
})
afterEach(() => rm(directory, { recursive: true }))

function open(name: string, adoptedDirectory?: string, files: Files = systemFiles): StoredRequests {
  const common = { max: 1_000, files, clock, logger }
  return new StoredRequests({
    ...common,
    directory: join(directory, name),
    ...(adoptedDirectory === undefined ? {} : { adoptedDirectory }),
  })
}

async function send(requests: StoredRequests, key: string, seq: number) {
  const frame: FrameInput = {
    ...{ layout: 'lines', receivedAtMicros: machine.now() * 1000, recordCount: 1, envelope: Buffer.alloc(0) },
    payload: [Buffer.from(key)],
  }
  return await requests.once(endpoint, key, frame, async () => {
    requests.appended(seq, [frame])
    return { seq }
  })
}

test('the keys of a segment are restored, and known to the node that takes over', async () => {
  const lost = open('lost')
  await lost.start()
  for (const [key, seq] of [
    ['a', 1],
    ['b', 1],
    ['c', 2],
    ['d', 3],
  ] as const)
    await send(lost, key, seq)
  await lost.beforeSeal()
  const { keys } = lost
  await keys.refresh(new Set([1, 2].map((seq) => seqNameOf({ logName: endpoint, seq }))))
  expect([1, 2, 3].map((seq) => keys.has({ logName: endpoint, seq }))).toEqual([true, true, false])
  const found = await Array.fromAsync(keys.read([1, 2].map((seq) => ({ logName: endpoint, seq }))))
  await lost.stop()

  // A restore may be repeated.
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const storedRequests = join(directory, 'adopted', `${lostNode}-0a0b0c0d`)
    const pieces = await RestoredPieces.open({ files: systemFiles, wal: join(directory, 'wal'), storedRequests })
    for (const { hour, bytes } of found) {
      const piece = { logName: keysLogName, seq: hour, incarnation: 'aaaaaaaaaa', at: 0, chunks: [bytes] }
      expect(await pieces.write(piece)).toBe(bytes.byteLength)
      await pieces.write({ ...piece, chunks: [Buffer.alloc(200, 7)] })
    }
    await pieces.close()
  }

  const requests = open('own', join(directory, 'adopted'))
  await requests.start()
  expect(requests.count).toBe(3)
  for (const [key, seq] of [
    ['a', 1],
    ['b', 1],
    ['c', 2],
  ] as const)
    expect(await send(requests, key, 9)).toMatchObject({ seq, nodeId: lostNode, isRepeated: true })
  for (const isRepeated of [false, true]) expect(await send(requests, 'd', 9)).toMatchObject({ seq: 9, isRepeated })
  expect(requests.problems()).toEqual([])
  await requests.stop()
})

test('a restore that is repeated begins anew: the lost node may have removed objects since', async () => {
  const stores = new FaultyStores(join(directory, 'copies'))
  const node = await new CopyingNode(stores).startWithStore()
  await node.storeRecord('zero')
  const pair = [await node.append('two'), await node.append('stuck', 'other')]
  await node.until('the copies', () => node.copies.waitingBytes === 0, 10)
  await Promise.all(pair.map(({ copied }) => copied))
  await node.deliver()
  await node.until('the removal of the beginning', async () => !(await node.texts()).includes('zero'), 1_000)
  const [rest = ''] = await node.objects()
  // It stands still before it tells the store what it removes next.
  const frozen = Promise.withResolvers<void>()
  let isFrozen = false
  stores.delay = (key) => {
    if (!key.includes('/writer/') || isFrozen) return undefined
    isFrozen = true
    return frozen.promise
  }
  await node.deliver('other')
  await node.until('the next state of it', () => isFrozen, 1_000)
  const paths = { wal: join(directory, 'wal'), storedRequests: join(directory, 'requests') }
  const { signal } = new AbortController()
  const restore = async (findDelivered: FindDelivered) =>
    restoreLog({
      ...{ nodeId: node.id, by: 'another', store: node.store, folder: node.folder, clock: node.clock, random: systemRandom },
      pieces: await RestoredPieces.open({ files: systemFiles, ...paths }),
      ...{ findDelivered, logger, signal },
    })
  await expect(restore(() => Promise.reject(new Error('control is away')))).rejects.toThrow('control is away')
  frozen.resolve()
  await node.until('the removal of the rest', async () => !(await node.objects()).includes(rest), 1_000)
  expect(await restore(async () => [])).toMatchObject({ objects: 0 })
  expect(existsSync(paths.wal)).toBe(false)
})

test('what is removed leaves no file, and what stays of the log is whole', async () => {
  const wal = join(directory, 'wal')
  const pieces = await RestoredPieces.open({ files: systemFiles, wal, storedRequests: join(directory, 'adopted') })
  const [removed, kept] = [1, 2].map((seq) => ({ logName: endpoint, seq, incarnation: 'k3v9x0q2ab' })) as [SegmentRef, SegmentRef]
  await pieces.write({ ...removed, at: 90, chunks: [Buffer.from('its end')] })
  await pieces.write({ ...kept, at: 0, chunks: [Buffer.from('all')] })
  // Also once more.
  for (let attempt = 0; attempt < 2; attempt += 1) await pieces.remove(removed)
  await pieces.write({ ...kept, at: 3, chunks: [Buffer.from(' of it')] })
  await pieces.close()
  const [file = '', ...others] = await readdir(join(wal, endpoint))
  expect(others).toEqual([])
  expect(await readFile(join(wal, endpoint, file), 'utf8')).toBe('all of it')
})

test('keys that a node lets go are not found again', async () => {
  const requests = open('own')
  await requests.start()
  await send(requests, 'a', 1)
  const segment = { logName: endpoint, seq: 1 }
  const { keys } = requests
  await requests.beforeSeal()
  await keys.refresh(new Set([seqNameOf(segment)]))
  expect(keys.has(segment)).toBe(true)
  keys.letGo([segment])
  await keys.refresh(new Set([seqNameOf(segment)]))
  expect(keys.has(segment)).toBe(false)
  await requests.stop()
})

test('keys of a segment that is not copied any more take no memory', async () => {
  const requests = open('own')
  await requests.start()
  await send(requests, 'a', 1)
  await requests.beforeSeal()
  const segment = { logName: endpoint, seq: 1 }
  await requests.keys.refresh(new Set([seqNameOf(segment)]))
  for (const others of [['other/1'], []]) {
    await requests.keys.refresh(new Set(others))
    expect(requests.keys.has(segment)).toBe(false)
  }
  await requests.stop()
})

test('while a file of keys cannot be opened, no segment counts as one without keys', async () => {
  const first = open('own')
  await first.start()
  await send(first, 'a', 1)
  await first.stop()
  const segment = { logName: endpoint, seq: 1 }
  let isReadable = false
  const files: Files = {
    ...systemFiles,
    async open(path, mode) {
      if (!isReadable && path.endsWith('.requests')) throw new Error('EIO')
      return await systemFiles.open(path, mode)
    },
  }
  const second = open('own', undefined, files)
  await second.start()
  await expect(second.keys.refresh(new Set([seqNameOf(segment)]))).rejects.toThrow('idempotency keys')
  isReadable = true
  machine.advance(10_000)
  await until('the file', async () => second.problems().length === 0)
  await second.keys.refresh(new Set([seqNameOf(segment)]))
  expect(second.keys.has(segment)).toBe(true)
  await second.stop()
})
