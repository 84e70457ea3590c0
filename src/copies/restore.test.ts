import { Buffer } from 'node:buffer'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { FindDelivered } from '#log/log-writer.ts'
import { pieceBytes, type SegmentPiece } from '#log/segment-piece.ts'
import type { SegmentRef } from '#log/segment-source.ts'
import { CopyingNode } from '../../test/support/copying-node.ts'
import { FaultyStores } from '../../test/support/faulty-stores.ts'
import { ignoreConditions } from '../../test/support/lying-stores.ts'
import { copyName } from './copy-names.ts'
import { encodeCopy } from './copy-object.ts'
import { countFences } from './fences.ts'
import { nameOf } from './held-objects.ts'
import { keysLogName } from './key-copies.ts'
import { copyLimits } from './limits.ts'
import { removalOf, restoreLog } from './restore.ts'
import { findWriterState, putWriterState } from './writer-state.ts'

const never = new AbortController().signal
const incarnation = 'aaaaaaaaaa'
const put = { contentType: 'application/octet-stream', metadata: {} }

let directory = ''
let stores: FaultyStores
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-restore-'))
  stores = new FaultyStores(directory)
})
afterEach(() => rm(directory, { recursive: true, maxRetries: 5 }))

/** A node that has put so many objects, each with a segment, and is gone. */
function lost(objects: number): Promise<CopyingNode> {
  return lostWith(Array.from({ length: objects }, (_, seq) => [pieceOf(seq, 0, `text ${seq}`)]))
}

/** A node that has put an object with each of these, from a number on, and is gone. */
async function lostWith(objects: readonly (readonly SegmentPiece[])[], from = 0): Promise<CopyingNode> {
  const node = new CopyingNode(stores)
  await putWriterState(node.store, node.folder, { number: 0, state: { fences: 0, below: { [incarnation]: from } } }, never)
  for (const [at, pieces] of objects.entries()) {
    const number = from + at
    const header = { kind: 'pieces', nodeId: node.id, incarnation, number, writer: 'ab'.repeat(16), createdAtMicros: 1 } as const
    await node.store.put(copyName(node.folder, incarnation, number), await encodeCopy(header, pieces), put)
  }
  return node
}

function pieceOf(seq: number, at: number, text: string): SegmentPiece {
  return { logName: 'log', incarnation: 'k3v9x0q2ab', seq, at, chunks: [Buffer.from(text)] }
}

function restoring(node: CopyingNode, found: SegmentPiece[] = []) {
  const pieces = {
    async write(piece: SegmentPiece) {
      found.push(piece)
      return pieceBytes(piece)
    },
    async remove(segment: SegmentRef) {
      for (const piece of found.filter((each) => nameOf(each) === nameOf(segment))) found.splice(found.indexOf(piece), 1)
    },
    close: async () => undefined,
  }
  const findDelivered: FindDelivered = async (segments) => segments.filter((segment) => node.delivered.has(nameOf(segment)))
  const logger = createLogger('test', 'silent')
  const { store, folder, clock } = node
  return { ...system, nodeId: node.id, by: 'another', store, folder, pieces, findDelivered, clock, logger, signal: never }
}

const textsOf = (pieces: readonly SegmentPiece[]) => pieces.map(({ chunks }) => Buffer.concat(chunks).toString('latin1'))

async function change(node: CopyingNode, number: number, edit: (object: Buffer) => void): Promise<string> {
  const name = copyName(node.folder, incarnation, number)
  const object = Buffer.from((await node.store.get(name)) ?? [])
  edit(object)
  await node.store.put(name, object, put)
  return name
}

const resign = (header: Buffer) => header.writeUInt32LE(crc32(header.subarray(0, 92)), 92)

test('restores what the node put, and takes the number behind it', async () => {
  const node = await lost(3)
  const pieces: SegmentPiece[] = []
  expect(await restoreLog(restoring(node, pieces))).toEqual({
    ...{ objects: 3, bytes: 18, damaged: 0 },
    ranges: { [incarnation]: [0, 3] },
  })
  expect(textsOf(pieces)).toEqual(['text 0', 'text 1', 'text 2'])
  // Another machine that takes over as well finds the same.
  expect(await restoreLog(restoring(node))).toMatchObject({ objects: 3 })
  expect(await node.store.putIfAbsent(copyName(node.folder, incarnation, 3), Buffer.from('late'), put)).toBe(false)
})

test('the rest of a delivered segment is left out, of which objects were removed, and that of any other one is restored', async () => {
  const node = await lostWith([[pieceOf(1, 90, 'end of 1'), pieceOf(2, 0, 'all of 2'), pieceOf(3, 40, 'end of 3')]], 7)
  for (const seq of [1, 2]) node.delivered.add(nameOf(pieceOf(seq, 0, '')))
  const pieces: SegmentPiece[] = []
  expect(await restoreLog(restoring(node, pieces))).toMatchObject({ objects: 1, bytes: 16, damaged: 0 })
  expect(textsOf(pieces)).toEqual(['all of 2', 'end of 3'])
})

test('beside a damaged object, which may have had its beginning, the end of a segment is restored', async () => {
  const node = await lostWith([[pieceOf(1, 0, 'beginning')], [pieceOf(1, 9, 'end of 1')]])
  await change(node, 0, (object) => object.writeUInt8((object.at(-1) ?? 0) ^ 1, object.length - 1))
  node.delivered.add(nameOf(pieceOf(1, 0, '')))
  const pieces: SegmentPiece[] = []
  expect(await restoreLog(restoring(node, pieces))).toMatchObject({ damaged: 1 })
  expect(textsOf(pieces)).toEqual(['end of 1'])
})

test('a delivered segment is left out, of which the beginning was put again, and the middle was removed since', async () => {
  const node = new CopyingNode(stores)
  node.owned.add('waste')
  await node.startWithStore()
  const startedAtMs = node.clock.monotonic()
  await node.storeRecord('zero')
  const [first = ''] = await node.objects()
  node.clock.advance(40_000)
  await node.storeRecord('one')
  await shareObject(node)
  await node.storeRecord('w'.repeat(20_000), 'waste')
  await node.deliver('waste')
  // Only the beginning is an hour old.
  node.clock.advance(startedAtMs + copyLimits.carriedAfterMs + 5_000 - node.clock.monotonic())
  await node.until('the beginning is put again', async () => !(await node.objects()).includes(first), 500)
  for (const segment of (await node.segments.readLog('log')).segments) {
    node.delivered.add(nameOf(segment))
    await node.segments.remove(segment)
  }
  await node.until('the removal', async () => !(await node.texts()).includes('one'), 500)
  const pieces: SegmentPiece[] = []
  await restoreLog(restoring(node, pieces))
  expect(pieces.filter(({ logName }) => logName === 'log')).toEqual([])
})

/** Adds a record of two logs, in one object. */
async function shareObject(node: CopyingNode): Promise<void> {
  const pair = [await node.append('two'), await node.append('stuck', 'other')]
  await node.until('the copies', () => node.copies.waitingBytes === 0, 10)
  await Promise.all(pair.map(({ copied }) => copied))
}

test('a segment whose beginning was put again, behind its end, is restored as a whole', async () => {
  const node = await lostWith([[pieceOf(1, 9, 'end of 1')], [pieceOf(1, 0, 'beginning')]])
  node.delivered.add(nameOf(pieceOf(1, 0, '')))
  const pieces: SegmentPiece[] = []
  await restoreLog(restoring(node, pieces))
  expect(textsOf(pieces)).toEqual(['end of 1', 'beginning'])
})

test('goes on behind what the node removes meanwhile', async () => {
  const node = await lost(5)
  const get = node.store.get.bind(node.store)
  node.store.get = async (key, signal) => {
    if (key === copyName(node.folder, incarnation, 1)) {
      const found = await findWriterState(node.store, node.folder, never)
      const number = (found?.number ?? 0) + 1
      await putWriterState(node.store, node.folder, { number, state: { fences: 0, below: { [incarnation]: 3 } } }, never)
      for (const removed of [1, 2]) await node.store.remove(copyName(node.folder, incarnation, removed))
    }
    return await get(key, signal)
  }
  const pieces: SegmentPiece[] = []
  await restoreLog(restoring(node, pieces))
  expect(textsOf(pieces)).toEqual(['text 0', 'text 3', 'text 4'])
})

test('finds all, although a put of the word of the node arrives late', async () => {
  const node = await new CopyingNode(stores).startWithStore()
  const late: (() => Promise<unknown>)[] = []
  const { store } = node
  const real = store.putIfAbsent.bind(store)
  await node.storeRecord('a')
  await node.deliver()
  store.putIfAbsent = async (key, body, options) => {
    if (key.includes('/writer/') && late.length === 0) {
      late.push(() => real(key, body, options))
      throw new Error('socket hang up')
    }
    return await real(key, body, options)
  }
  await node.until('the put that is cut', () => late.length === 1, 1_000)
  await node.storeRecord('b')
  await node.deliver()
  await node.until('the removal', async () => (await node.objects()).length === 0, 1_000)
  await node.storeRecord('acknowledged')
  for (const arrive of late) await arrive()
  const pieces: SegmentPiece[] = []
  await restoreLog(restoring(node, pieces))
  expect(textsOf(pieces).join()).toContain('acknowledged')
})

test('an object of a later release ends it', async () => {
  const node = await lost(1)
  await change(node, 0, (object) => {
    object.writeUInt16LE(2, 8)
    resign(object)
  })
  await expect(restoreLog(restoring(node))).rejects.toThrow('a later release of Inlet has to read it')
})

test.each<[string, (object: Buffer) => void]>([
  ['is damaged', (object) => object.writeUInt8((object.at(-1) ?? 0) ^ 1, object.length - 1)],
  [
    'says another size of what is inside',
    (object) => {
      object.writeUInt32LE(1, 80)
      resign(object)
    },
  ],
  [
    'has another number than its name',
    (object) => {
      object.writeUInt32LE(7, 16)
      resign(object)
    },
  ],
])('an object that %s is counted, and the others are restored', async (_, edit) => {
  const node = await lost(3)
  await change(node, 1, edit)
  const pieces: SegmentPiece[] = []
  expect(await restoreLog(restoring(node, pieces))).toMatchObject({ objects: 3, damaged: 1 })
  expect(textsOf(pieces)).toEqual(['text 0', 'text 2'])
})

test('a removal that was stopped goes on', async () => {
  const node = await lost(10)
  const restored = await restoreLog(restoring(node))
  const remove = node.store.remove.bind(node.store)
  let removals = 0
  node.store.remove = async (key, signal) => {
    removals += 1
    if (removals > 4) throw new Error('the operation timed out')
    await remove(key, signal)
  }
  const goOn = removalOf(node, restored)
  for (const _ of [0, 1]) {
    removals = 0
    await expect(goOn(never)).rejects.toThrow('timed out')
  }
  removals = 0
  await goOn(never)
  // The fence, and the object that closes the incarnation.
  expect(await node.objects()).toHaveLength(2)
})

test('the removal leaves what the node has put since control accepts it again', async () => {
  const node = await lost(1)
  const restored = await restoreLog(restoring(node))
  node.isAccepted = true
  await node.startWithStore()
  await node.storeRecord('acknowledged')
  await removalOf(node, restored)(never)
  const own = (await node.objects()).filter((key) => !key.includes('/fence/') && !key.includes(`/${incarnation}/`))
  expect(own).toHaveLength(1)
})

test('the removal takes nothing back that the node says meanwhile', async () => {
  const node = await lost(1)
  const restored = await restoreLog(restoring(node))
  const real = node.store.putIfAbsent.bind(node.store)
  let isFirst = true
  node.store.putIfAbsent = async (key, body, options) => {
    if (key.includes('/writer/') && isFirst) {
      isFirst = false
      node.isAccepted = true
      await node.startWithStore()
      await node.storeRecord('acknowledged')
    }
    return await real(key, body, options)
  }
  await removalOf(node, restored)(never)
  const pieces: SegmentPiece[] = []
  await restoreLog(restoring(node, pieces))
  expect(textsOf(pieces).join()).toContain('acknowledged')
})

test('a damaged object of keys leaves no rest of a delivered segment', async () => {
  const keys = { ...pieceOf(5, 0, 'keys'), logName: keysLogName }
  const node = await lostWith([[pieceOf(1, 90, 'end of 1'), pieceOf(2, 0, 'all of 2')]], 7)
  const later = 'bbbbbbbbbb'
  await putWriterState(
    node.store,
    node.folder,
    { number: 1, state: { fences: 0, below: { [incarnation]: 7, [later]: 0 } } },
    never,
  )
  for (const number of [0, 1]) {
    const header = {
      kind: 'pieces',
      nodeId: node.id,
      incarnation: later,
      number,
      writer: 'ab'.repeat(16),
      createdAtMicros: 1,
    } as const
    const object = Buffer.from(await encodeCopy(header, [keys]))
    if (number === 1) object.writeUInt8((object.at(-1) ?? 0) ^ 1, object.length - 1)
    await node.store.put(copyName(node.folder, later, number), object, put)
  }
  node.delivered.add(nameOf(pieceOf(1, 0, '')))
  const pieces: SegmentPiece[] = []
  expect(await restoreLog(restoring(node, pieces))).toMatchObject({ damaged: 1 })
  expect(textsOf(pieces)).toEqual(['all of 2', 'keys'])
})

test('each takeover adds a fence, also in a store that ignores conditions', async () => {
  const node = await lost(1)
  const { store } = node
  ignoreConditions(store)
  await restoreLog(restoring(node))
  await restoreLog(restoring(node))
  expect(await countFences(store, node.folder, 0, never)).toBe(2)
})
