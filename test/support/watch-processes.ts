/**
 * Runs before each test file. The file fails if a process that it started is still running at its end, or if a process or a log printed
 * a key or a token.
 */
import { afterAll } from 'vitest'
import { failIfRunning, markChildren } from './left-processes.ts'
import { failIfLeaked, watchChildren } from './secrets-in-output.ts'

watchChildren()
markChildren()

afterAll(failIfLeaked)
// Runs first: processes print until they have ended.
afterAll(() => failIfRunning())
