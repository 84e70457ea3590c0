/** Runs before each test file: the file fails if a process or a log that it started printed a key or a token. */
import { afterAll } from 'vitest'
import { failIfLeaked, watchChildren } from './secrets-in-output.ts'

watchChildren()

afterAll(failIfLeaked)
