/** Runs before each test file: the file fails if a process or a log that it started printed a key or a token. */
import { afterAll } from 'vitest'
import { takeLeaks, watchChildren } from './secrets-in-output.ts'

watchChildren()

afterAll(() => {
  const leaks = takeLeaks()
  if (leaks.length > 0) throw new Error(`secrets in the output:\n${leaks.join('\n')}`)
})
