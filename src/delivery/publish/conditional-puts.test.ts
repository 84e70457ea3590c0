import { expect, test } from 'vitest'
import type { Logger } from '#lib/telemetry.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import { ConditionalPuts } from './conditional-puts.ts'

type Kind = 'heeds' | 'ignores' | 'refuses' | 'unreadable'

function furnished(kind: Kind) {
  const objects = new Map<string, string>()
  const warnings: string[] = []
  const calls: string[] = []
  const read = () => {
    if (kind === 'unreadable') throw new ObjectStoreError('get_denied', 'get', 'AccessDenied', 'denied')
  }
  const store = {
    async head(key: string) {
      calls.push('head')
      read()
      return objects.has(key) ? { bytes: 1 } : undefined
    },
    async get(key: string) {
      calls.push('get')
      read()
      const found = objects.get(key)
      return found && Buffer.from(found)
    },
    async put(key: string, body: Uint8Array) {
      calls.push('put')
      objects.set(key, Buffer.from(body).toString())
    },
    async putIfAbsent(key: string, body: Uint8Array) {
      calls.push('putIfAbsent')
      if (kind === 'refuses') throw new ObjectStoreError('condition_refused', 'put_if_absent', 'NotImplemented', 'no')
      if (objects.has(key) && kind !== 'ignores') return false
      objects.set(key, Buffer.from(body).toString())
      return true
    },
  } as unknown as ObjectStore
  const puts = new ConditionalPuts('bucket', { warn: (_: object, text: string) => warnings.push(text) } as unknown as Logger)
  const put = async (key: string, text: string) => {
    const found = await puts.put(store, key, Buffer.from(text), { contentType: 'text/plain', metadata: {} })
    return found && Buffer.from(found).toString()
  }
  return { objects, warnings, calls, put }
}

test.each(['heeds', 'ignores', 'refuses'] as const)('the first object stays in a store that %s the condition', async (kind) => {
  const { objects, warnings, put } = furnished(kind)
  expect(await put('a', 'one')).toBeUndefined()
  expect(await put('a', 'two')).toBe('one')
  // The answer to an earlier attempt was lost.
  expect(await put('a', 'one')).toBeUndefined()
  expect(await put('b', 'two')).toBeUndefined()
  expect(Object.fromEntries(objects)).toEqual({ a: 'one', b: 'two' })
  expect(warnings).toHaveLength(kind === 'heeds' ? 0 : 1)
})

test('a store that heeds the condition gets one request for each object, once it has shown it', async () => {
  const { calls, put } = furnished('heeds')
  await put('a', 'one')
  expect(calls).toEqual(['head', 'putIfAbsent', 'putIfAbsent'])
  calls.length = 0
  await put('b', 'one')
  expect(calls).toEqual(['putIfAbsent'])
})

test('where nothing can be read, the object is replaced', async () => {
  const { objects, put } = furnished('unreadable')
  await put('a', 'one')
  expect(await put('a', 'two')).toBeUndefined()
  expect(objects.get('a')).toBe('two')
})
