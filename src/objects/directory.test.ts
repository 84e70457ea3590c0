import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DirectoryStores } from './directory.ts'

const options = { contentType: 'text/plain', metadata: {} }
let root = ''

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'inlet-objects-'))
})
afterEach(() => rm(root, { recursive: true }))

describe('DirectoryStore', () => {
  test('a put lies under bucket and key and replaces what was there', async () => {
    const store = new DirectoryStores({ root }).open({ bucket: 'local' })
    await store.put('a/b/c.txt', Buffer.from('one'), options)
    await store.put('a/b/c.txt', Buffer.from('two'), options)
    expect(await readFile(join(root, 'local/a/b/c.txt'), 'utf8')).toBe('two')
    expect(await store.get('a/b/c.txt')).toEqual(Buffer.from('two'))
    expect(await readdir(join(root, '.incoming'))).toEqual([])
  })

  test('a file is copied, and the source stays', async () => {
    const store = new DirectoryStores({ root }).open({ bucket: 'local' })
    const source = join(root, 'source')
    await writeFile(source, 'bytes')
    await store.putFile('x', source, options)
    expect(await readFile(source, 'utf8')).toBe('bytes')
    expect(await store.get('x')).toEqual(Buffer.from('bytes'))
  })

  test('an object is copied into a file', async () => {
    const store = new DirectoryStores({ root }).open({ bucket: 'local' })
    await store.put('a/x', Buffer.from('bytes'), options)
    expect(await store.getFile('a/x', join(root, 'copy'))).toBe(true)
    expect(await readFile(join(root, 'copy'), 'utf8')).toBe('bytes')
    expect(await store.getFile('a/y', join(root, 'other'))).toBe(false)
    await expect(store.getFile('a/x', join(root, 'aborted'), AbortSignal.abort())).rejects.toThrow()
  })

  test('what is not there: get says undefined, remove is content', async () => {
    const store = new DirectoryStores({ root }).open({ bucket: 'local' })
    expect(await store.get('no/such')).toBeUndefined()
    await store.remove('no/such')
    expect(await Array.fromAsync(store.list(''))).toEqual([])
  })

  test('list gives the keys with the prefix, in order of their bytes', async () => {
    const store = new DirectoryStores({ root }).open({ bucket: 'local' })
    for (const key of ['p/b', 'p/a/2', 'p/a/1', 'q/z', 'p/ab']) await store.put(key, Buffer.from(key), options)
    expect(await Array.fromAsync(store.list('p/a'))).toEqual([
      { key: 'p/a/1', bytes: 5 },
      { key: 'p/a/2', bytes: 5 },
      { key: 'p/ab', bytes: 4 },
    ])
  })

  test('a key cannot leave the bucket', async () => {
    const store = new DirectoryStores({ root }).open({ bucket: 'local' })
    await expect(store.put('../other/x', Buffer.from(''), options)).rejects.toThrow('not a part of an object key')
    expect(() => new DirectoryStores({ root }).open({ bucket: '..' })).toThrow('not a part of an object key')
  })

  test('an aborted put leaves nothing to be seen', async () => {
    const store = new DirectoryStores({ root }).open({ bucket: 'local' })
    await expect(store.put('k', Buffer.from('x'), { ...options, signal: AbortSignal.abort() })).rejects.toThrow()
    expect(await store.get('k')).toBeUndefined()
  })
})
