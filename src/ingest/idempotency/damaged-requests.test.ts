/** Damage to the files of idempotency keys: no other key is forgotten, nothing is silent, and the node starts. */
import { Buffer } from 'node:buffer'
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, rmdir, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Files, systemFiles } from '#lib/files.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { FrameInput } from '#log/frame.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { until } from '../../../test/support/until.ts'
import { StoredRequests } from './stored-requests.ts'

const endpoint = '0b8fbf52-0d6e-4f0f-9a83-7f8f9c1d2e3f'
const entryBytes = 80

let directory = ''
const logged: string[] = []
const logger = createLogger('test', null, undefined, { write: (line) => void logged.push(line) })
let clock = new ManualClock()
let checked = new CheckedClock({ machine: clock, logger })
beforeEach(async () => {
  logged.length = 0
  directory = await mkdtemp(join(tmpdir(), 'inlet-requests-'))
  clock = new ManualClock()
  checked = new CheckedClock({ machine: clock, logger })
  checked.observe(clock.now(), clock.monotonic())
})
afterEach(() => rm(directory, { recursive: true }))

async function start(files: Files = systemFiles): Promise<StoredRequests> {
  const requests = new StoredRequests({ directory, max: 10_000, files, clock: checked, logger })
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

/** Returns the path of the file in which the keys 0 to `count - 1` are, in this order. */
async function fileWith(count: number): Promise<string> {
  const requests = await start()
  for (let key = 0; key < count; key += 1) await send(requests, String(key))
  await requests.stop()
  const [name = ''] = (await readdir(directory)).filter((entry) => entry.endsWith('.requests'))
  return join(directory, name)
}

async function overwrite(path: string, place: number, bytes: Buffer): Promise<void> {
  const file = await open(path, 'r+')
  await file.write(bytes, 0, bytes.length, place * entryBytes)
  await file.close()
}

async function quarantined(): Promise<readonly Buffer[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.quarantine'))
  return await Promise.all(names.map((name) => readFile(join(directory, name))))
}

const garbage = (entries: number) => Buffer.alloc(entries * entryBytes, 0xa5)
const zeros = (entries: number) => Buffer.alloc(entries * entryBytes)

describe('damage in a file', () => {
  test.each([
    ['the first one', [[0, garbage(1)]], [0]],
    ['one in the middle', [[20, garbage(1)]], [20]],
    ['the last one', [[29, garbage(1)]], [29]],
    [
      'several',
      [
        [0, garbage(1)],
        [7, garbage(2)],
        [29, garbage(1)],
      ],
      [0, 7, 8, 29],
    ],
    ['a run of zeros in the middle', [[10, zeros(12)]], Array.from({ length: 12 }, (_, at) => 10 + at)],
  ] as const)('%s: the other keys are known, and it is counted and kept', async (_, damage, lost) => {
    const path = await fileWith(30)
    for (const [place, bytes] of damage) await overwrite(path, place, bytes)
    const before = await readFile(path)

    const requests = await start()
    expect(requests.damaged).toBe(lost.length)
    expect(requests.problems()).toEqual([expect.stringMatching(`^${lost.length} idempotency keys .* are damaged`)])
    expect(await quarantined()).toEqual([before])
    for (let key = 0; key < 30; key += 1)
      expect([key, await send(requests, String(key))]).toEqual([
        key,
        expect.objectContaining({ isRepeated: !lost.some((place) => place === key) }),
      ])
    // Requests that were stored again are known from now on, in places of their own.
    await requests.stop()
    expect((await readFile(path)).subarray(0, 30 * entryBytes)).toEqual(before)
    expect(logged.join()).toContain('idempotency keys damaged')
    logged.length = 0
    const later = await start()
    expect(later.damaged).toBe(lost.length)
    expect(logged.filter((line) => line.includes('"level":"error"'))).toEqual([])
    for (let key = 0; key < 30; key += 1) expect(await send(later, String(key))).toMatchObject({ isRepeated: true })
    expect(await quarantined()).toEqual([before])
    await later.stop()
  })

  test('an end that was never written completely is cut without a report', async () => {
    const path = await fileWith(6)
    // The seventh begins in the last 32 bytes of a sector, which were written. The sectors after it were not.
    await overwrite(path, 6, Buffer.concat([Buffer.alloc(32, 0xa5), zeros(3), Buffer.alloc(33)]))
    const requests = await start()
    expect([requests.damaged, requests.problems(), await quarantined()]).toEqual([0, [], []])
    expect((await readFile(path)).length).toBe(6 * entryBytes)
    await requests.stop()
  })

  test('while the node runs: it is counted once', async () => {
    const path = await fileWith(3)
    const requests = await start()
    await overwrite(path, 1, garbage(1))
    expect(await send(requests, '1')).toMatchObject({ isRepeated: false })
    expect(await send(requests, '1')).toMatchObject({ isRepeated: true })
    expect(await send(requests, '2')).toMatchObject({ isRepeated: true })
    expect(requests.damaged).toBe(1)
    await requests.stop()
  })

  test('the copy goes with the keys', async () => {
    const path = await fileWith(3)
    await overwrite(path, 1, garbage(1))
    const requests = await start()
    clock.advance(26 * 3_600_000)
    await until('the files to go', async () => {
      clock.advance(10_000)
      return (await readdir(directory)).length === 0
    })
    await requests.stop()
  })
})

describe('a file with fewer requests than it had', () => {
  test.each([
    ['cut between two requests', (path: string) => truncate(path, 20 * entryBytes), 10],
    ['cut within one', (path: string) => truncate(path, 20 * entryBytes - 7), 11],
    ['with zeros at its end', (path: string) => overwrite(path, 25, zeros(5)), 5],
    ['removed', (path: string) => rm(path), 30],
  ] as const)('%s: what is gone is counted until it would have been forgotten', async (_, change, gone) => {
    const path = await fileWith(30)
    await change(path)
    for (let again = 0; again < 2; again += 1) {
      logged.length = 0
      const requests = await start()
      expect(requests.damaged).toBe(gone)
      expect(requests.problems()).toEqual([expect.stringMatching(`^${gone} idempotency keys .* are damaged or gone`)])
      // Later starts find nothing new.
      expect(logged.filter((line) => line.includes('"level":"error"'))).toHaveLength(again === 0 ? 1 : 0)
      await send(requests, `new ${again}`)
      await requests.stop()
    }
    const later = await start()
    clock.advance(27 * 3_600_000)
    await until('the loss to be forgotten', () => {
      clock.advance(10_000)
      return later.damaged === 0
    })
    await later.stop()
  })

  test('replaced by an older copy', async () => {
    const path = await fileWith(10)
    const copy = await readFile(path)
    await fileWith(30)
    await writeFile(path, copy)
    const requests = await start()
    expect(requests.damaged).toBe(20)
    await requests.stop()
  })

  test('after the counts were lost, and a start that added nothing', async () => {
    const path = await fileWith(30)
    await rm(join(directory, 'counts'))
    await (await start()).stop()
    await rm(path)
    const requests = await start()
    expect(requests.damaged).toBe(30)
    await requests.stop()
  })

  test('a start that cannot read the directory forgets no loss', async () => {
    const path = await fileWith(30)
    await truncate(path, 20 * entryBytes)
    await (await start()).stop()
    await rename(directory, `${directory}-moved`)
    await writeFile(directory, '')
    const requests = await start()
    expect(requests.problems()).toHaveLength(1)
    await rm(directory)
    await rename(`${directory}-moved`, directory)
    await truncate(path, 15 * entryBytes)
    await until('the directory to be read', () => {
      clock.advance(10_000)
      return !requests.problems().some((problem) => problem.includes('cannot be read'))
    })
    expect(requests.damaged).toBe(15)
    await requests.stop()
    const later = await start()
    expect(later.damaged).toBe(15)
    await later.stop()
  })

  test('counts that are missing or damaged are no loss', async () => {
    await fileWith(30)
    for (const change of [(path: string) => rm(path), (path: string) => writeFile(path, 'x\n')]) {
      await change(join(directory, 'counts'))
      const requests = await start()
      expect([requests.damaged, (await send(requests, '29')).isRepeated]).toEqual([0, true])
      await requests.stop()
    }
  })
})

describe('a file that cannot be read', () => {
  test('refuses only keys that may be in it, until it can be read', async () => {
    const path = await fileWith(3)
    clock.advance(3_600_000)
    const other = await start()
    await send(other, 'other')
    await other.stop()
    await rename(path, `${path}-moved`)
    await mkdir(path)

    const requests = await start()
    expect(await send(requests, 'other')).toMatchObject({ isRepeated: true })
    for (const key of ['1', 'new'])
      await expect(send(requests, key)).rejects.toMatchObject({
        ...{ outcome: 'not_stored', retryAfterSeconds: 5 },
        message: 'this node cannot read all of its idempotency keys now; try again in 5 s',
      })
    const reason = expect.stringMatching(/^stored-requests\/\d+\.requests .* cannot be read \(EISDIR\): .* make it readable/)
    expect(requests.problems()).toEqual([reason])
    expect(requests.refused()).toEqual([{ endpoint_id: endpoint, reason }])

    await rmdir(path)
    await rename(`${path}-moved`, path)
    await until('the file to be read', () => {
      clock.advance(10_000)
      return requests.problems().length === 0
    })
    expect(requests.refused()).toEqual([])
    expect(await send(requests, '1')).toMatchObject({ isRepeated: true })
    expect(await send(requests, 'new')).toMatchObject({ isRepeated: false })
    await requests.stop()
  })

  test('refuses nothing once it is moved away: what was in it is gone', async () => {
    const path = await fileWith(3)
    await rename(path, `${path}-moved`)
    await mkdir(path)
    const requests = await start()
    await expect(send(requests, 'new')).rejects.toMatchObject({ outcome: 'not_stored' })
    await rmdir(path)
    await until('the file to be given up', () => {
      clock.advance(10_000)
      return !requests.problems().some((problem) => problem.includes('cannot be read'))
    })
    expect([requests.damaged, requests.refused()]).toEqual([3, []])
    expect(await send(requests, 'new')).toMatchObject({ isRepeated: false })
    await requests.stop()
  })

  test('and a directory that cannot be read, do not stop the start', async () => {
    await rm(directory, { recursive: true })
    await writeFile(directory, '')
    const requests = await start()
    await expect(send(requests, 'a')).rejects.toMatchObject({ outcome: 'not_stored' })
    expect(requests.problems()).toEqual([expect.stringMatching(/^the directory stored-requests .* \(ENOTDIR\)/)])
    await rm(directory)
    await mkdir(directory)
    await until('the file to be read', () => {
      clock.advance(10_000)
      return requests.problems().length === 0
    })
    expect(await send(requests, 'a')).toMatchObject({ isRepeated: false })
    await requests.stop()
  })

  test('while the node runs: requests are refused, not failed', async () => {
    let isBroken = false
    const files: Files = {
      ...systemFiles,
      open: async (path, mode) => {
        const file = await systemFiles.open(path, mode)
        const read = async (into: Uint8Array, position: number) => {
          if (isBroken) throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' })
          return await file.read(into, position)
        }
        return new Proxy(file, {
          get(target, name) {
            if (name === 'read') return read
            const value: unknown = Reflect.get(target, name)
            return typeof value === 'function' ? value.bind(target) : value
          },
        })
      },
    }
    await fileWith(3)
    const requests = await start(files)
    isBroken = true
    await expect(send(requests, '1')).rejects.toMatchObject({ outcome: 'not_stored' })
    expect(requests.problems()).toEqual([expect.stringContaining('(EIO)')])
    clock.advance(10_000)
    isBroken = false
    await until('the file to be read', () => {
      clock.advance(10_000)
      return requests.problems().length === 0
    })
    expect(await send(requests, '1')).toMatchObject({ isRepeated: true })
    await requests.stop()
  })
})
