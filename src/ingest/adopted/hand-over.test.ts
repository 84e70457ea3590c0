import { Buffer } from 'node:buffer'
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Files, systemFiles } from '#lib/files.ts'
import { systemRandom } from '#lib/random.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { until } from '../../../test/support/until.ts'
import { digestsOf } from '../idempotency/request-digests.ts'
import { HOUR_MS, RequestFiles } from '../idempotency/request-files.ts'
import { HandOver } from './hand-over.ts'

const lostNode = newId()
const [ownNode, otherNode] = [newId(), newId()]
const endpoint = newId()
const hour = 480_000
const logged: string[] = []
const logger = createLogger('test', null, undefined, { write: (line) => void logged.push(line) })

let directory = ''
beforeEach(async () => {
  logged.length = 0
  directory = await mkdtemp(join(tmpdir(), 'inlet-hand-over-'))
  await mkdir(join(directory, 'stored-requests'))
})
afterEach(() => rm(directory, { recursive: true }))

function open(name: string): RequestFiles {
  return new RequestFiles({
    ...{ directory: join(directory, name), title: name, files: systemFiles, logger },
    ...{ onOpened: () => undefined, onRemoved: () => undefined },
    clock: { monotonic: () => 0, surelyBefore: () => Number.NEGATIVE_INFINITY },
  })
}

const idOf = (key: string) => digestsOf(endpoint, key, { envelope: Buffer.alloc(0), payload: [] }).id

/** Stores requests with these keys in an hour, as the lost node. */
async function store(ofHour: number, ...keys: readonly string[]): Promise<void> {
  const files = open('stored-requests')
  await files.prepare()
  const storedAtMs = ofHour * HOUR_MS
  const digests = (key: string) => digestsOf(endpoint, key, { envelope: Buffer.alloc(0), payload: [] })
  await files.append(
    ofHour,
    keys.map((key) => ({ ...digests(key), seq: 1, records: 1, bytes: 2, storedAtMs })),
  )
  await files.sync()
  await files.close()
}

type More = { readonly files?: Files; readonly by?: string; readonly isWritten?: () => boolean; readonly isOnDisk?: boolean }

/** Runs it until the condition holds, and stops it. */
async function handOver(
  condition: (handOver: HandOver) => boolean,
  { files = systemFiles, by = ownNode, isWritten, isOnDisk = false }: More = {},
) {
  const clock = new ManualClock()
  const handed = new HandOver({
    ...{ nodeId: lostNode, from: join(directory, 'stored-requests'), done: join(directory, 'handed-requests') },
    to: { directory: join(directory, by), nodeId: by, isOnDisk },
    log: { whenRecovered: () => Promise.resolve(true) },
    segments: { logNames: () => Promise.resolve([endpoint]) },
    storedRequests: {
      beforeSeal: () => undefined,
      requireWritten() {
        if (isWritten?.() === false) throw new Error('ENOSPC')
      },
    },
    ...{ files, random: systemRandom, clock, logger },
  })
  await handed.start()
  await until('the hand-over', () => {
    clock.advance(1_000)
    return condition(handed)
  })
  await handed.stop()
}

const isDone = (handed: HandOver) => handed.isDone

async function directories(by = ownNode): Promise<readonly string[]> {
  return await readdir(join(directory, by)).catch(() => [])
}

/** Returns how often each key is known to the node. */
async function known(by: string, ...keys: readonly string[]): Promise<readonly number[]> {
  const counts = keys.map(() => 0)
  for (const name of await directories(by)) {
    const files = open(join(by, name))
    await files.prepare()
    expect([files.problems(), files.damaged]).toEqual([[], 0])
    for (const [index, key] of keys.entries())
      if ((await files.find(idOf(key))) !== undefined) counts[index] = (counts[index] ?? 0) + 1
    await files.close()
  }
  return counts
}

test('keys are handed over once: later only what is new', async () => {
  await store(hour, 'a')
  await store(hour + 1, 'b')
  await handOver(isDone)
  await handOver(isDone)
  expect(await directories()).toHaveLength(1)
  await store(hour + 1, 'c')
  await store(hour + 2, 'd')
  await handOver(isDone)
  expect(await directories()).toHaveLength(2)
  expect(await known(ownNode, 'a', 'b', 'c', 'd')).toEqual([1, 1, 1, 1])
})

test('keys that the adopted node has forgotten are no reason to hand over the others again', async () => {
  for (const each of [hour, hour + 1, hour + 2]) await store(each, `key-${each}`)
  await handOver(isDone)
  for (const each of [hour, hour + 1]) {
    await rm(join(directory, 'stored-requests', `${each}.requests`))
    await handOver(isDone)
  }
  expect(await directories()).toHaveLength(1)
})

test('a disk that another node adopts later is handed over to that one, too', async () => {
  await store(hour, 'a')
  await handOver(isDone)
  await handOver(isDone, { by: otherNode })
  expect([await known(ownNode, 'a'), await known(otherNode, 'a')]).toEqual([[1], [1]])
})

test('the name of a directory says whether the records are on a disk alone', async () => {
  await store(hour, 'a')
  await handOver(isDone, { isOnDisk: true })
  await handOver(isDone, { by: otherNode })
  expect((await directories())[0]).toMatch(new RegExp(`^${lostNode}-disk-[0-9a-f]{8}$`))
  expect((await directories(otherNode))[0]).toMatch(new RegExp(`^${lostNode}-[0-9a-f]{8}$`))
})

test('a file that cannot be read holds nothing up, and is handed over once it can', async () => {
  await store(hour, 'a')
  await store(hour + 1, 'b')
  const bad = join(directory, 'stored-requests', `${hour}.requests`)
  const files: Files = {
    ...systemFiles,
    async open(path, mode) {
      const file = await systemFiles.open(path, mode)
      if (path === bad) file.read = () => Promise.reject(new Error('EIO'))
      return file
    },
  }
  await handOver(isDone, { files })
  expect(await known(ownNode, 'a', 'b')).toEqual([0, 1])
  expect(logged.join()).toContain(`${hour}.requests`)
  await handOver(isDone)
  expect(await known(ownNode, 'a', 'b')).toEqual([1, 1])
})

test('a hand-over that fails leaves nothing behind', async () => {
  await store(hour, 'a')
  let failures = 0
  const files: Files = {
    ...systemFiles,
    async open(path, mode) {
      const file = await systemFiles.open(path, mode)
      if (path.includes('new-'))
        file.sync = () => {
          failures += 1
          return Promise.reject(new Error('ENOSPC'))
        }
      return file
    },
  }
  await handOver(() => failures > 2, { files })
  expect(await directories()).toEqual([])
})

test('keys that could not be written are waited for', async () => {
  let attempts = 0
  await handOver(isDone, {
    isWritten() {
      attempts += 1
      return attempts > 3
    },
  })
  expect(attempts).toBe(4)
  await expect(stat(join(directory, ownNode))).rejects.toThrow('ENOENT')
})
