import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
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
  test('put stores an object under bucket and key, and replaces an existing one', async () => {
    const store = new DirectoryStores({ root }).open({ bucket: 'local' })
    await store.put('a/b/c.txt', Buffer.from('one'), options)
    await store.put('a/b/c.txt', Buffer.from('two'), options)
    expect(await readFile(join(root, 'local/a/b/c.txt'), 'utf8')).toBe('two')
    expect(await readdir(join(root, '.incoming'))).toEqual([])
  })

  test('a key cannot leave the bucket', async () => {
    const store = new DirectoryStores({ root }).open({ bucket: 'local' })
    await expect(store.put('../other/x', Buffer.from(''), options)).rejects.toThrow('invalid part of an object key')
    expect(() => new DirectoryStores({ root }).open({ bucket: '..' })).toThrow('invalid part of an object key')
  })
})
