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

test('lends only idle permits, and requests them back at once', async () => {
  const semaphore = new Semaphore(2)
  const one = await semaphore.acquire(1, never)
  const lent = await semaphore.borrow(never)
  const next = semaphore.borrow(never)
  expect(lent.wanted.aborted).toBe(false)
  const two = semaphore.acquire(1, never)
  expect(lent.wanted.aborted).toBe(true)
  lent[Symbol.dispose]()
  const held = await two
  expect(await isPending(next)).toBe(true)
  one[Symbol.dispose]()
  const again = await next
  expect(again.wanted.aborted).toBe(false)
  const all = semaphore.acquire(2, never)
  expect(again.wanted.aborted).toBe(true)
  again[Symbol.dispose]()
  again[Symbol.dispose]()
  held[Symbol.dispose]()
  await all
})

test('a borrower may abort', async () => {
  const semaphore = new Semaphore(1)
  const one = await semaphore.acquire(1, never)
  const abort = new AbortController()
  const lent = semaphore.borrow(abort.signal)
  abort.abort(new Error('enough'))
  await expect(lent).rejects.toThrow('enough')
  await expect(semaphore.borrow(abort.signal)).rejects.toThrow('enough')
  one[Symbol.dispose]()
  await semaphore.acquire(1, never)
})
