import { expect, test } from 'vitest'
import { inParallel } from './in-parallel.ts'

test('takes items in order, so many at a time', async () => {
  const started: number[] = []
  const ends: (() => void)[] = []
  const all = inParallel(2, [1, 2, 3], (item) => {
    started.push(item)
    return new Promise<void>((resolve) => ends.push(resolve))
  })
  expect(started).toEqual([1, 2])
  ends[1]?.()
  await new Promise((resolve) => setImmediate(resolve))
  expect(started).toEqual([1, 2, 3])
  for (const end of ends) end()
  await all
})

test('starts no more after an error or an abort', async () => {
  const started: number[] = []
  const failing = inParallel(1, [1, 2], async (item) => {
    started.push(item)
    throw new Error('broken')
  })
  await expect(failing).rejects.toThrow('broken')
  const abort = new AbortController()
  const take = async (item: number) => {
    started.push(item)
    abort.abort()
  }
  await inParallel(1, [3, 4], take, abort.signal)
  expect(started).toEqual([1, 3])
})
