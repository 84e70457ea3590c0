import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemRandom } from '#lib/random.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { copyBucket } from '../../test/support/copy-bucket.ts'
import { FaultyStores } from '../../test/support/faulty-stores.ts'
import { checkCopyStore } from './store-check.ts'

const signal = new AbortController().signal

let directory = ''
let store: ObjectStore
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-store-check-'))
  store = new FaultyStores(directory).open(copyBucket)
})
afterEach(() => rm(directory, { recursive: true }))

/** Returns the steps that have a problem, with it. */
async function problems(): Promise<readonly string[]> {
  const findings = await checkCopyStore({ store, folder: 'in/let/', random: systemRandom, signal, rounds: 3 })
  return findings.flatMap(({ step, kind, problem }) => (problem === null ? [] : `${kind}: ${step}: ${problem}`))
}

test('nothing is wrong with a directory, and nothing is left in it', async () => {
  expect(await problems()).toEqual([])
  const left: string[] = []
  for await (const { key } of store.list('')) left.push(key)
  expect(left).toEqual([])
})

test('a store that ignores conditions is no second fence', async () => {
  let last = Promise.resolve()
  store.putIfAbsent = async (key, body, options) => {
    last = last.then(() => store.put(key, body, options))
    await last
    return true
  }
  expect(await problems()).toEqual([
    'fence: a put with If-None-Match is refused if the name is taken: it replaced the object',
    'fence: of several such puts at once one is taken: 8 of 8 were taken',
  ])
})

test('a store that gives old answers keeps no copies', async () => {
  const { get } = store
  const first = new Map<string, Uint8Array | undefined>()
  store.get = async (key, abort) => {
    if (!first.has(key)) first.set(key, await get.call(store, key, abort))
    return first.get(key)
  }
  expect((await problems())[0]).toBe('needed: a put that replaces is read: another content is read right after the put')
})

test('a store that takes nothing says why', async () => {
  store.put = async () => {
    throw new Error('the bucket does not exist')
  }
  await expect(problems()).rejects.toThrow('the bucket does not exist')
})
