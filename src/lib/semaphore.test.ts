import { expect, test } from 'vitest'
import { Semaphore } from './semaphore.ts'

const never = new AbortController().signal

/** Returns whether the promise is still pending after all callbacks that are ready have run. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const waiting = Symbol('waiting')
  await new Promise(setImmediate)
  return (await Promise.race([promise, Promise.resolve(waiting)])) === waiting
}

test('grants in order, and a request for all permits waits for all', async () => {
  const semaphore = new Semaphore(2)
  const one = await semaphore.acquire(1, never)
  const all = semaphore.acquire(2, never)
  const behind = semaphore.acquire(1, never)
  expect(await isPending(all)).toBe(true)
  expect(await isPending(behind)).toBe(true)
  one[Symbol.dispose]()
  const held = await all
  expect(await isPending(behind)).toBe(true)
  held[Symbol.dispose]()
  held[Symbol.dispose]()
  await behind
  expect(await isPending(semaphore.acquire(2, never))).toBe(true)
})

test('an aborted request does not block those behind it', async () => {
  const semaphore = new Semaphore(2)
  await semaphore.acquire(1, never)
  const abort = new AbortController()
  const all = semaphore.acquire(2, abort.signal)
  const behind = semaphore.acquire(1, never)
  abort.abort(new Error('enough'))
  await expect(all).rejects.toThrow('enough')
  await behind
})
