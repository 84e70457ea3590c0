/** The contract of every object store. */
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ObjectStore } from '#objects/object-store.ts'

export type Opened = AsyncDisposable & { readonly store: ObjectStore }

const options = { contentType: 'text/plain', metadata: { seq: '7' } }

/** `open` returns a store on an empty bucket. It may use the directory. */
export function objectStoreSuite(name: string, open: (directory: string) => Promise<Opened>): void {
  describe(`an object store: ${name}`, () => {
    let directory = ''
    const opened = () => open(directory)

    beforeEach(async () => {
      directory = await mkdtemp(join(tmpdir(), 'inlet-objects-'))
    })
    afterEach(() => rm(directory, { recursive: true }))

    test('put stores an object and replaces an existing one', async () => {
      await using at = await opened()
      await at.store.put('a/b/c.txt', Buffer.from('one'), options)
      await at.store.put('a/b/c.txt', Buffer.from('two'), options)
      expect(Buffer.from((await at.store.get('a/b/c.txt')) ?? [])).toEqual(Buffer.from('two'))
    })

    test('putIfAbsent keeps the object that is there, also if ten come at the same time', async () => {
      await using at = await opened()
      const puts = Array.from({ length: 10 }, (_, index) => at.store.putIfAbsent('a/b/c.json', Buffer.from(`${index}`), options))
      const isPut = await Promise.all(puts)
      expect(isPut.filter(Boolean)).toEqual([true])
      expect(Buffer.from((await at.store.get('a/b/c.json')) ?? []).toString()).toBe(String(isPut.indexOf(true)))
      expect(await at.store.putIfAbsent('a/b/c.json', Buffer.from('later'), options)).toBe(false)
      expect((await Array.fromAsync(at.store.list(''))).map(({ key }) => key)).toEqual(['a/b/c.json'])
    })

    test.each([0, 1, 300_000])('putFile uploads %i bytes and keeps the source', async (bytes) => {
      await using at = await opened()
      const source = join(directory, 'source')
      const content = Buffer.alloc(bytes, 'inlet ')
      await writeFile(source, content)
      await at.store.putFile('x', source, options)
      expect(await readFile(source)).toEqual(content)
      expect(Buffer.from((await at.store.get('x')) ?? [1])).toEqual(content)
    })

    test('putFile throws for a missing file and stores nothing', async () => {
      await using at = await opened()
      await expect(at.store.putFile('x', join(directory, 'none'), options)).rejects.toThrow('ENOENT')
      expect(await at.store.get('x')).toBeUndefined()
    })

    test('getFile downloads an object to a file', async () => {
      await using at = await opened()
      await at.store.put('a/x', Buffer.from('bytes'), options)
      expect(await at.store.getFile('a/x', join(directory, 'copy'))).toBe(true)
      expect(await readFile(join(directory, 'copy'), 'utf8')).toBe('bytes')
      expect(await at.store.getFile('a/y', join(directory, 'other'))).toBe(false)
      await expect(readFile(join(directory, 'other'))).rejects.toThrow('ENOENT')
    })

    test('digest returns the size and the SHA-256 of an object, and waits for its reader', async () => {
      await using at = await opened()
      await at.store.put('a/x', Buffer.alloc(300_000, 'inlet '), options)
      let read = 0
      const found = await at.store.digest('a/x', {
        async onRead(bytes) {
          await Promise.resolve()
          read += bytes
        },
      })
      const sha256 = createHash('sha256').update(Buffer.alloc(300_000, 'inlet ')).digest('hex')
      expect(found).toEqual({ bytes: 300_000, sha256 })
      expect(read).toBe(300_000)
      expect(await at.store.digest('a/y')).toBeUndefined()
    })

    test('head returns the bytes of an object, or undefined', async () => {
      await using at = await opened()
      await at.store.put('a/x', Buffer.from('bytes'), options)
      await at.store.put('a/empty', Buffer.alloc(0), options)
      const found = await Promise.all(['a/x', 'a/empty', 'a', 'a/y'].map((key) => at.store.head(key)))
      expect(found.map((facts) => facts?.bytes)).toEqual([5, 0, undefined, undefined])
    })

    test('get returns undefined for a missing object, and remove accepts it', async () => {
      await using at = await opened()
      expect(await at.store.get('no/such')).toBeUndefined()
      await at.store.remove('no/such')
      expect(await Array.fromAsync(at.store.list(''))).toEqual([])
    })

    test('a removed object is missing', async () => {
      await using at = await opened()
      await at.store.put('x', Buffer.from('bytes'), options)
      await at.store.remove('x')
      expect(await at.store.get('x')).toBeUndefined()
    })

    test('keys may have empty parts and percent signs', async () => {
      await using at = await opened()
      const keys = ['p/%/x', 'p/%25/x', 'p//x', 'p/x']
      for (const key of keys) await at.store.put(key, Buffer.from(key), options)
      for (const key of keys) expect(Buffer.from((await at.store.get(key)) ?? []).toString()).toBe(key)
      const listed = async (prefix: string) => (await Array.fromAsync(at.store.list(prefix))).map(({ key }) => key)
      expect(await listed('p/')).toEqual(['p/%/x', 'p/%25/x', 'p//x', 'p/x'])
      expect(await listed('p//')).toEqual(['p//x'])
    })

    test('list returns the keys with the prefix, ordered by their bytes', async () => {
      await using at = await opened()
      for (const key of ['p/b', 'p/a/2', 'p/a/1', 'q/z', 'p/ab', 'p/aü', 'p/a&<"'])
        await at.store.put(key, Buffer.from(key), options)
      expect(await Array.fromAsync(at.store.list('p/a'))).toEqual([
        { key: 'p/a&<"', bytes: 6 },
        { key: 'p/a/1', bytes: 5 },
        { key: 'p/a/2', bytes: 5 },
        { key: 'p/ab', bytes: 4 },
        { key: 'p/aü', bytes: 5 },
      ])
    })

    test('keys with characters reserved in URLs are stored unchanged', async () => {
      await using at = await opened()
      const keys = ['dt=2026-11-20/a b+c', "it's (one) *!~", '%2F?#&=@:,;$', 'ü/日本/🙂']
      for (const key of keys) await at.store.put(key, Buffer.from(key), options)
      for (const key of keys) expect(Buffer.from((await at.store.get(key)) ?? []).toString()).toBe(key)
      expect((await Array.fromAsync(at.store.list(''))).map(({ key }) => key).sort()).toEqual(keys.toSorted())
    })

    test('an aborted signal fails each operation with its reason, and nothing changes', async () => {
      await using at = await opened()
      const source = join(directory, 'source')
      await writeFile(source, 'bytes')
      await at.store.put('there', Buffer.from('x'), options)
      const reason = new Error('no more')
      const signal = AbortSignal.abort(reason)
      const aborted = [
        () => at.store.put('k', Buffer.from('x'), { ...options, signal }),
        () => at.store.putFile('k', source, { ...options, signal }),
        () => at.store.get('there', signal),
        () => at.store.getFile('there', join(directory, 'copy'), signal),
        () => at.store.remove('there', signal),
        () => Array.fromAsync(at.store.list('', signal)),
      ]
      for (const act of aborted) await expect(act()).rejects.toBe(reason)
      expect((await Array.fromAsync(at.store.list(''))).map(({ key }) => key)).toEqual(['there'])
    })
  })
}
