import { afterAll, beforeAll } from 'vitest'

/** Starts one for the tests of a file, or of a suite within it. */
export function useOne<T extends AsyncDisposable>(start: () => Promise<T>, timeoutMs?: number): () => T {
  let started: T | undefined
  beforeAll(async () => {
    started = await start()
  }, timeoutMs)
  afterAll(() => started?.[Symbol.asyncDispose](), timeoutMs)
  return () => {
    if (started === undefined) throw new Error('what the tests share was not started')
    return started
  }
}
