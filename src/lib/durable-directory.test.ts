import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { forgetDirectory, makeDurableDirectory } from './durable-directory.ts'

let root = ''
let synced: string[] = []
const syncDirectory = async (path: string) => void synced.push(path)

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'inlet-durable-'))
  synced = []
})
afterEach(() => rm(root, { recursive: true, force: true }))

describe('the parent of every directory on the way is synced', () => {
  test('top down, also far above the data, and only once', async () => {
    await makeDurableDirectory(join(root, 'data', 'node', 'wal'), { syncDirectory })
    expect(synced.slice(-4)).toEqual([dirname(root), root, join(root, 'data'), join(root, 'data', 'node')])
    synced = []
    await makeDurableDirectory(join(root, 'data', 'node', 'wal'), { syncDirectory })
    await makeDurableDirectory(join(root, 'data', 'node', 'outbox'), { syncDirectory })
    expect(synced).toEqual([join(root, 'data', 'node')])
  })

  test('also if somebody else created it and may have crashed before the sync', async () => {
    const path = join(root, 'data', 'wal')
    await mkdir(path, { recursive: true })
    await makeDurableDirectory(path, { syncDirectory })
    expect(synced.slice(-2)).toEqual([root, join(root, 'data')])
  })

  test('by each of two calls at the same time: neither returns before', async () => {
    const path = join(root, 'a', 'b')
    const gate = Promise.withResolvers<void>()
    const slow = async (parent: string) => {
      await gate.promise
      synced.push(parent)
    }
    let returned = 0
    const calls = [1, 2].map(() => makeDurableDirectory(path, { syncDirectory: slow }).then(() => (returned += 1)))
    await new Promise((resolve) => setImmediate(resolve))
    expect(returned).toBe(0)
    gate.resolve()
    await Promise.all(calls)
    expect(synced).toContain(join(root, 'a'))
  })

  test('again after a failure', async () => {
    const path = join(root, 'a')
    const fail = () => Promise.reject(Object.assign(new Error('EIO'), { code: 'EIO' }))
    await expect(makeDurableDirectory(path, { syncDirectory: fail })).rejects.toMatchObject({ code: 'EIO' })
    await makeDurableDirectory(path, { syncDirectory })
    expect(synced.at(-1)).toBe(root)
  })

  test.each(['removed by us', 'removed by others'])('again after it was %s', async (who) => {
    const path = join(root, 'a')
    await makeDurableDirectory(path, { syncDirectory })
    await rm(path, { recursive: true })
    if (who === 'removed by us') {
      forgetDirectory(path)
      await mkdir(path)
    }
    synced = []
    await makeDurableDirectory(path, { syncDirectory })
    expect(synced).toEqual([root])
  })
})

test('a directory above that belongs to somebody else is skipped, one that was just created is not', async () => {
  await mkdir(join(root, 'foreign'))
  const denied = async (path: string) => {
    if (path === root) throw Object.assign(new Error('EACCES'), { code: 'EACCES' })
    synced.push(path)
  }
  await makeDurableDirectory(join(root, 'foreign', 'data'), { syncDirectory: denied })
  expect(synced.at(-1)).toBe(join(root, 'foreign'))
  await expect(makeDurableDirectory(join(root, 'own'), { syncDirectory: denied })).rejects.toMatchObject({ code: 'EACCES' })
})

test.skipIf(process.platform !== 'linux')('a directory that the system does not let anybody create is an error', async () => {
  await expect(makeDurableDirectory('/proc/inlet/data', { syncDirectory })).rejects.toMatchObject({
    code: 'ENOENT',
    path: '/proc/inlet',
  })
})
