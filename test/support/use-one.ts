import { afterAll, beforeAll } from 'vitest'
import { must } from '#lib/assert.ts'

/** Starts one for the tests of a file, or of a suite within it. */
export function useOne<T extends AsyncDisposable>(start: () => Promise<T>): () => T {
  let started: T | undefined
  beforeAll(async () => {
    started = await start()
  })
  afterAll(() => started?.[Symbol.asyncDispose]())
  return () => must(started, 'what the tests share')
}
