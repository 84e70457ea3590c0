import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Files } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { DirectoryStores } from './directory.ts'

const options = { contentType: 'text/plain', metadata: {} }
const lake = { bucket: 'lake', external_id: 'inlet-first' }
const keyOf = (country: string) => `in/views/orders/v1/dt=2026-11-20/country=${country}/node-log-7.parquet`
const spellings = ['DE', 'de', 'De', '\u00e9', 'e\u0301', '\u00c9', 'ß', 'ss']

let root = ''
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'inlet-case-'))
})
afterEach(() => rm(root, { recursive: true }))

/** A disk on which names that differ by case, or by the form of an accent, are the same. */
function ignoringCase(files: Files): Files {
  const fold = (name: string) => name.normalize('NFKC').toUpperCase().toLowerCase()
  const resolve = (path: string): string => {
    if (path === root || !path.startsWith(`${root}/`)) return path
    const directory = resolve(dirname(path))
    const name = path.slice(dirname(path).length + 1)
    const names = existsSync(directory) ? readdirSync(directory) : []
    return join(directory, names.find((each) => fold(each) === fold(name)) ?? name)
  }
  return new Proxy(files, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property)
      if (typeof value !== 'function') return value
      if (property === 'makeDirectory')
        return async (path: string) => {
          // At once, as such a disk does: two spellings never make two folders.
          const resolved = resolve(path)
          mkdirSync(resolved, { recursive: true })
          await files.makeDirectory(resolved)
        }
      return (...args: readonly unknown[]) =>
        Reflect.apply(
          value,
          target,
          args.map((arg) => (typeof arg === 'string' ? resolve(arg) : arg)),
        )
    },
  })
}

const open = (files: Files) => new DirectoryStores({ ...system, files, root }).open(lake)

test('partitions whose folders are one on a disk that ignores case keep a file each', async () => {
  const store = open(ignoringCase(system.files))
  const put = async (country: string, text = country) => store.put(keyOf(country), Buffer.from(text), options)
  expect(await store.get(keyOf('DE'))).toBeUndefined()
  await Promise.all(spellings.map((country) => put(country)))
  await put('De', 'again')
  const read = async (country: string) => (await store.get(keyOf(country)))?.toString()
  expect(await Promise.all(spellings.map(read))).toEqual(spellings.map((country) => (country === 'De' ? 'again' : country)))
  expect(await store.head(keyOf('ss'))).toEqual({ bytes: 2 })
  // Engines find the files by their suffix, and those of the first spelling by their key.
  const names = (await readdir(join(root, 'lake'), { recursive: true })).filter((name) => name.includes('node-log'))
  expect(names).toHaveLength(spellings.length)
  const unmarked = names.filter((name) => name.endsWith('/node-log-7.parquet'))
  expect(unmarked).toHaveLength(3)
  for (const name of unmarked) expect(spellings.map(keyOf)).toContain(name)
  for (const name of names) expect(name).toMatch(/\/node-log-7(%~[0-9a-f]{16})?\.parquet$/)
  const keys: string[] = []
  for await (const { key } of store.list('in/')) keys.push(key)
  expect(new Set(keys.map((key) => key.split('/').at(-1)))).toEqual(new Set(['node-log-7.parquet']))
  await store.remove(keyOf('DE'))
  expect([await read('DE'), await read('de')]).toEqual([undefined, 'de'])
  // A process that starts later finds them, too.
  expect((await open(ignoringCase(system.files)).get(keyOf('ß')))?.toString()).toBe('ß')
})

test('a folder that is there keeps its files, and the outer folder counts as well', async () => {
  const store = open(ignoringCase(system.files))
  const nested = (country: string, city: string) => keyOf(`${country}/city=${city}`)
  for (const key of [nested('DE', 'Ulm'), nested('de', 'Ulm'), nested('DE', 'ulm'), 'in/commits/country=de/a.json'])
    await store.put(key, Buffer.from(key), options)
  for (const key of [nested('DE', 'Ulm'), nested('de', 'Ulm'), nested('DE', 'ulm'), 'in/commits/country=de/a.json'])
    expect((await store.get(key))?.toString()).toBe(key)
  const names = await readdir(join(root, 'lake'), { recursive: true })
  expect(names).toEqual(expect.arrayContaining([nested('DE', 'Ulm'), 'in/commits/country=de/a.json']))
  // From a release before.
  const before = join(root, 'lake', keyOf('FR'))
  await mkdir(dirname(before), { recursive: true })
  await writeFile(before, 'before')
  await store.put(keyOf('fr'), Buffer.from('fr'), options)
  const read = async (country: string) => (await store.get(keyOf(country)))?.toString()
  expect([await read('FR'), await read('fr'), await read('Fr')]).toEqual(['before', 'fr', undefined])
})

test('a disk that tells names apart has them as they are', async () => {
  const store = open(system.files)
  for (const country of spellings) await store.put(keyOf(country), Buffer.from(country), options)
  const names = await readdir(join(root, 'lake'), { recursive: true })
  expect(names).toEqual(expect.arrayContaining(spellings.map(keyOf)))
})
