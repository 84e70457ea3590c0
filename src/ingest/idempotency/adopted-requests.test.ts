/** The keys of lost nodes: faults of their files cost no more than what is in them. */
import { Buffer } from 'node:buffer'
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Files, systemFiles } from '#lib/files.ts'
import { createLogger } from '#lib/telemetry.ts'
import { hourMs } from '#lib/time-units.ts'
import type { FrameInput } from '#log/frame.ts'
import { newId } from '#model/id.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { until } from '../../../test/support/until.ts'
import { StoredRequests } from './stored-requests.ts'

const endpoint = newId()
const [first, second] = [newId(), newId()].map((id) => `${id}-0a0b0c0d`) as [string, string]
const logger = createLogger('test', 'silent')

let directory = ''
let clock = new ManualClock()
let checked = new CheckedClock({ machine: clock, logger })
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-adopted-'))
  clock = new ManualClock()
  checked = new CheckedClock({ machine: clock, logger })
  checked.observe(clock.now(), clock.monotonic())
})
afterEach(() => rm(directory, { recursive: true }))

const adopted = (...names: readonly string[]) => join(directory, 'adopted', ...names)

async function start(stored: string, { files = systemFiles, max = 1_000 }: { files?: Files; max?: number } = {}) {
  const requests = new StoredRequests({
    ...{ directory: join(directory, stored), adoptedDirectory: adopted(), max, files, clock: checked, logger },
  })
  await requests.start()
  return requests
}

let seq = 0
async function send(requests: StoredRequests, key: string) {
  const frame: FrameInput = {
    ...{ layout: 'lines', receivedAtMicros: clock.now() * 1000, recordCount: 1, envelope: Buffer.alloc(0) },
    payload: [Buffer.from('{}')],
  }
  return await requests.once(endpoint, key, frame, async () => {
    seq += 1
    requests.appended(seq, [frame])
    return { seq }
  })
}

/** Stores requests with these keys, as a node that is lost then. */
async function adopt(name: string, ...keys: readonly string[]): Promise<void> {
  const requests = new StoredRequests({ directory: adopted(name), max: 100_000, files: systemFiles, clock: checked, logger })
  await requests.start()
  for (const key of keys) await send(requests, key)
  await requests.stop()
}

const isRepeated = { isRepeated: true }
const isNew = { isRepeated: false }
const isRefused = expect.objectContaining({ message: expect.stringContaining('cannot read all of its idempotency keys') })

/** Files of which those below a path fail while `isBroken`. */
function failing(path: string, calls: readonly ('open' | 'list' | 'remove')[], code = 'EACCES') {
  const state = { isBroken: true }
  const fail = (name: string) => {
    if (state.isBroken && name.startsWith(path)) throw Object.assign(new Error(code), { code })
  }
  const files: Files = { ...systemFiles }
  for (const call of calls) {
    const work = systemFiles[call].bind(systemFiles) as (path: string, ...more: unknown[]) => Promise<never>
    files[call] = async (name: string, ...more: unknown[]) => {
      fail(name)
      return await work(name, ...more)
    }
  }
  return { files, state }
}

test('a file that cannot be read hides no key that is elsewhere', async () => {
  await adopt(first, 'a')
  await adopt(second, 'b')
  for (const [unreadable, found, hidden] of [
    [first, 'b', 'a'],
    [second, 'a', 'b'],
  ] as const) {
    const { files, state } = failing(adopted(unreadable), ['open'])
    const requests = await start('own', { files })
    expect(await send(requests, found)).toMatchObject(isRepeated)
    for (const key of [hidden, 'new']) await expect(send(requests, key)).rejects.toEqual(isRefused)
    state.isBroken = false
    clock.advance(10_000)
    await until('the file', () => requests.problems().length === 0)
    expect(await send(requests, hidden)).toMatchObject(isRepeated)
    await requests.stop()
  }
})

test('keys of lost nodes are found while own ones cannot be read', async () => {
  await adopt(first, 'a')
  const before = await start('own')
  await send(before, 'own')
  await before.stop()
  const requests = await start('own', { files: failing(join(directory, 'own'), ['open']).files })
  expect(await send(requests, 'a')).toMatchObject(isRepeated)
  await expect(send(requests, 'own')).rejects.toEqual(isRefused)
  await requests.stop()
})

test('while the directory cannot be listed, no request is stored again, the problem is told, and old keys are removed', async () => {
  await adopt(first, 'a')
  const { files, state } = failing(adopted(), ['list'])
  const requests = await start('own', { files })
  for (const key of ['a', 'new']) await expect(send(requests, key)).rejects.toEqual(isRefused)
  expect(requests.problems()).toEqual([expect.stringMatching(/adopted-requests .* cannot be read \(EACCES\)/)])
  expect(requests.refused().map(({ endpoint_id }) => endpoint_id)).toEqual([endpoint])
  state.isBroken = false
  clock.advance(10_000)
  await until('the directory', () => requests.problems().length === 0)
  expect(await send(requests, 'a')).toMatchObject(isRepeated)
  expect(await send(requests, 'new')).toMatchObject(isNew)
  await requests.beforeSeal()

  state.isBroken = true
  clock.advance(27 * hourMs)
  checked.observe(clock.now(), clock.monotonic())
  const own = async () => (await readdir(join(directory, 'own'))).filter((name) => name.endsWith('.requests'))
  await until('the removal', async () => {
    clock.advance(10_000)
    return (await own()).length === 0
  })
  await requests.stop()
})

test('directories go with their last keys, whatever a crash left in them or beside them', async () => {
  await adopt(first, 'a')
  await writeFile(adopted(first, 'counts.7-0a0b0c0d.tmp'), 'x')
  const unfinished = adopted(`new-${newId()}`)
  await mkdir(unfinished)
  await writeFile(join(unfinished, '480000.requests'), 'x')
  const requests = await start('own')
  expect(await send(requests, 'a')).toMatchObject({ ...isRepeated, isOnDisk: false })
  expect((await readdir(adopted())).length).toBe(2)
  // The file system has a clock of its own.
  const now = new Date(clock.now())
  await utimes(unfinished, now, now)
  clock.advance(Math.max(27 * hourMs, Date.now() - clock.now() + 27 * hourMs))
  checked.observe(clock.now(), clock.monotonic())
  await until('the end', async () => {
    clock.advance(10_000)
    return (await readdir(adopted())).length === 0
  })
  await requests.stop()
})

test('keys of lost nodes take nothing from the room for new ones, and have a bound of their own', async () => {
  const keys = (prefix: string) => Array.from({ length: 1_000 }, (_, n) => `${prefix}-${n}`)
  await adopt(first, ...keys('a'))
  await adopt(second, ...keys('b'))
  const requests = await start('own', { max: 1_000 })
  expect(requests.count).toBe(1_000)
  expect(requests.problems()).toEqual([expect.stringContaining('INLET_IDEMPOTENCY_KEYS_MAX')])
  const known = (await Promise.all(['a-0', 'b-0'].map((key) => send(requests, key)))).filter((stored) => stored.isRepeated)
  expect(known.length).toBe(1)
  for (const key of keys('c').slice(0, 400)) expect(await send(requests, key)).toMatchObject(isNew)
  await requests.stop()
})

test('a receipt says whether the records are on an adopted disk alone', async () => {
  const name = first.replace(/-(\w+)$/, '-disk-$1')
  await adopt(name, 'a')
  const requests = await start('own')
  expect(await send(requests, 'a')).toMatchObject({ ...isRepeated, nodeId: first.slice(0, 36), isOnDisk: true })
  await requests.stop()
})
