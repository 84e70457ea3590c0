import { expect, test } from 'vitest'
import { batchCalls } from './batch-calls.ts'

test('items that are added during a batch are the next one, and share its result', async () => {
  const batches: (readonly number[])[] = []
  const ends: (() => void)[] = []
  const add = batchCalls((items: readonly number[]) => {
    batches.push(items)
    return new Promise<number>((resolve) => ends.push(() => resolve(items.length)))
  })
  const first = add(1)
  await new Promise(setImmediate)
  const others = [add(2), add(3)]
  await new Promise(setImmediate)
  expect(batches).toEqual([[1]])
  ends[0]?.()
  expect(await first).toBe(1)
  await new Promise(setImmediate)
  expect(batches).toEqual([[1], [2, 3]])
  ends[1]?.()
  expect(await Promise.all(others)).toEqual([2, 2])
})

test('a batch that fails rejects its own items, and the next one runs', async () => {
  const add = batchCalls(async (items: readonly string[]) => {
    if (items.includes('bad')) throw new Error('a bad item')
    return items.length
  })
  const results = [add('bad')]
  await new Promise(setImmediate)
  results.push(add('good'))
  expect(await Promise.allSettled(results)).toMatchObject([{ status: 'rejected' }, { status: 'fulfilled', value: 1 }])
})
